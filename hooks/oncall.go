package hooks

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// OnCall returns a control at AtPreToolUse for one tool's calls. f receives the arguments as a struct of type In:
//
//	hooks.OnCall("only-friends", "transfer", func(_ context.Context, c hooks.ToolContext, in struct {
//		To string `json:"to"`
//	}) hooks.Result {
//		if in.To != "Alice" {
//			return c.Deny(in.To + " is no friend")
//		}
//		return c.Allow()
//	})
//
// In has fields for the arguments that f checks. Calls can have other arguments. A field is required unless its json
// tag has omitempty or omitzero, and accepts null only if it is a pointer. A call whose arguments do not fit In is
// denied without calling f, regardless of the hook's failure policy. Building an agent fails if it has no tool with
// this name, or if the tool has no argument with a field's name. To rewrite arguments, modify in and answer with
// c.Patch(in).
func OnCall[In any](name, tool string, f func(ctx context.Context, c ToolContext, in In) Result) Hook {
	if f == nil {
		return On(AtPreToolUse, name, nil, ToolNamed(tool))
	}
	return On(AtPreToolUse, name, func(ctx context.Context, c ToolContext) Result {
		var in In
		if err := decodeCall(c.Call(), &in); err != nil {
			return c.Deny(err.Error())
		}
		return f(ctx, c, in)
	}, append(takesFields(reflect.TypeFor[In]()), ToolNamed(tool))...)
}

// AlwaysDeny returns a control at AtPreToolUse that denies each call that all the matchers match. Without
// matchers it denies every call.
func AlwaysDeny(name, reason string, matching ...Matcher) Hook {
	return On(AtPreToolUse, name, func(_ context.Context, c ToolContext) Result { return c.Deny(reason) }, matching...)
}

// AlwaysAsk returns a control at AtPreToolUse that requires approval for each call that all the matchers
// match.
func AlwaysAsk(name, reason string, matching ...Matcher) Hook {
	return On(AtPreToolUse, name, func(_ context.Context, c ToolContext) Result { return c.Ask(reason) }, matching...)
}

// AlwaysMock returns a control at AtPreToolUse that answers each call that all the matchers match with a
// text. The tool does not run.
func AlwaysMock(name, text string, matching ...Matcher) Hook {
	return On(AtPreToolUse, name, func(_ context.Context, c ToolContext) Result { return c.Mock(text) }, matching...)
}

// AlwaysFilter returns a control at AtPostToolUse that applies f to every text of each answer that all the
// matchers match: see ToolResultContext.Filter.
func AlwaysFilter(name string, f func(text string) string, matching ...Matcher) Hook {
	if f == nil {
		return On(AtPostToolUse, name, nil, matching...)
	}
	return On(AtPostToolUse, name, func(_ context.Context, c ToolResultContext) Result { return c.Filter(f) }, matching...)
}

// ContinueUntil returns a control at AtStop that makes the run continue, with reason as the next message, until
// done returns true for the state. It is asked as often as UseGuards.Continuations allows.
func ContinueUntil(name, reason string, done func(s agent.State) bool) Hook {
	if done == nil {
		return On(AtStop, name, nil)
	}
	return On(AtStop, name, func(_ context.Context, c StopContext) Result {
		if done(c.State()) {
			return c.Allow()
		}
		return c.Continue(reason)
	})
}

// Patch rewrites the arguments with a JSON merge patch (RFC 7396). Members of the patch replace the call's members, a
// null member removes the call's member, and the other members stay. The patch is any value that marshals to a JSON
// object, such as the struct that OnCall passes to its func. A field that its json tag omits when empty leaves the
// call's argument unchanged. Otherwise Patch works like Rewrite.
func (c ToolContext) Patch(patch any, effects ...agent.Effect) Result {
	text, err := patchedArguments(c.Call(), patch)
	if err != nil {
		return c.newAnswer(Outcome{decision: Rewrite, invalid: &rewriteError{err}}, effects)
	}
	return c.Rewrite(text, effects...)
}

