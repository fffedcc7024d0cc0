package builder_test

import (
	"context"
	"os"
	"testing"

	"github.com/samber/mo"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

func TestMain(m *testing.M) {
	if file, ok := os.LookupEnv(serverEnv); ok { // this process is an MCP server
		serveLeak(file)
		return
	}
	goleak.VerifyTestMain(m)
}

// part is a capability that says what it needs. It leaves its name in the name of
// the agent.
type part struct {
	name            string
	requires, after []string
}

func (p part) Name() string       { return p.name }
func (p part) Requires() []string { return p.requires }
func (p part) After() []string    { return p.after }

func (p part) Install(plan capability.Plan) mo.Result[capability.Plan] {
	return mo.Ok(plan.WithName(plan.Name() + p.name))
}

type nothing struct{}

func tool(name string) toolexec.Tool {
	return toolexec.Func(name, "Says its name.", func(context.Context, nothing) (string, error) { return name, nil })
}

func passes(name string) hooks.Hook {
	return hooks.On(hooks.AtStepStart, name, func(_ context.Context, c hooks.StepContext) hooks.Result { return c.Allow() })
}
