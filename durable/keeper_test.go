package durable_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	"github.com/grapnel-go/grapnel/toolexec"
)

// openStore opens a new store that does not wait for the disk: these tests do not cover a loss
// of power.
func openStore(t *testing.T) durable.Store {
	t.Helper()
	store := memory.New()
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	return store
}

// world holds the effects of a run outside of itself, and counts its requests. It outlives the
// process that executes the run.
type world struct {
	mu      sync.Mutex
	effects map[string]int // by idempotency key
	models  map[int]int    // how often the model was asked, by step
	hooks   map[string]int // how often a hook did what it does once
}

func newWorld() *world {
	return &world{effects: map[string]int{}, models: map[int]int{}, hooks: map[string]int{}}
}

const lastStep = 4

// agent returns the agent of this world, as each process builds it.
func (w *world) agent(t *testing.T, k *durable.Keeper, more ...capability.Capability) *agent.Agent {
	t.Helper()
	add := toolexec.CallFunc(agent.ToolSpec{Name: "add"}, func(_ context.Context, c toolexec.Call, in struct{ N int }) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.effects[c.IdempotencyKey()]++
		return fmt.Sprint("added ", in.N), nil
	})
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		n := s.RunStepCount()
		w.models[n]++
		if n == lastStep {
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}
		return agent.Step{
			Message: agent.Assistant("", agent.ToolCall{ID: "a", Name: "add", Arguments: fmt.Sprintf(`{"N":%d}`, 2*n)},
				agent.ToolCall{ID: "b", Name: "add", Arguments: fmt.Sprintf(`{"N":%d}`, 2*n+1)}),
			Usage: agent.Usage{InputTokens: 10}, FinishReason: agent.FinishToolCalls,
		}, nil
	})
	once := hooks.On(hooks.AtStepEnd, "once", func(ctx context.Context, c hooks.StepEndContext) hooks.Result {
		name := fmt.Sprint("mail ", c.StepIndex())
		_, err := k.Once(ctx, c.State(), name, true, func(context.Context, string) ([]byte, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.hooks[name]++
			return nil, nil
		})
		if err != nil {
			return c.Fail(err)
		}
		return c.Allow(agent.SessionKey[int]("steps").Set(c.StepIndex() + 1))
	})
	a, err := builder.New().WithName("clerk").WithDriver(driver).WithParallel(2).
		With(capability.UseTools(toolexec.WithPolicy(add, toolexec.Policy{Doubt: toolexec.DoubtRepeat})),
			capability.UseHooks(once), capability.UseDurability{Keeper: k}).With(more...).Build().Get()
	require.NoError(t, err)
	return a
}

// brittle is the store of a process that dies after a number of entries.
type brittle struct {
	durable.Store

	left atomic.Int64
}

var errDead = errors.New("the process is dead")

func (s *brittle) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	had := s.left.Add(-int64(max(1, len(c.Entries)))) + int64(max(1, len(c.Entries)))
	switch {
	case had <= 0:
		return errDead
	case int(had) < len(c.Entries): // a commit of its own had the first ones
		c.Entries, c.Update = c.Entries[:had], durable.Update{}
		return errors.Join(errDead, s.Store.Commit(ctx, l, c))
	}
	return s.Store.Commit(ctx, l, c)
}

func (s *brittle) Release(context.Context, durable.Lease, time.Duration) error { return errDead }

