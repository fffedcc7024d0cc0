package recorded

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// otlpForm reads spans in OTLP JSON. A run is an invoke_agent span with the chat and execute_tool spans below it;
// without an invoke_agent span, it is everything below one root. Spans are written when they end, so children come
// before their parents, and a run is complete once the batch with its own span was read.
type otlpForm struct {
	file
	spans map[string]*span // spans that do not belong to a run yet, by trace and ID
	order int
}

type span struct {
	ID        string          `json:"spanId"`
	Trace     string          `json:"traceId"`
	Parent    string          `json:"parentSpanId"`
	Name      string          `json:"name"`
	Start     json.RawMessage `json:"startTimeUnixNano"`
	Attribute []otlpAttribute `json:"attributes"`
	Status    struct {
		Code json.RawMessage `json:"code"`
	} `json:"status"`

	line, order int
	started     uint64
}

type otlpAttribute struct {
	Key   string   `json:"key"`
	Value anyValue `json:"value"`
}

// anyValue is a value in OTLP JSON.
type anyValue struct {
	String *string         `json:"stringValue"`
	Bool   *bool           `json:"boolValue"`
	Int    json.RawMessage `json:"intValue"`
	Double json.RawMessage `json:"doubleValue"`
	Array  *struct {
		Values []anyValue `json:"values"`
	} `json:"arrayValue"`
	List *struct {
		Values []otlpAttribute `json:"values"`
	} `json:"kvlistValue"`
}

// json returns the value as plain JSON.
func (v anyValue) json() json.RawMessage {
	switch {
	case v.String != nil:
		text, _ := json.Marshal(*v.String) //nolint:errchkjson // a string
		return text
	case v.Bool != nil:
		return strconv.AppendBool(nil, *v.Bool)
	case v.Int != nil:
		return json.RawMessage(strings.Trim(string(v.Int), `"`))
	case v.Double != nil:
		return v.Double
	case v.Array != nil:
		var parts []string
		for _, e := range v.Array.Values {
			parts = append(parts, string(e.json()))
		}
		return json.RawMessage("[" + strings.Join(parts, ",") + "]")
	case v.List != nil:
		var parts []string
		for _, e := range v.List.Values {
			name, _ := json.Marshal(e.Key) //nolint:errchkjson // a string
			parts = append(parts, string(name)+":"+string(e.Value.json()))
		}
		return json.RawMessage("{" + strings.Join(parts, ",") + "}")
	}
	return json.RawMessage("null")
}

// attribute returns an attribute's text, or its JSON if it is not text.
func (s *span) attribute(key attribute.Key) string {
	for _, a := range s.Attribute {
		if a.Key == string(key) {
			if a.Value.String != nil {
				return *a.Value.String
			}
			return string(a.Value.json())
		}
	}
	return ""
}

func (s *span) operation() string { return s.attribute(semconv.KeyOperation) }

func newOTLP(of file) *otlpForm { return &otlpForm{file: of, spans: map[string]*span{}} }

func (f *otlpForm) add(v value) ([]*Run, error) {
	if v.last {
		return nil, nil
	}
	var batch struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []*span `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err := strictjson.Unmarshal(v.text, &batch); err != nil {
		return nil, err
	}
	var agents []*span
	for _, resource := range batch.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				if s == nil || s.ID == "" || s.Trace == "" {
					return nil, errors.New("a span has no id or no trace")
				}
				f.order++
				s.line, s.order = v.line, f.order
				s.started, _ = strconv.ParseUint(strings.Trim(string(s.Start), `"`), 10, 64) // spans without a time keep their order
				f.spans[s.Trace+"/"+s.ID] = s
				if s.operation() == semconv.OperationInvokeAgent {
					agents = append(agents, s)
				}
			}
		}
	}
	return f.runsOf(agents)
}

