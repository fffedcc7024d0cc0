package capability_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/hooks"
)

// diary is what hooks were asked, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// taken returns what was written so far, and an empty diary.
func (d *diary) taken() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

// guard returns a control before tools that notes that it was asked.
func (d *diary) guard(name string, priority int) hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result {
		d.add(name + " of " + c.Run().Agent)
		return c.Allow()
	}).WithPriority(priority)
}

// watch returns an observer after tools that notes that it was told.
func (d *diary) watch(name string) hooks.Hook {
	return hooks.Observe(hooks.AtPostToolUse, name, func(context.Context, hooks.ToolResultContext) error {
		d.add(name)
		return nil
	})
}

func denier(name string) hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Deny("not in this run") })
}

func clerk(t *testing.T, list ...capability.Capability) *agent.Agent {
	t.Helper()
	a, err := builder.New().WithName("clerk").WithDriver(agenttest.Script(agenttest.Call("pay", `{}`), agenttest.Say("Paid.")).EachRun()).
		With(capability.UseTools(tool("pay"))).With(list...).Build().Get()
	require.NoError(t, err)
	return a
}

// LH-01…06: one run's hooks share one order with the agent's hooks, and end with the run.
func TestHooksOfOneRun(t *testing.T) {
	var d diary
	a := clerk(t, capability.UseHooks(d.guard("own", 0), d.guard("own-guard", hooks.PriorityGuard), d.watch("own-watch")))
	more := hooks.WithHooks(d.guard("more", 0), d.guard("more-guard", hooks.PriorityGuard), d.watch("more-watch"))

	for range 2 {
		_, err := a.RunWith(t.Context(), more, agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, []string{
			"own-guard of clerk", "more-guard of clerk", "own of clerk", "more of clerk", "more-watch", "own-watch",
		}, d.taken(), "by priority, of equals the agent's first; the other way round afterwards")
		_, err = a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, []string{"own-guard of clerk", "own of clerk", "own-watch"}, d.taken())
	}
}

// An agent without any hooks has room for a run's hooks, at every point, in every way to run.
func TestHooksOfOneRunEverywhere(t *testing.T) {
	var d diary
	all := hooks.ObserveAll("all", func(_ context.Context, c hooks.Context) error { d.add(string(c.Point())); return nil })
	want := []string{
		"InputSubmitted", "ExecutionStart", "StepStart", "PreInference", "PostInference", "PreToolUse", "PostToolUse", "StepEnd",
		"StepStart", "PreInference", "PostInference", "StepEnd", "Stop", "ExecutionEnd",
	}
	a := clerk(t)
	settings := hooks.WithHooks(all)
	settings.ID = "run_mine"

	s, err := a.RunWith(t.Context(), settings, agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, want, d.taken())
	assert.Equal(t, agent.RunID("run_mine"), s.Run().ID, "other settings count, too")

	for _, err := range a.StreamWith(t.Context(), hooks.WithHooks(all), agent.NewState(), agent.UserText("go")) {
		require.NoError(t, err)
	}
	assert.Equal(t, want, d.taken())

	session := a.Session(agent.NewState())
	_, err = session.RunWith(t.Context(), hooks.WithHooks(all), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, append([]string{"ConversationStart"}, want...), d.taken())
	_, err = session.Run(t.Context(), agent.UserText("again")).Get()
	require.NoError(t, err)
	require.NoError(t, session.Close(t.Context()))
	assert.Empty(t, d.taken())

	session = a.Session(agent.NewState())
	require.NoError(t, session.Run(t.Context(), agent.UserText("go")).Error())
	require.NoError(t, session.RunWith(t.Context(), hooks.WithHooks(all), agent.UserText("again")).Error())
	assert.NotContains(t, d.taken(), "ConversationStart", "the conversation has started without hooks")

	extended, err := a.WithHooks(hooks.NewSet(all)).Get()
	require.NoError(t, err)
	_, err = extended.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, want, d.taken())
}