func said(s agent.State) string {
	var b strings.Builder
	for _, m := range s.Messages() {
		fmt.Fprintf(&b, "%s %s %s", m.Role(), m.Text(), m.CallID())
		for _, c := range m.Calls() {
			fmt.Fprintf(&b, " %s %s", c.ID, c.Arguments)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Wherever a run is cut off, it continues from there: the transcript is that of an
// undisturbed run, every effect is there, and nothing is done again that the journal
// records as done, replies included.
func TestARunGoesOnFromWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	undisturbed := newWorld()
	store := openStore(t)
	want, err := undisturbed.agent(t, durable.Keep(store, durable.Options{})).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.Equal(t, agent.StatusDone, want.Status())
	about, err := store.Run(t.Context(), want.Run().ID)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusCompleted, about.Status)
	assert.Equal(t, lastStep+1, about.Steps)
	assert.Empty(t, about.Owner)

	ended := false
	for writes := int64(1); !ended; writes++ {
		w, inner := newWorld(), openStore(t)
		dying := &brittle{Store: inner}
		dying.left.Store(writes)
		k := durable.Keep(dying, durable.Options{Patience: -1})
		_, err := w.agent(t, k).RunWith(t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
		if ended = err == nil; ended {
			break
		}
		require.ErrorIs(t, err, errDead)
		entries, err := inner.Entries(t.Context(), "run", 0)
		require.NoError(t, err)
		begun, done, replies := map[string]bool{}, map[string]bool{}, map[int]bool{}
		step := 0
		for _, e := range entries {
			key := fmt.Sprintf("run/%d/%s", step, e.Key)
			switch e.Kind {
			case durable.EntryReply:
				replies[step] = true
			case durable.EntryCall:
				begun[key] = true
			case durable.EntryResult:
				done[key] = true
			case durable.EntryStep:
				step++
			}
		}
		before := &world{effects: maps.Clone(w.effects), models: maps.Clone(w.models)}

		k = durable.Keep(inner, durable.Options{})
		s, err := k.Resume(t.Context(), w.agent(t, k), "run", durable.TakeOver).Get()
		require.NoError(t, err, "after %d writes", writes)
		assert.Equal(t, agent.StatusDone, s.Status())
		assert.Equal(t, said(want), said(s), "after %d writes", writes)
		assert.Equal(t, want.RunUsage(), s.RunUsage())
		steps, _ := agent.SessionKey[int]("steps").From(s)
		assert.Equal(t, lastStep+1, steps)
		assert.Len(t, w.effects, 2*lastStep)
		for key, n := range w.effects {
			if done[key] {
				assert.Equal(t, before.effects[key], n, "%s was done, after %d writes", key, writes)
			}
			if n > 1 {
				assert.True(t, begun[key], "%s was delivered again, after %d writes", key, writes)
			}
		}
		for step, n := range w.models {
			if replies[step] {
				assert.Equal(t, before.models[step], n, "the model had answered step %d, after %d writes", step, writes)
			}
		}
		again, err := durable.Load(t.Context(), inner, "run")
		require.NoError(t, err)
		assert.Equal(t, said(want), said(again))
	}
}

// A func of Once runs once, unless its outcome is unknown: then it runs again, or not.
func TestOnce(t *testing.T) {
	inner := openStore(t)
	w := newWorld()
	dying := &brittle{Store: inner}
	dying.left.Store(1 << 30)
	k := durable.Keep(dying, durable.Options{Patience: -1})
	var errs []error
	do := func(s agent.State, name string, repeat bool, f func(string)) {
		_, err := k.Once(t.Context(), s, name, repeat, func(_ context.Context, key string) ([]byte, error) { f(key); return []byte(name), nil })
		errs = append(errs, err)
	}
	a := w.agent(t, k, capability.UseHooks(hooks.On(hooks.AtStepStart, "acts", func(_ context.Context, c hooks.StepContext) hooks.Result {
		if c.StepIndex() != 1 {
			return c.Pass()
		}
		do(c.State(), "sure", false, func(key string) { w.hooks[key]++ })
		do(c.State(), "again", true, func(key string) {
			if w.hooks[key]++; w.hooks[key] == 1 {
				dying.left.Store(0)
			}
		})
		do(c.State(), "never", false, func(key string) { w.hooks[key]++ })
		return c.Pass()
	})))
	_, err := a.RunWith(t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
	require.ErrorIs(t, err, errDead)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], errDead, "it was done, and could not be written down")
	errs = nil
	dying.left.Store(1 << 30)
	s, err := k.Resume(t.Context(), a, "run", durable.TakeOver).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	for _, err := range errs {
		require.NoError(t, err)
	}
	assert.Equal(t, 1, w.hooks["run/once/sure"])
	assert.Equal(t, 2, w.hooks["run/once/again"])
	assert.Equal(t, 1, w.hooks["run/once/never"])

	data, err := durable.Keep(inner, durable.Options{}).Once(t.Context(), s, "x", false, func(context.Context, string) ([]byte, error) { return []byte("y"), nil })
	require.NoError(t, err)
	assert.Equal(t, "y", string(data), "in a run that is not kept")
}

func asks(name string) capability.Capability {
	return capability.UseHooks(hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result {
		if n, _ := c.Call().Argument("N"); n != "2" && n != "3" {
			return c.Pass()
		}
		return c.AskAbout(agent.Question{Reason: "it is " + c.Tool(), Within: time.Hour})
	}))
}