func patchedArguments(call Call, patch any) (map[string]any, error) {
	text, err := objectOf(patch)
	if err != nil {
		return nil, err
	}
	var changes, arguments map[string]any
	if err := strictjson.Unmarshal(text, &changes); err != nil {
		return nil, err
	}
	if err := call.Decode(&arguments); err != nil {
		return nil, err
	}
	return mergePatch(arguments, changes), nil
}

// mergePatch applies a merge patch to object, which it modifies.
func mergePatch(object, patch map[string]any) map[string]any {
	if object == nil {
		object = make(map[string]any, len(patch))
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			inner, _ := object[name].(map[string]any)
			object[name] = mergePatch(inner, value)
		default:
			object[name] = value
		}
	}
	return object
}

// decodeCall decodes a call's arguments into the value that into points to.
func decodeCall(call Call, into any) error {
	var value any
	if err := call.Decode(&value); err != nil {
		return err
	}
	if wrong := lackOf(value, reflect.TypeOf(into).Elem(), ""); wrong != "" {
		return fmt.Errorf("tool %q: %s", call.Name, wrong)
	}
	return call.Decode(into)
}

// lackOf describes why a JSON value cannot be decoded into type t: a required member is missing, or a value is null
// although t does not allow it. The result is empty if there is no such problem.
func lackOf(value any, t reflect.Type, at string) string {
	if t.Kind() == reflect.Pointer {
		if value == nil {
			return ""
		}
		return lackOf(value, t.Elem(), at)
	}
	if strictjson.ReadsBy(t) != strictjson.ByKind || t.Kind() == reflect.Interface {
		return ""
	}
	if value == nil {
		return fmt.Sprintf("argument %q is null: give it a value, or omit it", at)
	}
	switch kind := t.Kind(); value := value.(type) {
	case map[string]any:
		if kind == reflect.Struct {
			return lackOfFields(value, t, at)
		}
		if kind == reflect.Map {
			for name, member := range value {
				if lack := lackOf(member, t.Elem(), inPath(at, name)); lack != "" {
					return lack
				}
			}
		}
	case []any:
		if kind == reflect.Slice || kind == reflect.Array {
			for i, element := range value {
				if lack := lackOf(element, t.Elem(), inPath(at, strconv.Itoa(i))); lack != "" {
					return lack
				}
			}
		}
	}
	return ""
}

// lackOfFields describes why an object cannot be decoded into a struct, like lackOf.
func lackOfFields(object map[string]any, t reflect.Type, at string) string {
	for _, f := range jsonFields(t) {
		member, has := object[f.name]
		if !has && f.required {
			return fmt.Sprintf("argument %q is missing: add it", inPath(at, f.name))
		}
		if !has {
			continue
		}
		if lack := lackOf(member, f.t, inPath(at, f.name)); lack != "" {
			return lack
		}
	}
	return ""
}

func inPath(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// jsonField is a JSON member of a struct.
type jsonField struct {
	name     string
	t        reflect.Type
	required bool
}

// jsonFields returns a struct's JSON members, including members of embedded structs.
func jsonFields(t reflect.Type) []jsonField {
	var out []jsonField
	for _, field := range reflect.VisibleFields(t) {
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !field.IsExported() || field.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		options = "," + options + ","
		out = append(out, jsonField{name, field.Type, !strings.Contains(options, ",omitempty,") && !strings.Contains(options, ",omitzero,")})
	}
	return out
}

// takesFields returns matchers that match every call. They make building an agent fail if its tool does not have the
// arguments. A guard with a mistyped name would never see a value.
func takesFields(t reflect.Type) []Matcher {
	if t.Kind() != reflect.Struct {
		return []Matcher{wrongMatcher("OnCall reads arguments into a struct, not into a %s", t)}
	}
	var out []Matcher
	for _, f := range jsonFields(t) {
		path, err := compilePath("/" + strings.NewReplacer("~", "~0", "/", "~1", "*", `\*`, `\`, `\\`).Replace(f.name))
		if err != nil {
			return []Matcher{wrongMatcher("argument %q: %w", f.name, err)}
		}
		out = append(out, Matcher{
			text: "takes argument " + f.name, needsTool: true,
			about: &aboutMatcher{path: &path}, full: func(matchInput) bool { return true },
		})
	}
	return out
}
