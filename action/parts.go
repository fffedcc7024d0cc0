package action

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// requestPart is a part of a request that only some contexts provide. It names the members and sets them.
type requestPart struct {
	members []string
	known   func(c hooks.Context) bool
	set     func(r *Request, c hooks.Context)
}

// partFrom returns a part that contexts of type C provide.
func partFrom[C any](set func(r *Request, c C), members ...string) requestPart {
	return requestPart{
		members: members,
		known:   func(c hooks.Context) bool { _, ok := c.(C); return ok },
		set: func(r *Request, c hooks.Context) {
			if c, ok := c.(C); ok {
				set(r, c)
			}
		},
	}
}

// requestParts returns the request parts that only some points provide. NewRequest sets them. CheckValues uses them to
// decide which values a text can name at a point.
var requestParts = sync.OnceValue(func() []requestPart {
	return slices.Concat(callParts(), textParts(), factParts())
})

// callParts returns the parts about tool calls.
func callParts() []requestPart {
	return []requestPart{
		partFrom(func(r *Request, c interface{ Call() hooks.Call }) {
			call := c.Call()
			r.Tool, r.CallID, r.Arguments = call.Name, call.ID, callArguments(call)
		}, "tool", "call_id", "arguments"),
		partFrom(func(r *Request, c interface {
			Call() hooks.Call
			Original() hooks.Call
		},
		) {
			if original := c.Original(); original.Arguments != c.Call().Arguments {
				r.Original = callArguments(original)
			}
		}, "original_arguments"),
		partFrom(func(r *Request, c interface{ Invalid() error }) {
			if err := c.Invalid(); err != nil {
				r.Invalid = err.Error()
			}
		}, "invalid"),
		partFrom(func(r *Request, c interface{ Result() agent.ToolResult }) {
			result := c.Result()
			r.Result = &ToolResult{result.Text(), result.IsError(), result.Status, result.Reason, result.Attempts}
			r.Duration = Milliseconds(result.Duration)
		}, "result", "duration_ms"),
		partFrom(func(r *Request, c interface{ Questions() agent.Questions }) { r.Question = c.Questions().Reason() }, "question"),
		partFrom(func(r *Request, c interface{ Interventions() []agent.Intervention }) {
			for _, i := range c.Interventions() {
				r.Approvals = append(r.Approvals, approvalOf(i))
			}
			if len(r.Approvals) == 1 && r.CallID == "" {
				r.CallID = r.Approvals[0].CallID
			}
		}, "approvals", "call_id"),
	}
}

// textParts returns the parts about input, replies and errors.
func textParts() []requestPart {
	return []requestPart{
		partFrom(func(r *Request, c interface {
			Messages() []agent.Message
			Text() string
		},
		) {
			r.Input = c.Text()
		}, "input"),
		partFrom(func(r *Request, c hooks.ReplyContext) {
			r.Answer = c.Text()
			if c.Err() == nil {
				r.Reply = replyOf(c.Reply())
			}
		}, "answer", "reply"),
		partFrom(func(r *Request, c interface{ LastContent() string }) { r.Answer = c.LastContent() }, "answer"),
		partFrom(func(r *Request, c interface{ Answer() string }) { r.Answer = c.Answer() }, "answer"),
		partFrom(func(r *Request, c interface{ Err() error }) {
			if err := c.Err(); err != nil {
				r.Error, r.Variables.Error = err.Error(), err.Error()
			}
		}, "error"),
	}
}

// factParts returns the parts about steps, ends, sub-agents, compactions, conversations, pipelines and a coordinator's
// runs.
func factParts() []requestPart {
	return []requestPart{
		partFrom(func(r *Request, c hooks.StepEndContext) {
			r.StepKind, r.Duration, r.Continues = c.Kind(), Milliseconds(c.Duration()), new(c.ShouldContinue())
			r.Reply = replyOf(c.Record().Reply())
		}, "step_kind", "duration_ms", "should_continue", "reply"),
		partFrom(func(r *Request, c hooks.StopContext) {
			r.End = new(c.Signal())
			r.Continuations, r.ContinuationsLeft = new(c.Continuations()), new(c.ContinuationsLeft())
		}, "end", "continuations", "continuations_left"),
		partFrom(func(r *Request, c hooks.EndContext) {
			r.Duration = Milliseconds(c.Duration())
			if end := c.Reason(); end.Reason != "" {
				r.End = &end
			}
		}, "end", "duration_ms"),
		partFrom(func(r *Request, c interface{ Status() agent.Status }) { r.Status = c.Status() }, "status"),
		partFrom(func(r *Request, c interface{ Subagent() hooks.Subagent }) {
			about := c.Subagent()
			r.Subagent = &Subagent{
				about.Agent, about.Instruction, about.Result, about.CallID, about.Run.ID, about.Run.Session, about.Status,
			}
			r.Duration = Milliseconds(about.Took)
		}, "subagent", "duration_ms"),
		partFrom(func(r *Request, c interface{ Compaction() hooks.Compaction }) {
			about := c.Compaction()
			r.Compaction = &Compaction{about.ID, about.Messages, about.Tokens, about.MessagesAfter, about.Summary}
		}, "compaction"),
		partFrom(func(r *Request, c interface{ Conversation() hooks.Conversation }) {
			r.Conversation = new(c.Conversation())
		}, "conversation"),
		partFrom(func(r *Request, c interface{ Pipeline() hooks.Pipeline }) {
			about := c.Pipeline()
			r.Pipeline = &about
			if about.Err != nil {
				r.Error = about.Err.Error()
			}
		}, "pipeline", "error"),
		partFrom(func(r *Request, c interface{ BlueprintRun() hooks.BlueprintRun }) {
			about := c.BlueprintRun()
			r.BlueprintRun = BlueprintRun{
				Parameters: about.Parameters, AgentName: r.Run.Agent, SessionID: string(r.Run.Session), RunID: string(r.Run.ID),
				ResultText: about.ResultText, ResultData: about.ResultData,
			}
			if r.Status = about.Status; about.Err != nil {
				r.Error = about.Err.Error()
			}
		}, "parameters", "agent_name", "session_id", "run_id", "result_text", "result_data", "status", "error"),
		partFrom(func(r *Request, c interface {
			BlueprintRun() hooks.BlueprintRun
			Duration() time.Duration
		}) {
			r.Duration = Milliseconds(c.Duration())
		}, "duration_ms"),
	}
}