// LH-63, LH-68, LH-69, LH-70: a run that waits is rows in a store and
// nothing else; another process answers, a third continues; a run that has ended is read as it
// ended. Each call has one answer, behind the reply that asked for it.
func TestAParkedRun(t *testing.T) {
	store, w := openStore(t), newWorld()
	var notices []durable.Notice
	k := durable.Keep(store, durable.Options{Notify: []durable.Notifier{
		durable.NotifierFunc(func(_ context.Context, n durable.Notice) error {
			notices = append(notices, n)
			return errors.New("no paper")
		}),
	}})
	parkingAgent := func(k *durable.Keeper) *agent.Agent {
		return w.agent(t, k, asks("guard"), capability.UseApproval(agent.ParkApprover))
	}
	s, err := parkingAgent(k).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	id := s.Run().ID
	assert.True(t, s.Waiting())
	about, err := store.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusWaiting, about.Status)
	assert.Empty(t, about.Owner)
	assert.WithinDuration(t, time.Now().Add(time.Hour), about.AnswerBy, time.Minute)
	require.Len(t, notices, 1)
	require.Len(t, notices[0].Calls, 2)
	token := notices[0].Calls[0].Token
	q, err := store.WaitByToken(t.Context(), durable.TokenHash(token))
	require.NoError(t, err)
	i, err := durable.InterventionOf(q)
	require.NoError(t, err)
	assert.Equal(t, notices[0].Calls[0].Call, i.Call)
	assert.Equal(t, "it is add", i.Questions.Reason())
	due := readyRuns(t, store)
	assert.Empty(t, due)

	other := durable.Keep(store, durable.Options{})
	s, err = other.Resume(t.Context(), parkingAgent(other), id, durable.TakeFree).Get()
	require.NoError(t, err)
	assert.True(t, s.Waiting(), "no answer came")
	require.NoError(t, durabletest.Approve(t.Context(), store, id, "a", agent.Approval{Verdict: agent.Approve, By: "ann"}))
	require.ErrorIs(t, durabletest.Approve(t.Context(), store, id, "a", agent.Approval{Verdict: agent.RejectAndEnd}), durable.ErrAnswered)
	require.ErrorIs(t, durabletest.Approve(t.Context(), store, id, "z", agent.Approval{}), durable.ErrChanged)
	s, err = other.Resume(t.Context(), parkingAgent(other), id, durable.TakeFree).Get()
	require.NoError(t, err)
	assert.True(t, s.Waiting(), "one of two waits")
	assert.Equal(t, 1, w.models[1])
	require.NoError(t, durabletest.Approve(t.Context(), store, id, "b", agent.Approval{Verdict: agent.RejectAndContinue, By: "ann", Reason: "odd"}))
	due = readyRuns(t, store)
	require.Len(t, due, 1)
	s, err = other.Resume(t.Context(), parkingAgent(other), id, durable.TakeFree).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1}, w.models)
	assert.Len(t, w.effects, 2*lastStep-1)
	loaded, err := durable.Load(t.Context(), store, id)
	require.NoError(t, err)
	assert.Equal(t, said(s), said(loaded))
	same, err := other.Resume(t.Context(), parkingAgent(other), id, durable.TakeFree).Get()
	require.NoError(t, err)
	assert.Equal(t, said(s), said(same), "what has ended has ended")
	step := same.LastStep()
	assert.Zero(t, step.ResultCount())
	answers := map[string]int{}
	for _, m := range same.Messages() {
		if m.Role() == agent.RoleTool {
			answers[m.CallID()]++
		}
	}
	assert.Equal(t, map[string]int{"a": lastStep, "b": lastStep}, answers)
}

