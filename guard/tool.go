package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

type sessionKey struct{}

// WithSession returns a context for a session's calls.
func WithSession(ctx context.Context, s *Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// FromContext returns the session that ctx belongs to, or nil.
func FromContext(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

type answersKey struct{}

type answer struct {
	token   string
	answers []agent.Approval
}

// WithAnswers returns a context in which Tool makes the call that an AskError was about with people's answers. Token is
// the AskError's. All other calls are judged as usual.
func WithAnswers(ctx context.Context, token string, answers ...agent.Approval) context.Context {
	known, _ := ctx.Value(answersKey{}).([]answer)
	return context.WithValue(ctx, answersKey{}, append([]answer{{token, answers}}, known...))
}

// Tool returns a tool func that calls f through Do, in the session that its context belongs to: see WithSession. Without
// a session, each call fails. When it returns an AskError, the same call with the context from WithAnswers goes on.
//
// An In that is a string is the JSON text of one object. Other types are written and read as JSON, and nil is an empty
// object. The call fails if In cannot hold what was judged: a field that a hook has added, or a long number in an any.
// Filters see the text of a result that is a string, and the JSON of any other, but nothing that JSON leaves out. Where Out
// cannot hold an answer, such as the text of a denial, the func returns an error with that text.
func Tool[In, Out any](name string, f func(ctx context.Context, in In) (Out, error)) func(ctx context.Context, in In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		var none Out
		arguments, err := textOf(in)
		if err != nil {
			return none, fmt.Errorf("tool %q: not executed: its arguments: %w", name, err)
		}
		own := arguments
		if _, isText := any(in).(string); !isText && arguments == "null" {
			arguments = "{}"
		}
		s, c := FromContext(ctx), Call{Tool: name, Arguments: arguments}
		known, _ := ctx.Value(answersKey{}).([]answer)
		if i := slices.IndexFunc(known, func(a answer) bool { return s.isAbout(a.token, c) }); i >= 0 {
			c.Token, c.Answers = known[i].token, known[i].answers
		}
		out, err := Do(ctx, s, c, func(ctx context.Context, judged string) (output[Out], error) {
			in, err := valueOf[In](judged)
			if err == nil {
				err = holds(in, judged, own)
			}
			if err != nil {
				return output[Out]{}, fmt.Errorf("its arguments: %w", err)
			}
			v, err := f(ctx, in)
			return output[Out]{v, nil}, err
		}, Shape[output[Out]]{
			Read: func(v output[Out]) (agent.Content, error) {
				text, err := textOf(v.value)
				part := agent.Text(text)
				if _, ok := any(v.value).(string); !ok {
					part.Name = valuePart
				}
				return agent.ContentOf(part), err
			},
			Write: func(r *agent.ToolResult) output[Out] {
				text := r.Text()
				for _, part := range r.Content.Parts() {
					if part.Name == valuePart {
						text = part.Text // without the notes for a model
					}
				}
				v, err := valueOf[Out](text)
				if err != nil {
					err = errors.New(r.Text())
				}
				return output[Out]{v, err}
			},
		})
		if err == nil {
			err = out.err
		}
		return out.value, err
	}
}

// valuePart is the name of a part that is JSON.
const valuePart = "value"

// output is a result, or the text that is no value of its type.
type output[T any] struct {
	value T
	err   error
}

// isAbout reports whether the token is from the AskError of this call.
func (s *Session) isAbout(token string, c Call) bool {
	if s == nil {
		return false
	}
	c.Token = token
	_, nonce := s.openToken(c)
	return nonce != ""
}

// holds returns an error if in, as it was read, does not have all that was judged. Own are the host's arguments.
func holds[In any](in In, judged, own string) error {
	if _, isText := any(in).(string); isText {
		return nil
	}
	strict := json.NewDecoder(strings.NewReader(judged))
	strict.DisallowUnknownFields()
	if err := strict.Decode(new(In)); err != nil {
		return err
	}
	again, err := textOf(in)
	if err == nil && judged == own && again != judged && !isSame(readExactly(again), readExactly(judged)) {
		err = errors.New("they would change when they are read, such as an integer beyond 2⁵³ in an any")
	}
	return err
}

// readExactly reads JSON without rounding its numbers.
func readExactly(text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&v) // it has been read before
	return v
}

// isSame reports whether two values that readExactly has returned are the same.
func isSame(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, isSame)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, isSame)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		x, okX := new(big.Rat).SetString(a.String())
		y, okY := new(big.Rat).SetString(b.String())
		return okX && okY && x.Cmp(y) == 0
	}
	return a == b
}

// textOf returns a string as it is, and all others as JSON.
func textOf(v any) (string, error) {
	if text, ok := v.(string); ok {
		return text, nil
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // filters must see what the tool wrote
	err := e.Encode(v)
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n"))), err
}

// valueOf reads what textOf has written.
func valueOf[T any](text string) (v T, err error) {
	switch p := any(&v).(type) {
	case *string:
		*p = text
	case *any:
		if *p = text; json.Valid([]byte(text)) {
			err = json.Unmarshal([]byte(text), p)
		}
	default:
		err = json.Unmarshal([]byte(text), p)
	}
	return v, err
}