// Errors in a run's hooks are reported before the run starts.
func TestWrongHooksOfOneRun(t *testing.T) {
	var d diary
	recorder := agenttest.Record()
	a := clerk(t, capability.UseHooks(d.guard("own", 0)), capability.UseObserver(recorder))
	for want, set := range map[string]agent.HookSet{
		`agent "clerk": hooks for a run: hook "own" is declared twice: names must be unique`: hooks.NewSet(d.guard("own", 0)),
		`hook "two" is declared twice`:               hooks.NewSet(d.guard("two", 0), d.guard("two", 0)),
		`hook 2 has no name`:                         hooks.NewSet(d.guard("", 0)),
		`unexpected type capability_test.otherHooks`: otherHooks{},
	} {
		_, err := a.RunWith(t.Context(), agent.RunSettings{Hooks: set}, agent.NewState(), agent.UserText("go")).Get()
		require.ErrorContains(t, err, want)
	}
	assert.Empty(t, recorder.Events())
	assert.Empty(t, d.taken())

	byHand, err := agent.New(agent.Config{Name: "hand", Driver: agenttest.Script(agenttest.Say("Hi."))}).Get()
	require.NoError(t, err)
	_, err = byHand.RunWith(t.Context(), hooks.WithHooks(denier("no")), agent.NewState(), agent.UserText("go")).Get()
	require.ErrorContains(t, err, `agent "hand": hooks for a run: Config.Extend is not set`)
}

type otherHooks struct{}

func (otherHooks) Controls() []string { return nil }

// Delegating work to a sub-agent does not bypass a run's hooks.
func TestSubagentsInheritTheHooksOfARun(t *testing.T) {
	var b bench
	var d diary
	sub := helper("helper", &b, agenttest.Call("look", `{}`), agenttest.Say("Seen."))
	a, err := builder.New().WithName("boss").WithDriver(agenttest.Script(task("helper", "look"), agenttest.Say("Done.")).EachRun()).
		With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: sub}}}).Build().Get()
	require.NoError(t, err)

	no := hooks.On(hooks.AtPreToolUse, "no", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		d.add(c.Call().Name + " of " + c.Run().Agent)
		return c.Deny("not in this run")
	}, hooks.ToolNamed("look"))
	_, err = a.RunWith(t.Context(), hooks.WithHooks(no, d.watch("watch")), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"look of helper", "watch"}, d.taken(), "controls are inherited, observers are not")
	assert.Empty(t, b.used)

	_, err = a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"look by helper at 1"}, b.used)
}

// The agent's Drain waits for a run's detached hooks, too.
func TestDetachedHooksOfOneRun(t *testing.T) {
	var d diary
	begun, goOn := make(chan struct{}), make(chan struct{})
	later := hooks.Observe(hooks.AtExecutionEnd, "later", func(context.Context, hooks.EndContext) error {
		close(begun)
		<-goOn
		d.add("later")
		return nil
	}).Detach()
	a := clerk(t)
	_, err := a.RunWith(t.Context(), hooks.WithHooks(later), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	<-begun
	assert.Empty(t, d.taken())
	close(goOn)
	require.NoError(t, a.Drain(t.Context()))
	assert.Equal(t, []string{"later"}, d.taken())
}

// asks parks the first call.
func asks() []capability.Capability {
	ask := hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("it pays") })
	return []capability.Capability{capability.UseHooks(ask), capability.UseApproval(agent.ParkApprover)}
}