// While the switch is on, no tool runs, also in runs that have begun.
func TestDenyTools(t *testing.T) {
	store, w := openStore(t), newWorld()
	k := durable.Keep(store, durable.Options{})
	a := w.agent(t, k, capability.UseHooks(hooks.Observe(hooks.AtStepEnd, "off", func(ctx context.Context, c hooks.StepEndContext) error {
		return store.SetDenyTools(ctx, durable.Switch{On: c.StepIndex() == 0, Reason: "fire drill"})
	})))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Len(t, w.effects, 2*(lastStep-1))
	for i, step := range s.RunSteps() {
		for _, r := range step.Results() {
			assert.Equal(t, i == 1, r.Denied())
			if i == 1 {
				assert.Equal(t, `tool "add": denied by deny-tools: fire drill`, r.Text())
			}
		}
	}
}

// A process that lost its run because it was taken for dead cannot write, and its run returns ErrStale.
func TestAStaleProcess(t *testing.T) {
	store, w := openStore(t), newWorld()
	k := durable.Keep(store, durable.Options{})
	ended := false
	var k2 *durable.Keeper
	a := w.agent(t, k, capability.UseHooks(
		hooks.Observe(hooks.AtStepStart, "thief", func(ctx context.Context, c hooks.StepContext) error {
			if c.StepIndex() == 1 && k2 == nil {
				k2 = durable.Keep(store, durable.Options{})
				s, err := k2.Resume(ctx, w.agent(t, k2), c.Run().ID, durable.TakeOver).Get()
				assert.NoError(t, err)
				assert.Equal(t, agent.StatusDone, s.Status())
			}
			return nil
		}),
		hooks.Observe(hooks.AtExecutionEnd, "end", func(context.Context, hooks.EndContext) error { ended = true; return nil })))
	_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.ErrorIs(t, err, durable.ErrStale)
	assert.False(t, ended, "it is no end of the run")
	for key, n := range w.effects {
		assert.Equal(t, 1, n, key)
	}
}

// A run whose cancellation is requested ends as cancelled: one that runs, and one that waits.
func TestCancel(t *testing.T) {
	store, w := openStore(t), newWorld()
	k := durable.Keep(store, durable.Options{Lease: 30 * time.Millisecond})
	a := w.agent(t, k, capability.UseHooks(hooks.Observe(hooks.AtStepStart, "waits", func(ctx context.Context, c hooks.StepContext) error {
		if c.StepIndex() == 1 {
			assert.NoError(t, store.Signal(ctx, c.Run().ID, durable.Signal{Kind: durable.SignalCancel, Text: "no longer wanted"}))
			<-ctx.Done()
		}
		return nil
	})))
	_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	var wanted *durable.CancelledError
	require.ErrorAs(t, err, &wanted)
	var broken *agent.RunError
	require.ErrorAs(t, err, &broken)
	about, err := store.Run(t.Context(), broken.State.Run().ID)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusCancelled, about.Status)

	ends := 0
	parked := w.agent(t, k, asks("guard"), capability.UseApproval(agent.ParkApprover),
		capability.UseHooks(hooks.Observe(hooks.AtExecutionEnd, "end", func(context.Context, hooks.EndContext) error { ends++; return nil })))
	s, err := parked.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.NoError(t, store.Signal(t.Context(), s.Run().ID, durable.Signal{Kind: durable.SignalCancel, Text: "too late"}))
	_, err = k.Resume(t.Context(), parked, s.Run().ID, durable.TakeFree).Get()
	require.ErrorAs(t, err, &wanted)
	about, err = store.Run(t.Context(), s.Run().ID)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusCancelled, about.Status)
	assert.Equal(t, 1, ends)
	assert.Empty(t, about.AnswerBy)
}

// A process that is suspended releases its runs after their current step.
func TestSuspend(t *testing.T) {
	store, w := openStore(t), newWorld()
	k := durable.Keep(store, durable.Options{})
	ends := 0
	a := w.agent(t, k, capability.UseHooks(
		hooks.Observe(hooks.AtStepStart, "sigterm", func(_ context.Context, c hooks.StepContext) error {
			if c.StepIndex() == 1 {
				k.Suspend()
			}
			return nil
		}),
		hooks.Observe(hooks.AtExecutionEnd, "end", func(context.Context, hooks.EndContext) error { ends++; return nil })))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.True(t, s.Parked())
	assert.Equal(t, 2, s.RunStepCount())
	due := readyRuns(t, store)
	require.Len(t, due, 1)
	k = durable.Keep(store, durable.Options{})
	s, err = k.Resume(t.Context(), w.agent(t, k), due[0].ID, durable.TakeFree).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Zero(t, ends, "the agent that went on has no such hook")
	assert.Len(t, w.effects, 2*lastStep)
}

