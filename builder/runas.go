package builder

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Answer is the typed end of a run.
type Answer[T any] struct {
	// Value is the final answer, read from its JSON.
	Value T
	// State is the state that the run ended in.
	State agent.State
}

// RunAs runs an agent such that its final answer is a T. The JSON Schema of T is
// inferred, the model service is told of it, and an answer that does not have the
// form is sent back to the model with what is wrong, up to three times.
//
// T must be something that JSON Schema can describe as it stands; most services
// want a struct. A run that ends otherwise than with an answer, stopped by a limit
// for example, is an Err with the state in it, an *agent.RunError.
func RunAs[T any](ctx context.Context, a *agent.Agent, s agent.State, input ...agent.Message) mo.Result[Answer[T]] {
	schema, err := toolexec.SchemaFor[T]()
	if err != nil {
		return mo.Err[Answer[T]](fmt.Errorf("run for a typed answer: %w", err))
	}
	decoder, err := toolexec.NewDecoderWith[T](schema)
	if err != nil {
		return mo.Err[Answer[T]](fmt.Errorf("run for a typed answer: %w", err))
	}
	var value T
	output := &agent.Output{Name: formName[T](), Schema: schema.String(), Check: func(answer string) error {
		var candidate T
		return decoder.Decode(unfenced(answer), &candidate)
	}}
	final, err := a.RunWith(ctx, agent.RunSettings{Output: output}, s, input...).Get()
	if err != nil {
		return mo.Err[Answer[T]](err)
	}
	if final.Status() != agent.StatusDone {
		signal := final.StopSignal().OrEmpty()
		return mo.Err[Answer[T]](&agent.RunError{State: final, Err: fmt.Errorf(
			"no final answer: the run is %s by %s (%s): %s", final.Status(), signal.Source, signal.Reason, signal.Message)})
	}
	if err := decoder.Decode(unfenced(final.Answer()), &value); err != nil {
		return mo.Err[Answer[T]](&agent.RunError{State: final, Err: errors.Join(errors.New("the final answer does not have the form that was asked for"), err)})
	}
	return mo.Ok(Answer[T]{Value: value, State: final})
}

// unfenced is the answer without the code fence that models like to put around
// JSON.
func unfenced(answer string) string {
	text := strings.TrimSpace(answer)
	if !strings.HasPrefix(text, "```") || !strings.HasSuffix(text, "```") || len(text) < 6 {
		return text
	}
	text = strings.TrimSuffix(text, "```")
	_, body, ok := strings.Cut(text, "\n")
	if !ok {
		return strings.TrimSpace(answer)
	}
	return strings.TrimSpace(body)
}

// formName is a name for T that every service takes.
func formName[T any]() string {
	name := fmt.Sprintf("%T", *new(T))
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return -1
	}, name)
	if name == "" {
		return "answer"
	}
	return name
}
