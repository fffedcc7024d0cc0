package toolexec

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/grapnel-go/grapnel/agent"
)

// Func returns a tool that calls a Go func. In, a struct, defines the arguments: see SchemaFor. Out defines the answer.
// The model receives a string, an agent.Content or an Output unchanged, anything else as JSON.
//
//	add := toolexec.Func("add", "Adds two numbers.", func(_ context.Context, in struct{ A, B int }) (string, error) {
//		return strconv.Itoa(in.A + in.B), nil
//	})
//
// If arguments cannot be decoded into In, NewToolbox returns an error for the tool.
func Func[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) Tool {
	var withCall func(ctx context.Context, c Call, in In) (Out, error)
	if f != nil {
		withCall = func(ctx context.Context, _ Call, in In) (Out, error) { return f(ctx, in) }
	}
	return CallFunc(agent.ToolSpec{Name: name, Description: description}, withCall)
}

// CallFunc works like Func, for a func that needs the call or a tool that has its own schema. spec.Parameters can be
// stricter than In. Empty Parameters are inferred from In.
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

// newTyped returns a tool that decodes an In, without its func, and a function that converts its answers.
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

// unusable returns the model's error for calling a tool that a toolbox would refuse.
func unusable(err error) error { return fmt.Errorf("the tool is not usable: %w", err) }

// decoderFor returns a decoder for In, and recovers a panic of In's methods.
func decoderFor[In any](schema string) (d *Decoder[In], err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	if schema == "" {
		return NewDecoder[In]()
	}
	compiled, err := CompileSchema(schema)
	if err != nil {
		return nil, err
	}
	return newDecoderWith[In](compiled)
}

// typedTool decodes its arguments into an In.
type typedTool[In any] struct {
	spec    agent.ToolSpec
	decoder *Decoder[In]
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

// typedBody holds a call's decoded arguments and the executor's preparedCall, in one allocation from Prepare to Execute.
type typedBody[In any] struct {
	preparedCall

	tool *typedTool[In]
	in   In
}

func (b *typedBody[In]) Run(ctx context.Context, c Call) (Output, error) {
	return b.tool.run(ctx, c, b.in)
}