// A store that fails for a while delays a run and does not end it.
func TestAStoreThatIsAwayForAWhile(t *testing.T) {
	inner, w := openStore(t), newWorld()
	flaky := &failing{Store: inner}
	k := durable.Keep(flaky, durable.Options{})
	s, err := w.agent(t, k).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	for key, n := range w.effects {
		assert.Equal(t, 1, n, key)
	}
	assert.Positive(t, flaky.failed)
}

// failing is a store whose every fourth write fails.
type failing struct {
	durable.Store

	n, failed int
}

func (s *failing) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	if s.n++; s.n%4 == 0 {
		s.failed++
		return errors.New("connection refused")
	}
	return s.Store.Commit(ctx, l, c)
}

// The agent comes from a test script: scripts and stores work together.
func TestARunWithoutToolsIsKept(t *testing.T) {
	store := openStore(t)
	a, err := builder.New().WithDriver(agenttest.Script(agenttest.Say("hello"))).
		With(capability.UseDurability{Keeper: durable.Keep(store, durable.Options{})}).Build().Get()
	require.NoError(t, err)
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hi")).Get()
	require.NoError(t, err)
	loaded, err := durable.Load(t.Context(), store, s.Run().ID)
	require.NoError(t, err)
	assert.Equal(t, said(s), said(loaded))
	_, err = builder.New().WithDriver(agenttest.Script()).With(capability.UseDurability{}).Build().Get()
	require.ErrorContains(t, err, "no keeper")
}

// half is a store with some reads that fail.
var errAway = errors.New("the database is away")

type half struct {
	durable.Store

	runs      int // how many reads of what is known of a run work
	questions func() ([]durable.Wait, error)
}

func (s *half) Run(ctx context.Context, id agent.RunID) (durable.Run, error) {
	if s.runs--; s.runs < 0 {
		return durable.Run{}, errAway
	}
	return s.Store.Run(ctx, id)
}

func (s *half) Waits(ctx context.Context, id agent.RunID) ([]durable.Wait, error) {
	if s.questions != nil {
		return s.questions()
	}
	return s.Store.Waits(ctx, id)
}

// LH-47, LH-54, LH-69: a run whose answers or cancellation cannot be read does not continue;
// without a stored question no answer counts. The run can be resumed afterwards.
func TestWhatCannotBeReadIsNoYes(t *testing.T) {
	inner, w := openStore(t), newWorld()
	k := durable.Keep(inner, durable.Options{})
	s, err := w.agent(t, k, asks("guard"), capability.UseApproval(agent.ParkApprover)).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	id := s.Run().ID
	require.NoError(t, durabletest.Approve(t.Context(), inner, id, "a", agent.Approval{Verdict: agent.Approve}))
	require.NoError(t, durabletest.Approve(t.Context(), inner, id, "b", agent.Approval{Verdict: agent.Approve}))
	for name, store := range map[string]*half{
		"the questions":     {Store: inner, runs: 9, questions: func() ([]durable.Wait, error) { return nil, errAway }},
		"no question":       {Store: inner, runs: 9, questions: func() ([]durable.Wait, error) { return nil, nil }},
		"a spoilt question": {Store: inner, runs: 9, questions: func() ([]durable.Wait, error) { return []durable.Wait{{ID: "a", Data: []byte("?")}}, nil }},
		"the cancelling":    {Store: inner, runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			k := durable.Keep(store, durable.Options{})
			s, err := k.Resume(t.Context(), w.agent(t, k, asks("guard"), capability.UseApproval(agent.ParkApprover)), id, durable.TakeFree).Get()
			if name == "no question" {
				require.NoError(t, err)
				assert.True(t, s.Waiting())
			} else {
				require.Error(t, err)
			}
			assert.Len(t, w.effects, 2, "those of the step before")
		})
	}
	s, err = k.Resume(t.Context(), w.agent(t, k, asks("guard"), capability.UseApproval(agent.ParkApprover)), id, durable.TakeFree).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
}

