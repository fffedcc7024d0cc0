package kit_test

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/toolexec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// built returns an agent of the driver and the capabilities.
func built(t testing.TB, d agent.Driver, list ...capability.Capability) *agent.Agent {
	t.Helper()
	a, err := builder.New().WithName("helper").WithDriver(d).With(list...).Build().Get()
	require.NoError(t, err)
	return a
}

// wrong returns what is said of a capability that makes no sense.
func wrong(t testing.TB, c capability.Capability) string {
	t.Helper()
	_, err := builder.New().WithDriver(agenttest.Script()).With(c).Build().Get()
	require.Error(t, err)
	return err.Error()
}

// run runs an agent to its end, whatever that is.
func run(t testing.TB, a *agent.Agent, s agent.State, input string) (agent.State, error) {
	t.Helper()
	final, err := a.Run(t.Context(), s, agent.UserText(input)).Get()
	if failed, ok := errors.AsType[*agent.RunError](err); ok {
		final = failed.State
	}
	return final, err
}

// done runs an agent that must succeed.
func done(t testing.TB, a *agent.Agent, s agent.State, input string) agent.State {
	t.Helper()
	final, err := run(t, a, s, input)
	require.NoError(t, err)
	return final
}

// tool returns a tool that answers with the same each time.
func tool(name, answer string) toolexec.Tool {
	return toolexec.Func(name, "Says "+name+".", func(context.Context, struct{}) (string, error) { return answer, nil })
}

// told returns what the model was told by tools, in order.
func told(s agent.State) []string {
	var texts []string
	for _, m := range s.Messages() {
		if m.Role() == agent.RoleTool {
			texts = append(texts, m.Text())
		}
	}
	return texts
}

// through returns a state as it comes back from JSON.
func through(t testing.TB, s agent.State) agent.State {
	t.Helper()
	text, err := s.MarshalJSON()
	require.NoError(t, err)
	var out agent.State
	require.NoError(t, out.UnmarshalJSON(text))
	return out
}

// names returns the names of tools.
func names(tools agent.Tools) []string {
	var out []string
	for _, spec := range tools.All() {
		out = append(out, spec.Name)
	}
	return out
}

// describes is a driver that says what it is.
type describes struct {
	*agenttest.Driver
	features agent.Features
}

func (d describes) Features() agent.Features { return d.features }

func (d describes) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.signed(s, d.Driver.Next(ctx, s))
}

func (d describes) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return d.signed(s, d.Driver.Stream(ctx, s, emit))
}

// signed returns the reply with who gave it.
func (d describes) signed(s agent.State, r mo.Result[agent.Step]) mo.Result[agent.Step] {
	return r.Map(func(step agent.Step) (agent.Step, error) {
		step.Model = cmp.Or(s.Request().Model, d.features.Model)
		return step, nil
	})
}

// model returns a scripted driver of a model with that name.
func model(name string, turns ...agenttest.Turn) describes {
	return describes{agenttest.Script(turns...), agent.Features{Provider: "test", Model: name}}
}

// kinded is an error of a kind.
type kinded agent.ErrorKind

func (k kinded) Error() string              { return "it is " + string(k) }
func (k kinded) ErrorKind() agent.ErrorKind { return agent.ErrorKind(k) }

// texts returns each message's text.
func texts(list []agent.Message) []string {
	return lo.Map(list, func(m agent.Message, _ int) string { return m.Text() })
}

// keepsContract checks a capability's executor wrapper against the executor contract.
func keepsContract(t *testing.T, c capability.Capability) {
	t.Helper()
	agenttest.TestExecutor(t, func(t *testing.T, tools agenttest.Tools) agent.Executor {
		t.Helper()
		var outermost agent.Executor
		plan := capability.Plan{}.WithDriver(agenttest.Script()).WithExecutor(tools.Executor()).
			WrapExecutor(capability.Outside, "outermost", func(x agent.Executor) agent.Executor { outermost = x; return x })
		c.Install(plan).MustGet().Agent().MustGet()
		return outermost
	})
}

// drivesAsDriver checks a capability's driver wrapper against the driver contract.
func drivesAsDriver(t *testing.T, c capability.Capability) {
	t.Helper()
	agenttest.TestDriver(t, func(t *testing.T) agent.Driver {
		t.Helper()
		var outermost agent.Driver
		plan := capability.Plan{}.WithDriver(agenttest.Script().Then(agenttest.Say("hi"))).
			WrapDriver(capability.Outside, "outermost", func(d agent.Driver) agent.Driver { outermost = d; return d })
		c.Install(plan).MustGet().Agent().MustGet()
		return outermost
	})
}
