package capability_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/processor"
)

// changes is every method that adds to a plan.
var changes = map[string]func(p capability.Plan, n string) capability.Plan{
	"name":   func(p capability.Plan, n string) capability.Plan { return p.WithName(n) },
	"driver": func(p capability.Plan, n string) capability.Plan { return p.WithDriver(sayer(n)) },
	"request": func(p capability.Plan, n string) capability.Plan {
		return p.WithRequest(func(r agent.Request) agent.Request { r.Model = n; return r })
	},
	"tools": func(p capability.Plan, n string) capability.Plan { return p.WithTools(tool("t_" + n)) },
	"executor": func(p capability.Plan, n string) capability.Plan {
		return p.WithExecutor(namedExecutor{agenttest.Tools{}.Executor(), n})
	},
	"hooks": func(p capability.Plan, n string) capability.Plan { return p.WithHooks(passes("h-" + n)) },
	"around run": func(p capability.Plan, n string) capability.Plan {
		return p.AroundRun(capability.Inside, n, processor.Chain())
	},
	"around step": func(p capability.Plan, n string) capability.Plan {
		return p.AroundStep(capability.Outside, n, processor.Chain())
	},
	"wrap driver": func(p capability.Plan, n string) capability.Plan {
		return p.WrapDriver(capability.Inside, n, passThrough)
	},
	"wrap executor": func(p capability.Plan, n string) capability.Plan {
		return p.WrapExecutor(capability.Inside, n, sameExecutor)
	},
	"criteria": func(p capability.Plan, n string) capability.Plan {
		return p.WithCriteria(continuation.StopWhen(n, func(agent.State) bool { return false }))
	},
	"approver":      func(p capability.Plan, n string) capability.Plan { return p.WithApprover(namedApprover(n)) },
	"observer":      func(p capability.Plan, n string) capability.Plan { return p.WithObserver(namedObserver(n)) },
	"parallel":      func(p capability.Plan, n string) capability.Plan { return p.WithParallel(len(n) + 1) },
	"wrong request": func(p capability.Plan, _ string) capability.Plan { return p.WithRequest(nil) },
}

type sayer string

func (n sayer) String() string { return string(n) }
func (n sayer) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return agenttest.Script().Then(agenttest.Say(string(n))).Next(ctx, s)
}

type namedExecutor struct {
	agent.Executor

	name string
}

func (x namedExecutor) String() string { return x.name }

type namedApprover string

func (n namedApprover) String() string { return string(n) }
func (n namedApprover) Approve(context.Context, agent.State, []*agent.Prepared) ([]agent.Approval, error) {
	return nil, nil
}

type namedObserver string

func (n namedObserver) String() string                       { return string(n) }
func (n namedObserver) Observe(context.Context, agent.Event) {}

func sameExecutor(x agent.Executor) agent.Executor { return x }

// IP-07, IP-08: a method that adds something leaves the plan as it was, and two
// plans that come from one do not share a slot.
func TestPlansDoNotChange(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			base := change(change(capability.Plan{}.WithName("base"), "one"), "two")
			before := describe(base)
			left, right := change(base, "left"), change(base, "rightmost")
			wantLeft, wantRight := describe(change(base, "left")), describe(change(base, "rightmost"))
			change(change(base, "other"), "more")
			assert.Equal(t, before, describe(base))
			assert.Equal(t, wantLeft, describe(left))
			assert.Equal(t, wantRight, describe(right))
			assert.NotEqual(t, before, describe(left))
		})
	}
}

// describe returns all that can be seen of a plan.
func describe(p capability.Plan) string { return p.String() + fmt.Sprint(p.Agent().Error()) }

// All errors are reported together, each with its name.
func TestEverythingThatIsWrongIsToldAtOnce(t *testing.T) {
	var noTool = tool("x y")
	err := capability.Plan{}.
		WithTools(nil, noTool, tool("a"), tool("a")).
		WithHooks(passes("h"), passes("h"), hooks.Hook{}).
		WithParallel(-1).WithContinuations(-2).
		WithRequest(nil).WithApprover(nil).
		WithCriteria(continuation.Steps(1), nil).WithObserver(nil).WithBackground(nil).
		AroundRun(capability.Inside, "r", nil).AroundStep(capability.Outside, "s", nil).
		WrapDriver(capability.Inside, "d", nil).WrapExecutor(capability.Outside, "x", nil).
		Agent().Error()
	require.Error(t, err)
	assert.Equal(t, []string{
		`building the toolbox: tool 1 of 4 is nil`,
		`tool "x y": a name must be 1 to 64 letters, digits, _ and -`,
		`tool "a": the name is given twice`,
		`hook "h" is declared twice: names must be unique`,
		`hook 3 has no name: events and denials need one`,
		`hook 3: it has no func`,
		`hook 3: it has no point: make it with On, Observe or ObserveAll`,
		`the func that changes the request is nil`,
		`the approver is nil: omit it if no person can be asked`,
		`no driver: set one with WithDriver`,
		`parallel is -1: it must not be negative`,
		`continuations are -2: they must not be negative`,
		`the processor "r" is nil`,
		`the processor "s" is nil`,
		`the driver wrapper "d" is nil`,
		`the executor wrapper "x" is nil`,
		`criterion 2 of 2 is nil`,
		`observer 1 of 1 is nil`,
		`background 1 of 1 is nil`,
	}, strings.Split(err.Error(), "\n"))
}

// IP-16: two agents of one plan share no mutable data: draining or cancelling one does
// not affect the other.
func TestAgentsOfOnePlanAreIndependent(t *testing.T) {
	release, began := make(chan struct{}), make(chan string, 2)
	plan := capability.Plan{}.WithDriver(agenttest.Script().Then(agenttest.Say("hi"))).WithHooks(
		hooks.Observe(hooks.AtExecutionEnd, "d", func(ctx context.Context, c hooks.EndContext) error {
			began <- string(c.Run().ID)
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil
		}).Detach())
	one, two := plan.Agent().MustGet(), plan.Agent().MustGet()
	for _, a := range []*agent.Agent{one, two} {
		final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("x")).Get()
		require.NoError(t, err)
		assert.Equal(t, "hi", final.Answer())
		<-began
	}
	one.Cancel()
	require.NoError(t, one.Drain(t.Context()))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, two.Drain(done), "the hook of the other still runs")
	close(release)
	require.NoError(t, two.Drain(t.Context()))
}

// The empty plan is of an agent without hooks: nothing is wrapped.
func TestPlanWithoutHooks(t *testing.T) {
	plan := capability.Plan{}.WithDriver(sayer("hi"))
	assert.True(t, plan.Hooks().IsEmpty())
	final, err := run(t, plan)
	require.NoError(t, err)
	assert.Equal(t, "hi", final.Answer())
	assert.NotContains(t, plan.String(), "Hook")
}

func TestPlanSaysWhatIsInIt(t *testing.T) {
	plan := capability.Plan{}.WithTools(tool("a"), tool("b")).WithRequest(func(r agent.Request) agent.Request { r.Model = "m"; return r })
	var names []string
	for _, tool := range plan.Tools() {
		names = append(names, tool.Spec().Name)
	}
	assert.Equal(t, []string{"a", "b"}, names)
	assert.Equal(t, "m", plan.Request().Model)
}