// requestMembers returns a request's member names.
var requestMembers = sync.OnceValue(func() []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Request]()) {
		if name := jsonName(field); name != "" {
			names = append(names, name)
		}
	}
	return names
})

// jsonName returns a field's JSON name. It returns an empty string for a field that is not encoded.
func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return lo.Ternary(name == "-", "", name)
}

// hasMember reports whether a request at the point of c can have a top-level member. Only observers see other hooks'
// decisions.
func hasMember(c hooks.Context, name string, observer bool) bool {
	if name == "decided" {
		return observer
	}
	optional := false
	for _, part := range requestParts() {
		if slices.Contains(part.members, name) {
			if part.known(c) {
				return true
			}
			optional = true
		}
	}
	return !optional
}

// missingMember follows a dotted path through a type's JSON form. For an invalid path it returns the valid part, the
// first missing element, and the members that exist there. For a valid path the element is empty.
func missingMember(t reflect.Type, path string) (parent, element string, members []string) {
	var way []string
	for element := range strings.SplitSeq(path, ".") {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t {
		case reflect.TypeFor[Usage]():
			t = reflect.TypeFor[UsageFigures]()
		case reflect.TypeFor[Calls]():
			t = reflect.TypeFor[map[string]CallCount]()
		}
		switch {
		case t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface || t == reflect.TypeFor[hooks.Outcome]():
			return "", "", nil
		case t.Kind() == reflect.Map || t.Kind() == reflect.Slice:
			t = t.Elem()
		case t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]():
			return strings.Join(way, "."), element, nil
		default:
			fields := lo.Filter(reflect.VisibleFields(t), func(f reflect.StructField, _ int) bool { return jsonName(f) != "" })
			field, ok := lo.Find(fields, func(f reflect.StructField) bool { return jsonName(f) == element })
			if !ok {
				return strings.Join(way, "."), element, lo.Map(fields, func(f reflect.StructField, _ int) string { return jsonName(f) })
			}
			t = field.Type
		}
		way = append(way, element)
	}
	return "", "", nil
}

// CheckValues returns an error for each invalid value name in an action's text, for hooks at a point. It finds members
// that no request has there, and paths that lead nowhere. Such text would fail each time or be sent unexpanded. The
// error contains a FieldError for each name; see Fields.
//
// Set observer for an observer's action, which also sees the decision. vars are the policy's variables by name.
// CheckValues ignores single names that are neither variables nor members: they are secrets.
func CheckValues[C hooks.Context](d Declared, at hooks.Point[C], observer bool, vars map[string]any) error {
	var c C
	var p problems
	for _, t := range textsOf(d) {
		for _, name := range t.names {
			path := memberPath(name)
			first, rest, dotted := strings.Cut(path, ".")
			variable, _, _ := strings.Cut(rest, ".")
			switch {
			case slices.Contains(VariableNames(), name):
			case !slices.Contains(requestMembers(), first):
				if dotted {
					p.say(t.field, "${%s}: a request has no %s%s", name, first, sentenceEnd(requestMembers()))
				}
			case !hasMember(c, first, observer):
				p.say(t.field, "${%s}: a request at %s has no %s", name, at.Name(), first)
			case first == "vars" && dotted && !lo.HasKey(vars, variable):
				p.say(t.field, "${%s}: undefined variable %s%s", name, variable, sentenceEnd(slices.Sorted(maps.Keys(vars))))
			default:
				if parent, element, members := missingMember(reflect.TypeFor[Request](), path); element != "" {
					p.say(t.field, "${%s}: %s has no %s%s", name, parent, element, sentenceEnd(members))
				}
			}
		}
	}
	return p.join()
}

// sentenceEnd lists names for the end of an error message. It returns an empty string for no names.
func sentenceEnd(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": available: " + strings.Join(names, ", ")
}

// fieldText is a field's text that contains value names.
type fieldText struct {
	field string
	names []string
}

// textsOf returns an action's text that contains value names, by field.
func textsOf(d Declared) []fieldText {
	var all []fieldText
	add := func(field string, value any) {
		plain, err := plainJSON(value)
		if err != nil {
			return // Validate reports it
		}
		t := fieldText{field: field}
		fillValue(plain, func(name string) (string, bool) {
			t.names = append(t.names, name)
			return "", false
		})
		all = append(all, t)
	}
	switch d := d.(type) {
	case HTTP:
		add("url", d.URL)
		for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
			add("headers."+name, d.Headers[name])
		}
		add("body", d.Body)
	case Gate:
		add("reason", d.Reason)
		if d.Webhook != nil {
			for _, t := range textsOf(*d.Webhook) {
				all = append(all, fieldText{"webhook." + t.field, t.names})
			}
		}
	case MCPTool:
		add("arguments", mapOf(d.Arguments))
	case Agent:
		add("input", mapOf(d.Input))
	case Spawn:
		add("inputs", mapOf(d.Inputs))
	}
	return all
}