// runsOf converts each span to a run. Spans that began last come first, because runs that others started are below
// them.
func (f *otlpForm) runsOf(agents []*span) (runs []*Run, err error) {
	var wrong []error
	slices.SortFunc(agents, func(a, b *span) int { return cmp.Or(cmp.Compare(b.started, a.started), b.order-a.order) })
	for _, a := range agents {
		run, err := f.runBelow(a)
		if err != nil {
			wrong = append(wrong, atLine(a.line, err))
			continue
		}
		runs = append(runs, run)
	}
	slices.Reverse(runs)
	if len(wrong) == 1 {
		return runs, wrong[0]
	}
	return runs, errors.Join(wrong...)
}

// runBelow converts a span and the spans below it to a run, and removes them.
func (f *otlpForm) runBelow(top *span) (*Run, error) {
	var chats, calls []*span
	for key, s := range f.spans {
		if s.Trace != top.Trace || !f.below(s, top) {
			continue
		}
		switch s.operation() {
		case semconv.OperationChat, "generate_content", "text_completion":
			chats = append(chats, s)
		case semconv.OperationExecuteTool:
			calls = append(calls, s)
		}
		defer delete(f.spans, key)
	}
	byTime := func(a, b *span) int { return cmp.Or(cmp.Compare(a.started, b.started), a.order-b.order) }
	slices.SortFunc(chats, byTime)
	slices.SortFunc(calls, byTime)
	id := firstOf(top.attribute(semconv.KeyRun), top.Trace+"/"+top.ID)
	run := f.run(top.line, replay.Record{ID: id, Source: "otlp", Messages: []replay.Message{}})
	run.Agent = top.attribute(semconv.KeyAgentName)
	run.Lacks = "the tools"
	t := transcript{answers: map[string]*span{}, seen: map[string]bool{}}
	for _, c := range calls {
		t.answers[c.attribute(semconv.KeyToolCallID)] = c
	}
	for _, c := range chats {
		run.Model = firstOf(c.attribute(semconv.KeyResponseModel), c.attribute(semconv.KeyRequestModel), run.Model)
		if err := t.turn(c); err != nil {
			return nil, fmt.Errorf("run %q: span %q: %w", id, c.Name, err)
		}
	}
	if len(t.messages) == 0 && len(chats)+len(calls) > 0 {
		return nil, fmt.Errorf("run %q: its spans have no messages: record with content (%s, %s)",
			id, semconv.KeyInputMessages, semconv.KeyOutputMessages)
	}
	t.answerAll()
	run.Messages = append(run.Messages, t.messages...)
	return run, nil
}

// below reports whether a span is top or one of its descendants.
func (f *otlpForm) below(s, top *span) bool {
	for range len(f.spans) + 1 { // bounded, in case of a cycle
		if s == top {
			return true
		}
		if s = f.spans[s.Trace+"/"+s.Parent]; s == nil {
			return false
		}
	}
	return false
}

// end converts the spans that are not below an agent to runs, and reports the remaining ones.
func (f *otlpForm) end() ([]*Run, []error) {
	roots := map[*span]bool{}
	for _, s := range f.spans {
		top := s
		for range len(f.spans) {
			above := f.spans[top.Trace+"/"+top.Parent]
			if above == nil {
				break
			}
			top = above
		}
		if op := s.operation(); op == semconv.OperationChat || op == "generate_content" || op == semconv.OperationExecuteTool {
			roots[top] = true
		}
	}
	var list []*span
	for s := range roots {
		list = append(list, s)
	}
	runs, err := f.runsOf(list)
	f.spans = map[string]*span{}
	if err == nil {
		return runs, nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // joined by runsOf
		return runs, joined.Unwrap()
	}
	return runs, []error{err}
}

// transcript assembles a run's turns. Each turn shows the model's input.
type transcript struct {
	messages []replay.Message
	answers  map[string]*span
	seen     map[string]bool // IDs of answered calls
}