// LH-50, LH-72: the store has what has passed the hooks; a rejection is stored before the model
// reads it.
func TestWhatIsStored(t *testing.T) {
	store, w := openStore(t), newWorld()
	k := durable.Keep(store, durable.Options{})
	const secret = "hunter2"
	seen := 0
	a := w.agent(t, k, asks("guard"), capability.UseApproval(agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		return agent.Approval{Verdict: agent.RejectAndEnd, By: "ann", Reason: "no " + "more"}, nil
	})), capability.UseHooks(
		hooks.On(hooks.AtInputSubmitted, "clean-input", func(_ context.Context, c hooks.InputContext) hooks.Result {
			return c.RewriteText(strings.ReplaceAll(c.Text(), secret, "***"))
		}),
		hooks.On(hooks.AtPostToolUse, "clean", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
			return c.Replace(strings.ReplaceAll(c.Text(), "added", "***"))
		}),
		hooks.Observe(hooks.AtInterventionStopped, "told", func(ctx context.Context, c hooks.InterventionStoppedContext) error {
			s, err := durable.Load(ctx, store, c.Run().ID)
			require.NoError(t, err)
			last := s.LastStep()
			assert.Equal(t, agent.ReasonRejected, last.Result(0).Reason)
			seen++
			return nil
		})))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("my password is "+secret)).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusInterrupted, s.Status())
	assert.Equal(t, 1, seen)
	entries, err := store.Entries(t.Context(), s.Run().ID, 0)
	require.NoError(t, err)
	for _, e := range entries {
		assert.NotContains(t, string(e.Data), secret)
		assert.NotContains(t, string(e.Data), "added")
	}
	about, err := store.Run(t.Context(), s.Run().ID)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusStopped, about.Status)
	assert.Equal(t, agent.StopRejected, about.Reason)
}

// A run whose input was never accepted ends with ErrNotBegun when it is resumed.
func TestARunThatNeverBegan(t *testing.T) {
	store, w := openStore(t), newWorld()
	k := durable.Keep(store, durable.Options{})
	lease, err := store.Begin(t.Context(), durable.Job{ID: "run", Name: "clerk"}, "gone", time.Hour)
	require.NoError(t, err)
	require.NoError(t, store.Release(t.Context(), lease, 0))
	_, err = k.Resume(t.Context(), w.agent(t, k), "run", durable.TakeFree).Get()
	require.ErrorIs(t, err, durable.ErrNotBegun)
	about, err := store.Run(t.Context(), "run")
	require.NoError(t, err)
	assert.Equal(t, durable.StatusFailed, about.Status)
	due := readyRuns(t, store)
	assert.Empty(t, due)
}

// Agent.Resume refuses a durable run, and its error names Keeper.Resume.
func TestAKeptRunIsResumedByItsKeeper(t *testing.T) {
	store, w := openStore(t), newWorld()
	k := durable.Keep(store, durable.Options{})
	a := w.agent(t, k, asks("guard"), capability.UseApproval(agent.ParkApprover))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	_, err = a.Resume(t.Context(), agenttest.WithApproval(s, "a", agent.Approval{Verdict: agent.RejectAndEnd})).Get()
	require.ErrorContains(t, err, "Keeper.Resume")
}

// An answer after the deadline does not count: OnTimeout of the question applies.
func TestAnAnswerThatComesTooLate(t *testing.T) {
	store, w := openStore(t), newWorld()
	k := durable.Keep(store, durable.Options{})
	hasty := capability.UseHooks(hooks.On(hooks.AtPreToolUse, "hasty", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.AskAbout(agent.Question{Reason: "now?", Within: time.Nanosecond, OnTimeout: agent.RejectAndEnd})
	}))
	a := w.agent(t, k, hasty, capability.UseApproval(agent.ParkApprover))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.ErrorIs(t, durabletest.Approve(t.Context(), store, s.Run().ID, "a", agent.Approval{Verdict: agent.Approve}), durable.ErrExpired)
	s, err = k.Resume(t.Context(), a, s.Run().ID, durable.TakeFree).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusInterrupted, s.Status())
	assert.Empty(t, w.effects)
	last := s.LastStep()
	assert.Equal(t, "timeout", last.Result(0).DecidedBy)
}