// A run that began with additional controls can be resumed only with them.
func TestARunGoesOnOnlyWithItsControls(t *testing.T) {
	var d diary
	set := hooks.NewSet(d.guard("more", 0), d.watch("watch"), denier("shadow").InShadow())
	a := clerk(t, asks()...)
	parked, err := a.RunWith(t.Context(), agent.RunSettings{Hooks: set}, agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.True(t, parked.Waiting())
	d.taken()
	parked = throughJSON(t, parked)
	id := parked.Interventions()[0].CallID()
	parked = agenttest.WithApproval(parked, id, agent.Approval{Verdict: agent.Approve})

	for _, resume := range []func(context.Context, agent.State) error{
		func(ctx context.Context, s agent.State) error { return a.Resume(ctx, s).Error() },
		func(ctx context.Context, s agent.State) error {
			settings := hooks.WithHooks(d.guard("another", 0))
			settings.Resume = true
			return a.RunWith(ctx, settings, s).Error()
		},
		func(ctx context.Context, s agent.State) error { return clerk(t, asks()...).Resume(ctx, s).Error() },
	} {
		missing, ok := errors.AsType[*agent.MissingHooksError](resume(t.Context(), parked))
		require.True(t, ok)
		assert.Equal(t, []string{"more"}, missing.Hooks, "those that only watch, or stand in shadow, may be left away")
		assert.Equal(t, parked.Run().ID, missing.Run)
	}
	assert.Empty(t, d.taken())

	// Given again, with one more: from now on, it takes both.
	settings := hooks.WithHooks(d.guard("more", 0), hooks.On(hooks.AtPreToolUse, "once-more", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Ask("it pays, and more")
	}, hooks.ToolNamed("pay"), hooks.When(func(hooks.Context) bool { return false })))
	settings.Resume = true
	final, err := clerk(t, asks()...).RunWith(t.Context(), settings, parked).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, []string{"more of clerk"}, d.taken())

	// To be ended, it needs nothing.
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.Resume(cancelled, parked).Get()
	broken, ok := errors.AsType[*agent.RunError](err)
	require.True(t, ok)
	assert.Equal(t, agent.StatusCancelled, broken.State.Status())

	// The next run of the session is another one.
	next, err := clerk(t).Run(t.Context(), final, agent.UserText("and again")).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, next.Status())
}

// The same holds for a stored run in another process: a process without the hooks cannot resume
// it, and does not prevent a process with the hooks from resuming it.
func TestAKeptRunGoesOnOnlyWithItsControls(t *testing.T) {
	var d diary
	store := memory.New()
	defer store.Close()
	one, other := durable.Keep(store, durable.Options{Owner: "one"}), durable.Keep(store, durable.Options{Owner: "other"})
	set := hooks.NewSet(d.guard("more", 0))
	kept := func(k *durable.Keeper) *agent.Agent {
		return clerk(t, append(asks(), capability.UseDurability{Keeper: k})...)
	}
	parked, err := kept(one).RunWith(t.Context(), agent.RunSettings{Hooks: set}, agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	id := parked.Run().ID
	require.NoError(t, durabletest.Approve(t.Context(), store, id, parked.Interventions()[0].CallID(), agent.Approval{Verdict: agent.Approve}))

	_, err = one.Resume(t.Context(), kept(one), id, durable.TakeFree).Get()
	missing, ok := errors.AsType[*agent.MissingHooksError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, []string{"more"}, missing.Hooks)

	d.taken()
	extended, err := kept(other).WithHooks(set).Get()
	require.NoError(t, err)
	final, err := other.Resume(t.Context(), extended, id, durable.TakeFree).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, []string{"more of clerk"}, d.taken())
}

// Hooks for runs may be put on top of one another; what the agent was built of stays as it is.
func TestMoreAndMoreHooks(t *testing.T) {
	var d diary
	a := clerk(t)
	once, err := a.WithHooks(hooks.NewSet(d.guard("one", 0))).Get()
	require.NoError(t, err)
	twice, err := once.WithHooks(hooks.NewSet(d.guard("two", 0))).Get()
	require.NoError(t, err)
	_, err = twice.WithHooks(hooks.NewSet(d.guard("one", 0))).Get()
	require.ErrorContains(t, err, `hook "one" is declared twice`)
	for want, of := range map[*agent.Agent][]string{a: nil, once: {"one of clerk"}, twice: {"one of clerk", "two of clerk"}} {
		_, err := want.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, of, d.taken())
	}
}

// One agent serves runs with and without additional hooks at the same time.
func TestHooksOfRunsAtOnce(t *testing.T) {
	a := clerk(t, capability.UseHooks(passes("own")))
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			settings := agent.RunSettings{}
			if i%2 == 0 {
				settings = hooks.WithHooks(denier("no"))
			}
			s, err := a.RunWith(t.Context(), settings, agent.NewState(), agent.UserText("go")).Get()
			if !assert.NoError(t, err) {
				return
			}
			results := answers(s)
			assert.Equal(t, i%2 != 0, results[0].Executed())
		})
	}
	all.Wait()
}