type spanMessage struct {
	Role  string     `json:"role"`
	Parts []spanPart `json:"parts"`
}

type spanPart struct {
	Type      string          `json:"type"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Response  json.RawMessage `json:"response"`
	Result    json.RawMessage `json:"result"`
}

// turn adds one turn of the model.
func (t *transcript) turn(c *span) error {
	var shown, said []spanMessage
	if text := c.attribute(semconv.KeyInputMessages); text != "" {
		if err := strictjson.Unmarshal(text, &shown); err != nil {
			return fmt.Errorf("%s: %w", semconv.KeyInputMessages, err)
		}
	}
	if text := c.attribute(semconv.KeyOutputMessages); text != "" {
		if err := strictjson.Unmarshal(text, &said); err != nil {
			return fmt.Errorf("%s: %w", semconv.KeyOutputMessages, err)
		}
	}
	if len(t.messages) == 0 {
		if text := c.attribute(semconv.KeyInstructions); text != "" {
			var parts []spanPart
			if err := strictjson.Unmarshal(text, &parts); err != nil {
				return fmt.Errorf("%s: %w", semconv.KeyInstructions, err)
			}
			t.add(spanMessage{Role: "system", Parts: parts})
		}
	} else {
		shown = sinceLastTurn(shown)
	}
	for _, m := range append(shown, said...) {
		t.add(m)
	}
	return nil
}

// sinceLastTurn returns the messages after the model's last one; earlier messages are already known.
func sinceLastTurn(shown []spanMessage) []spanMessage {
	for i, m := range slices.Backward(shown) {
		if m.Role == "assistant" {
			return shown[i+1:]
		}
	}
	return nil
}

func (t *transcript) add(m spanMessage) {
	out := replay.Message{Role: replay.Role(m.Role)}
	var texts []string
	for _, p := range m.Parts {
		switch p.Type {
		case "text":
			texts = append(texts, textOf(p.Content))
		case "tool_call":
			arguments, isText := strictjson.Unquote(string(p.Arguments))
			if !isText {
				arguments = objectText(p.Arguments)
			}
			out.ToolCalls = append(out.ToolCalls, call(p.ID, p.Name, arguments))
		case "tool_call_response":
			response := p.Response
			if response == nil {
				response = p.Result
			}
			t.messages = append(t.messages, newAnswer(p.ID, p.Name, textOf(response), t.answers[p.ID].failed()))
			t.seen[p.ID] = true
		}
	}
	if len(texts) > 0 {
		out.Content = replay.Text(strings.Join(texts, "\n"))
	}
	if m.Role != "tool" && (out.Content.Said || len(out.ToolCalls) > 0) {
		t.messages = append(t.messages, out)
	}
}

// answerAll adds the answers that no later turn contains.
func (t *transcript) answerAll() {
	for _, m := range t.messages {
		for _, c := range m.ToolCalls {
			if s := t.answers[c.ID]; s != nil && !t.seen[c.ID] {
				t.messages = append(t.messages, newAnswer(c.ID, c.Function.Name, s.attribute(semconv.KeyToolResult), s.failed()))
			}
		}
	}
}

// failed reports whether a call failed. A call without a span counts as successful.
func (s *span) failed() bool {
	if s == nil {
		return false
	}
	outcome := s.attribute(semconv.KeyOutcome)
	return s.attribute(semconv.KeyErrorType) != "" || strings.Trim(string(s.Status.Code), `"`) == "2" ||
		strings.Trim(string(s.Status.Code), `"`) == "STATUS_CODE_ERROR" ||
		outcome == "failed" || outcome == "denied" || outcome == "not_executed" || outcome == "unknown" || outcome == "deferred"
}

// textOf returns a JSON string's text, or the JSON of any other value.
func textOf(raw json.RawMessage) string {
	if text, ok := strictjson.Unquote(string(raw)); ok {
		return text
	}
	return string(raw)
}
