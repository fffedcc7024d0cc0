package toolexec

import (
	"context"
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
)

// Func makes a tool of a Go func. In, a struct, says what the arguments are: see SchemaFor. Out says what the answer
// is: a string is told to the model as it is, an agent.Content and an Output too, anything else as JSON.
//
//	add := toolexec.Func("add", "Adds two numbers.", func(_ context.Context, in struct{ A, B int }) (string, error) {
//		return strconv.Itoa(in.A + in.B), nil
//	})
//
// A type that arguments cannot be read into is found out when the tool is put into a toolbox.
func Func[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) Tool {
	t, output := newTyped[In, Out](agent.ToolSpec{Name: name, Description: description}, f != nil)
	t.plain = func(ctx context.Context, in In) (Output, error) {
		out, err := f(ctx, in)
		if err != nil {
			return Output{}, err
		}
		return output(out)
	}
	return t
}

// CallFunc works like Func for a tool that wants to know more of the call, or that has a schema of its own: spec.Parameters
// then says more than In can. Empty Parameters are inferred from In.
func CallFunc[In, Out any](spec agent.ToolSpec, f func(ctx context.Context, c Call, in In) (Out, error)) Tool {
	t, output := newTyped[In, Out](spec, f != nil)
	t.run = func(ctx context.Context, c Call, in In) (Output, error) {
		out, err := f(ctx, c, in)
		if err != nil {
			return Output{}, err
		}
		return output(out)
	}
	return t
}

// newTyped returns a tool that reads an In, still to be given what it runs, and how its answers are told.
func newTyped[In, Out any](spec agent.ToolSpec, hasFunc bool) (*typedTool[In], func(Out) (Output, error)) {
	t := &typedTool[In]{spec: spec}
	if t.decoder, t.err = decoderFor[In](spec.Parameters); t.err == nil {
		t.spec.Parameters = t.decoder.Schema().String()
	}
	if !hasFunc {
		t.err = errors.Join(t.err, errNoFunc)
	}
	return t, outputOf[Out]()
}

var errNoFunc = errors.New("the func is nil")

// unusable returns what a model is told that calls a tool which no toolbox would have taken.
func unusable(err error) error { return fmt.Errorf("the tool is not usable: %w", err) }

// decoderFor looks at the methods of In, and survives them.
func decoderFor[In any](schema string) (d *Decoder[In], err error) {
	defer recoverPanic(&err)
	if schema == "" {
		return NewDecoder[In]()
	}
	compiled, err := CompileSchema(schema)
	if err != nil {
		return nil, err
	}
	return newDecoderWith[In](compiled)
}

// typedTool reads its arguments into an In.
type typedTool[In any] struct {
	spec    agent.ToolSpec
	decoder *Decoder[In]
	plain   func(ctx context.Context, in In) (Output, error) // nil for one that wants to know the call
	run     func(ctx context.Context, c Call, in In) (Output, error)
	err     error
}

func (t *typedTool[In]) Spec() agent.ToolSpec { return t.spec }
func (t *typedTool[In]) Err() error           { return t.err }
func (t *typedTool[In]) readsStrictly()       {}

func (t *typedTool[In]) Prepare(args string) (Body, error) {
	if t.err != nil {
		return nil, unusable(t.err)
	}
	b := &typedBody[In]{tool: t}
	if err := t.decoder.Decode(args, &b.in); err != nil {
		return nil, err
	}
	return b, nil
}

// typedBody is a call's arguments, decoded, together with the place that the executor needs: one allocation
// takes both from Prepare to Execute.
type typedBody[In any] struct {
	place

	tool *typedTool[In]
	in   In
}

func (b *typedBody[In]) Run(ctx context.Context, c Call) (Output, error) {
	if b.tool.plain != nil {
		return b.tool.plain(ctx, b.in)
	}
	return b.tool.run(ctx, c, b.in)
}
