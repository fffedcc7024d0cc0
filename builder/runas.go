package builder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Answer is a run's typed result.
type Answer[T any] struct {
	// Value is the final answer, read from its JSON.
	Value T
	// State is the run's final state.
	State agent.State
}

// RunAs runs an agent with a final answer of type T: a struct, a string-keyed map, a slice, a string, a number or a
// boolean. The JSON Schema of T is inferred (see toolexec.SchemaFor) and sent to the model service. The model receives
// an answer that does not fit the schema back with an error. It has three attempts in total.
//
// Services require a JSON object. For any other T the model is asked for {"answer": …}, and Value is that member's
// value. Text around the object, such as a code fence, is ignored if the answer holds exactly one object.
//
// If the run ends without such an answer, RunAs returns an *agent.RunError, which holds the state. This includes runs
// that were stopped, denied or parked, for which Run returns no error.
func RunAs[T any](ctx context.Context, a *agent.Agent, s agent.State, input ...agent.Message) mo.Result[Answer[T]] {
	form, err := formOf[T]()
	if err != nil {
		return mo.Err[Answer[T]](fmt.Errorf("running agent %q for a typed answer: %w", a.Name(), err))
	}
	output := &agent.Output{
		Name: formName[T](), Schema: form.schema,
		Check: func(answer string) error { _, err := form.read(answer); return err },
	}
	final, err := a.RunWith(ctx, agent.RunSettings{Output: output}, s, input...).Get()
	if err != nil {
		return mo.Err[Answer[T]](quoteAnswer(err))
	}
	if final.Parked() {
		return mo.Err[Answer[T]](&agent.RunError{State: final, Err: errParked})
	}
	if final.Status() != agent.StatusDone {
		signal := final.StopSignal()
		return mo.Err[Answer[T]](&agent.RunError{State: final, Err: fmt.Errorf(
			"no final answer: %s by %s: %s", signal.Reason, signal.Source, signal.Message)})
	}
	value, err := form.read(final.Answer())
	if err != nil { // the run ended without an answer, or its criterion has no agent.Base
		return mo.Err[Answer[T]](quoteAnswer(&agent.RunError{
			State: final, Err: fmt.Errorf("the final answer does not have the form %q: %w", output.Name, err),
		}))
	}
	return mo.Ok(Answer[T]{Value: value, State: final})
}

// form decodes answers into a value of type T.
type form[T any] struct {
	schema string
	read   func(answer string) (T, error)
}

// inObject is the object that the model is asked for if T is not a JSON object.
type inObject[T any] struct {
	Answer T `json:"answer"`
}

// formOf returns the form for T.
func formOf[T any]() (form[T], error) {
	switch t := reflect.TypeFor[T](); t.Kind() {
	case reflect.Struct, reflect.Map:
		decoder, err := toolexec.NewDecoder[T]()
		if err == nil {
			return form[T]{decoder.Schema().String(), readWith[T](decoder)}, nil
		}
		if _, described := toolexec.NewDecoder[inObject[T]](); t.Kind() == reflect.Map || described != nil { // a time.Time is a struct but a string in JSON
			return form[T]{}, err
		}
	case reflect.Interface:
		return form[T]{}, fmt.Errorf("cannot infer a schema for the answer type %s: use a concrete type", t)
	}
	decoder, err := toolexec.NewDecoder[inObject[T]]()
	if err != nil {
		return form[T]{}, err
	}
	read := readWith[inObject[T]](decoder)
	return form[T]{decoder.Schema().String(), func(answer string) (T, error) {
		object, err := read(answer)
		return object.Answer, err
	}}, nil
}

// readWith returns a func that decodes an answer with the decoder.
func readWith[In any](decoder *toolexec.Decoder[In]) func(answer string) (In, error) {
	return func(answer string) (value In, err error) {
		object, err := findObject(answer)
		if err != nil {
			return value, err
		}
		return value, ofAnswer(decoder.Decode(object, &value))
	}
}

// quoteAnswer returns an error that also quotes the beginning of the last answer.
func quoteAnswer(err error) error {
	failed, ok := errors.AsType[*agent.RunError](err)
	if !ok {
		return err
	}
	answer := []rune(failed.State.Answer())
	if len(answer) == 0 {
		return err
	}
	end := ""
	if len(answer) > maxQuotedAnswer {
		answer, end = answer[:maxQuotedAnswer], "…"
	}
	return &agent.RunError{State: failed.State, Err: fmt.Errorf("%w; the last answer was %q", failed.Err, string(answer)+end)}
}

// maxQuotedAnswer is the maximum number of answer characters in an error.
const maxQuotedAnswer = 200

// errParked is returned when a run has no typed answer because it is parked.
var errParked = errors.New("no final answer yet: the run is parked: State.Interventions lists its questions; " +
	"continue it with Agent.Resume, which returns the answer as text")

// ofAnswer removes the word "arguments" from a decoding error, so that the model reads it as an error in its answer.
func ofAnswer(err error) error {
	if wrong, ok := errors.AsType[*agent.ArgumentsError](err); ok {
		_, text, _ := strings.Cut(wrong.Error(), ": ")
		return errors.New(text)
	}
	return err
}

// findObject returns the only JSON object in an answer. It returns an answer unchanged that is JSON or begins as a
// broken object, so that the decoder names its mistakes.
func findObject(answer string) (string, error) {
	text := strings.TrimSpace(answer)
	if json.Valid([]byte(text)) {
		return text, nil
	}
	var found []string
	rest := text
	for range mostBraces {
		at := strings.IndexByte(rest, '{')
		if at < 0 {
			break
		}
		rest = rest[at:]
		var object json.RawMessage
		err := json.NewDecoder(strings.NewReader(rest)).Decode(&object)
		switch {
		case err == nil:
			found, rest = append(found, string(object)), rest[len(object):]
		case len(rest) == len(text):
			return text, nil
		case errors.Is(err, io.ErrUnexpectedEOF): // the rest is part of the object
			return "", errNotJSON
		default:
			rest = rest[1:]
		}
	}
	switch {
	case len(found) > 1 || strings.Contains(rest, "{"):
		return "", errors.New("the answer has text around several objects: answer with one JSON object and no other text")
	case len(found) == 0:
		return "", errNotJSON
	}
	return found[0], nil
}

// mostBraces is the maximum number of places in an answer where an object can begin.
const mostBraces = 100

// errNotJSON is returned when an answer has no JSON object.
var errNotJSON = errors.New("the answer is not JSON: answer with one JSON object and no other text")

// formName returns a name for T that every service accepts.
func formName[T any]() string {
	name, _, _ := strings.Cut(reflect.TypeFor[T]().Name(), "[") // without type arguments
	name = strings.Map(func(r rune) rune {
		return lo.Ternary(r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z', r, -1)
	}, name)
	return cmp.Or(name[:min(len(name), maxFormName)], "answer")
}

// maxFormName is the length in bytes of the longest name that every service accepts.
const maxFormName = 64
