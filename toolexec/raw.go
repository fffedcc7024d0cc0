package toolexec

import (
	"context"
	"errors"

	"github.com/grapnel-go/grapnel/agent"
)

// noParameters is the schema of a tool that takes no arguments.
const noParameters = `{"type":"object","properties":{},"additionalProperties":false}`

// Raw returns a tool that calls a func which parses c.Arguments itself. The arguments have been checked against the
// JSON Schema in spec.Parameters. Empty Parameters allow no arguments. Out works as with Func.
func Raw[Out any](spec agent.ToolSpec, f func(ctx context.Context, c Call) (Out, error)) Tool {
	if spec.Parameters == "" {
		spec.Parameters = noParameters
	}
	t := &rawTool{spec: spec}
	t.schema, t.err = CompileSchema(spec.Parameters)
	if f == nil {
		t.err = errors.Join(t.err, errNoFunc)
	}
	output := outputOf[Out]()
	t.run = func(ctx context.Context, c Call) (Output, error) {
		out, err := f(ctx, c)
		if err != nil {
			return Output{}, err
		}
		return output(out)
	}
	return t
}

// rawTool checks its arguments and does not decode them.
type rawTool struct {
	spec   agent.ToolSpec
	schema *Schema
	run    func(ctx context.Context, c Call) (Output, error)
	err    error
}

func (t *rawTool) Spec() agent.ToolSpec { return t.spec }
func (t *rawTool) Err() error           { return t.err }
func (t *rawTool) readsStrictly()       {}

func (t *rawTool) Prepare(args string) (Body, error) {
	if t.err != nil {
		return nil, unusable(t.err)
	}
	if err := t.schema.Validate(args); err != nil {
		return nil, err
	}
	return &rawBody{run: t.run}, nil
}

type rawBody struct {
	preparedCall

	run func(ctx context.Context, c Call) (Output, error)
}

func (b *rawBody) Run(ctx context.Context, c Call) (Output, error) { return b.run(ctx, c) }