// Wherever a run is cut off after an answer, the answer stays the same, no question is asked
// again, and nothing is done twice that the journal records as done.
func TestAnAnsweredRunGoesOnFromWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	for writes, ended := int64(0), false; !ended; writes++ {
		w, inner := newWorld(), openStore(t)
		parking := func(k *durable.Keeper) *agent.Agent {
			return w.agent(t, k, asks("guard"), capability.UseApproval(agent.ParkApprover))
		}
		k := durable.Keep(inner, durable.Options{})
		_, err := parking(k).RunWith(t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		require.NoError(t, durabletest.Approve(t.Context(), inner, "run", "a", agent.Approval{Verdict: agent.Approve}))
		require.NoError(t, durabletest.Approve(t.Context(), inner, "run", "b", agent.Approval{Verdict: agent.RejectAndContinue, Reason: "odd"}))
		dying := &brittle{Store: inner}
		dying.left.Store(writes)
		k = durable.Keep(dying, durable.Options{Patience: -1})
		_, err = k.Resume(t.Context(), parking(k), "run", durable.TakeFree).Get()
		ended = err == nil
		if !ended {
			require.ErrorIs(t, err, errDead)
			about, err := inner.Run(t.Context(), "run")
			require.NoError(t, err)
			assert.Equal(t, durable.StatusRunning, about.Status)
			questions, err := inner.Waits(t.Context(), "run")
			require.NoError(t, err)
			assert.Equal(t, writes > 0, len(questions) == 0, "after %d writes", writes)
		}
		k = durable.Keep(inner, durable.Options{})
		s, err := k.Resume(t.Context(), parking(k), "run", durable.TakeOver).Get()
		require.NoError(t, err, "after %d writes", writes)
		assert.Equal(t, agent.StatusDone, s.Status())
		assert.Len(t, w.effects, 2*lastStep-1, "after %d writes", writes)
		i := 0
		for _, step := range s.RunSteps() {
			if i++; i == 2 {
				result := step.Result(1)
				assert.Equal(t, agent.ReasonRejected, result.Reason)
			}
		}
	}
}

// A func of Once also runs once when hooks of parallel calls use the same name.
func TestOnceAtOnce(t *testing.T) {
	store, w := openStore(t), newWorld()
	k := durable.Keep(store, durable.Options{})
	done := 0
	a := w.agent(t, k, capability.UseHooks(hooks.On(hooks.AtPostToolUse, "mail", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
		data, err := k.Once(ctx, c.State(), "mail", false, func(context.Context, string) ([]byte, error) { done++; return []byte("sent"), nil })
		if err != nil {
			return c.Fail(err)
		}
		assert.Equal(t, "sent", string(data))
		return c.Pass()
	})))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, 1, done)
}

// readyRuns returns the runs that a worker could claim.
func readyRuns(t *testing.T, store durable.Store) []durable.Run {
	t.Helper()
	_, err := store.Reconcile(t.Context())
	require.NoError(t, err)
	runs, err := store.List(t.Context(), durable.Filter{Status: []durable.Status{durable.StatusReady}})
	require.NoError(t, err)
	return runs
}

// A run that another runner of this process goes on with is still cancelled after the first execution has closed.
func TestTheNextExecutionReceivesSignals(t *testing.T) {
	store := openStore(t)
	k := durable.Keep(store, durable.Options{Owner: "one"})
	_, err := store.Submit(t.Context(), durable.Job{ID: "r"})
	require.NoError(t, err)
	open := func() (context.Context, *durable.Execution) {
		_, err := store.Acquire(t.Context(), "r", "one", time.Hour, durable.TakeFree)
		require.NoError(t, err)
		r, err := store.Run(t.Context(), "r")
		require.NoError(t, err)
		return k.Open(t.Context(), r)
	}
	_, first := open()
	r, err := store.Run(t.Context(), "r")
	require.NoError(t, err)
	require.NoError(t, store.Release(t.Context(), r.Lease(), 0))
	ctx, second := open()
	defer second.Close()
	first.Close()
	require.NoError(t, store.Signal(t.Context(), "r", durable.Signal{Kind: durable.SignalCancel, Text: "enough"}))
	select {
	case <-ctx.Done():
		require.ErrorContains(t, context.Cause(ctx), "enough")
	case <-time.After(time.Minute):
		t.Fatal("the signal was not received")
	}
}
