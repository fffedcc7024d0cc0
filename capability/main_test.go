package capability_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type nothing struct{}

// tool returns a tool that answers with its name.
func tool(name string) toolexec.Tool {
	return toolexec.Func(name, "Says its name.", func(context.Context, nothing) (string, error) { return name, nil })
}

// passes returns a control before each step that has nothing against it.
func passes(name string) hooks.Hook {
	return hooks.On(hooks.AtStepStart, name, func(_ context.Context, c hooks.StepContext) hooks.Result { return c.Allow() })
}

// installed returns a plan with the capabilities installed in the order given.
func installed(t require.TestingT, driver agent.Driver, list ...capability.Capability) capability.Plan {
	plan := capability.Plan{}.WithDriver(driver)
	for _, c := range list {
		var err error
		plan, err = c.Install(plan).Get()
		require.NoError(t, err)
	}
	return plan
}

// run runs what was planned to its end, whatever that is.
func run(t testing.TB, plan capability.Plan) (agent.State, error) {
	t.Helper()
	a, err := plan.Agent().Get()
	require.NoError(t, err)
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	if failed, ok := errors.AsType[*agent.RunError](err); ok {
		final = failed.State
	}
	return final, err
}

// calls returns a model that calls a tool for ever, for a dollar and two tokens a turn.
func calls(name string) *agenttest.Driver {
	return agenttest.Script().Then(agenttest.Call(name, `{}`).WithCost(1).WithTokens(1, 1))
}
