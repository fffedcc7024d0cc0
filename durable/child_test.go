package durable_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// family is agents that start one another: a boss has two others, each of which has one
// of its own. Each works in one run only. It outlives the process they run in.
type family struct {
	mu      sync.Mutex
	effects map[string]int             // by agent, step and call
	keys    map[string]map[string]bool // the idempotency keys of each
	models  map[string]int             // by agent and step
	told    map[string]int             // what hooks were told
	asks    time.Duration              // how long there is to answer about the second step of a leaf; zero: no question
	late    agent.ApprovalVerdict
	// approver answers; nil for agent.ParkApprover.
	approver agent.Approver
	during   func(ctx context.Context, what string) error // what else a call does
}

func newFamily() *family {
	return &family{effects: map[string]int{}, keys: map[string]map[string]bool{}, models: map[string]int{}, told: map[string]int{}}
}

// ofCalls names the agents by the calls that start them.
var ofCalls = map[string]string{".": "boss", "n": "north", "s": "south", "n/l": "north leaf", "s/l": "south leaf"}

func (f *family) build(t *testing.T, k *durable.Keeper) *agent.Agent {
	t.Helper()
	call := func(id, to string) agent.ToolCall {
		return agent.ToolCall{ID: id, Name: "task", Arguments: fmt.Sprintf(`{"agent":%q,"instruction":"go"}`, to)}
	}
	add := func(id string) agent.ToolCall { return agent.ToolCall{ID: id, Name: "add"} }
	leaf := func(name string) builder.AgentBuilder {
		return f.member(name, []agent.ToolCall{add("a"), add("b")}, []agent.ToolCall{add("a")})
	}
	middle := func(name string) builder.AgentBuilder {
		return f.member(name, []agent.ToolCall{call("l", name+" leaf")}).
			With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: leaf(name + " leaf")}}})
	}
	boss := f.member("boss", []agent.ToolCall{call("n", "north"), call("s", "south"), add("a")}).WithParallel(3).
		With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: middle("north")}, {Agent: middle("south")}}},
			capability.UseHooks(hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				if f.asks == 0 || c.Tool() != "add" || c.StepIndex() != 1 {
					return c.Pass()
				}
				return c.AskAbout(agent.Question{Reason: "it adds", Within: f.asks, OnTimeout: f.late})
			}), hooks.ObserveAll("tell", func(_ context.Context, c hooks.Context) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.told[fmt.Sprint(c.Point(), " of ", c.Run().Agent)]++
				return nil
			}, hooks.PreSubagent, hooks.PostSubagent, hooks.SubagentFailed, hooks.ExecutionEnd)),
			capability.UseDurability{Keeper: k}, capability.UseApproval(lo.CoalesceOrEmpty(f.approver, agent.ParkApprover)))
	a, err := boss.Build().Get()
	require.NoError(t, err)
	return a
}

// member returns an agent whose model asks for calls, step by step, and is done then.
func (f *family) member(name string, steps ...[]agent.ToolCall) builder.AgentBuilder {
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		n := s.RunStepCount()
		f.models[fmt.Sprint(name, " ", n)]++
		if n >= len(steps) {
			return agent.Step{Message: agent.Assistant(name + " is done.")}, nil
		}
		return agent.Step{Message: agent.Assistant("", steps[n]...), Usage: agent.Usage{InputTokens: 1}}, nil
	})
	add := toolexec.CallFunc(agent.ToolSpec{Name: "add"}, func(ctx context.Context, c toolexec.Call, _ struct{}) (string, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		key := fmt.Sprint(name, " ", c.State.RunStepCount(), " ", c.ID)
		f.effects[key]++
		if f.keys[key] == nil {
			f.keys[key] = map[string]bool{}
		}
		f.keys[key][c.IdempotencyKey()] = true
		if f.during != nil {
			if err := f.during(ctx, key); err != nil {
				return "", err
			}
		}
		return "added", nil
	})
	ended := hooks.ObserveAll("tell "+name, func(_ context.Context, c hooks.Context) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.told[fmt.Sprint(c.Point(), " of ", name)]++
		return nil
	}, hooks.ExecutionEnd, hooks.InputSubmitted)
	return builder.New().WithName(name).WithDriver(driver).
		With(capability.UseTools(toolexec.WithPolicy(add, toolexec.Policy{Doubt: toolexec.DoubtRepeat})), capability.UseHooks(ended))
}

const familyCalls = 1 + 2*3

// Wherever a run with others below it is cut off, all of them continue from there: no call
// that the journal records as answered runs again, at any depth, and the model is not asked
// again for a recorded reply. There is one run in the store.
func TestSubagentsGoOnFromWhereTheyWereCutOff(t *testing.T) {
	t.Parallel()
	undisturbed, store := newFamily(), openStore(t)
	want, err := undisturbed.build(t, durable.Keep(store, durable.Options{})).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.Equal(t, agent.StatusDone, want.Status())
	runs, err := store.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Len(t, undisturbed.effects, familyCalls)

	cuts := 0
	for writes, ended := int64(1), false; !ended; writes++ {
		f, inner := newFamily(), openStore(t)
		dying := &brittle{Store: inner}
		dying.left.Store(writes)
		k := durable.Keep(dying, durable.Options{Patience: -1})
		_, err := f.build(t, k).RunWith(t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
		if ended = err == nil; ended {
			break
		}
		require.ErrorIs(t, err, errDead)
		cuts++
		begun, done, replies := familyJournal(t, inner)
		before := &family{effects: maps.Clone(f.effects), models: maps.Clone(f.models)}

		k = durable.Keep(inner, durable.Options{})
		s, err := k.Resume(t.Context(), f.build(t, k), "run", durable.TakeOver).Get()
		require.NoError(t, err, "after %d writes", writes)
		assert.Equal(t, agent.StatusDone, s.Status())
		assert.Equal(t, said(want), said(s), "after %d writes", writes)
		assert.Len(t, f.effects, familyCalls)
		for key, n := range f.effects {
			if done[key] {
				assert.Equal(t, before.effects[key], n, "%s was done, after %d writes", key, writes)
			}
			if n > 1 {
				assert.True(t, begun[key], "%s was delivered again, after %d writes", key, writes)
			}
			assert.Len(t, f.keys[key], 1, "%s has one idempotency key", key)
		}
		for key, n := range f.models {
			if replies[key] {
				assert.Equal(t, before.models[key], n, "the model had answered %s, after %d writes", key, writes)
			}
		}
		again, err := durable.Load(t.Context(), inner, "run")
		require.NoError(t, err)
		assert.Equal(t, said(want), said(again))
	}
	assert.Greater(t, cuts, 50)
}

// familyJournal returns the calls that the journal records as begun and as answered, and the replies.
func familyJournal(t *testing.T, store durable.Store) (begun, done, replies map[string]bool) {
	t.Helper()
	entries, err := store.Entries(t.Context(), "run", 0)
	require.NoError(t, err)
	begun, done, replies = map[string]bool{}, map[string]bool{}, map[string]bool{}
	steps := map[string]int{}
	for _, e := range entries {
		kind, who := e.Kind, ofCalls[path.Clean(e.Key)]
		if below, ok := strings.CutPrefix(string(kind), "child."); ok {
			kind = durable.EntryKind(below)
		}
		of := ofCalls[path.Dir(e.Key)]
		call := fmt.Sprint(of, " ", steps[of], " ", path.Base(e.Key))
		switch kind {
		case durable.EntryReply:
			replies[fmt.Sprint(who, " ", steps[who])] = true
		case durable.EntryCall:
			begun[call] = true
		case durable.EntryResult:
			done[call] = true
		case durable.EntryStep:
			steps[who]++
		}
	}
	return begun, done, replies
}

// Sub-agents that wait are one row: the questions are those of the run that the caller
// started, any process may answer, and another process continues. The store may be encrypted.
func TestSubagentsThatWait(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprint("encrypted ", encrypted), func(t *testing.T) {
			f, store := newFamily(), openStore(t)
			f.asks = time.Hour
			if encrypted {
				store = openEncrypted(t, tempFile(t), durable.Encryption{Key: key})
			}
			process := func() (*durable.Keeper, *agent.Agent) {
				k := durable.Keep(store, durable.Options{})
				return k, f.build(t, k)
			}
			_, a := process()
			s, err := a.RunWith(t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			require.True(t, s.Waiting())
			runs, err := store.List(t.Context(), durable.Filter{})
			require.NoError(t, err)
			require.Len(t, runs, 1)
			assert.Equal(t, durable.StatusWaiting, runs[0].Status)
			assert.Empty(t, runs[0].Owner)
			questions, err := store.Waits(t.Context(), "run")
			require.NoError(t, err)
			require.Equal(t, []string{"n/l/a", "s/l/a"}, lo.Map(questions, func(q durable.Wait, _ int) string { return q.Subject }))
			about, err := durable.InterventionOf(questions[0])
			require.NoError(t, err)
			assert.Equal(t, "north leaf", about.Child.Agent)
			assert.Equal(t, "n/l/a", about.CallID())
			due := readyRuns(t, store)
			assert.Empty(t, due)
			assert.Equal(t, 1, f.effects["boss 0 a"], "what was asked for beside them has run")
			assert.Equal(t, 1, f.effects["north leaf 0 b"])

			require.NoError(t, durabletest.Approve(t.Context(), store, "run", "s/l/a", agent.Approval{Verdict: agent.Approve, By: "ann"}))
			require.ErrorIs(t, durabletest.Approve(t.Context(), store, "run", "s/l/a", agent.Approval{}), durable.ErrAnswered)
			require.ErrorIs(t, durabletest.Approve(t.Context(), store, "run", "l/a", agent.Approval{}), durable.ErrChanged)
			k, a := process()
			s, err = k.Resume(t.Context(), a, "run", durable.TakeFree).Get()
			require.NoError(t, err)
			require.True(t, s.Waiting(), "one waits still")
			require.NoError(t, durabletest.Approve(t.Context(), store, "run", "n/l/a", agent.Approval{Verdict: agent.RejectAndContinue}))
			due = readyRuns(t, store)
			require.Len(t, due, 1)
			k, a = process()
			s, err = k.Resume(t.Context(), a, "run", durable.TakeFree).Get()
			require.NoError(t, err)
			assert.Equal(t, agent.StatusDone, s.Status())
			assert.Len(t, f.effects, familyCalls-1)
			for key, n := range f.effects {
				assert.Equal(t, 1, n, key)
			}
			for key, n := range f.models {
				assert.Equal(t, 1, n, key)
			}
			for what, n := range map[string]int{
				"PreSubagent of boss": 2, "PostSubagent of boss": 2, "PreSubagent of north": 0, "ExecutionEnd of boss": 2,
				"ExecutionEnd of north leaf": 1, "InputSubmitted of north leaf": 1,
			} {
				assert.Equal(t, n, f.told[what], what)
			}
			questions, err = store.Waits(t.Context(), "run")
			require.NoError(t, err)
			assert.Empty(t, questions)
		})
	}
}

// Sub-agents that wait also end when their time is over, when a rejection ends the run, and
// when an operator cancels it: each ends once.
func TestTheEndOfSubagentsThatWait(t *testing.T) {
	for name, tc := range map[string]struct {
		within time.Duration
		late   agent.ApprovalVerdict
		what   func(t *testing.T, store durable.Store)
		status agent.Status
		leaf   string
		effect int
	}{
		"time is over, and they go on":   {time.Nanosecond, agent.RejectAndContinue, nil, agent.StatusDone, "", familyCalls - 2},
		"time is over, and that is a no": {time.Nanosecond, agent.RejectAndEnd, nil, agent.StatusInterrupted, "SubagentFailed of boss", familyCalls - 2},
		"a no": {time.Hour, agent.RejectAndEnd, func(t *testing.T, store durable.Store) {
			t.Helper()
			require.NoError(t, durabletest.Approve(t.Context(), store, "run", "n/l/a", agent.Approval{Verdict: agent.RejectAndEnd, By: "ann"}))
		}, agent.StatusInterrupted, "SubagentFailed of boss", familyCalls - 2},
		"cancelled": {time.Hour, agent.RejectAndEnd, func(t *testing.T, store durable.Store) {
			t.Helper()
			require.NoError(t, store.Signal(t.Context(), "run", durable.Signal{Kind: durable.SignalCancel, Text: "not needed"}))
		}, agent.StatusCancelled, "SubagentFailed of boss", familyCalls - 2},
	} {
		t.Run(name, func(t *testing.T) {
			f, store := newFamily(), openStore(t)
			f.asks, f.late = tc.within, tc.late
			_, err := f.build(t, durable.Keep(store, durable.Options{})).RunWith(t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			if tc.what != nil {
				tc.what(t, store)
			}
			due := readyRuns(t, store)
			require.Len(t, due, 1)
			k := durable.Keep(store, durable.Options{})
			s, err := k.Resume(t.Context(), f.build(t, k), "run", durable.TakeFree).Get()
			if failed, ok := errors.AsType[*agent.RunError](err); ok {
				s = failed.State
			}
			assert.Equal(t, tc.status, s.Status())
			assert.Len(t, f.effects, tc.effect)
			for _, who := range []string{"north leaf", "south leaf", "north", "south"} {
				assert.Equal(t, 1, f.told["ExecutionEnd of "+who], who)
			}
			if tc.leaf != "" {
				assert.Equal(t, 2, f.told[tc.leaf])
			}
			about, err := store.Run(t.Context(), "run")
			require.NoError(t, err)
			assert.Equal(t, tc.status, about.AgentStatus())
			loaded, err := durable.Load(t.Context(), store, "run")
			require.NoError(t, err)
			assert.Equal(t, said(s), said(loaded))
		})
	}
}

// A process that is suspended lets sub-agents park at the end of their steps, and another
// continues them. No call is in doubt, so none runs twice.
func TestSuspendedSubagents(t *testing.T) {
	f, store := newFamily(), openStore(t)
	k := durable.Keep(store, durable.Options{})
	f.during = func(context.Context, string) error { k.Suspend(); return nil }
	s, err := f.build(t, k).RunWith(t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	processes := 1
	for ; s.Parked(); processes++ {
		require.False(t, s.Waiting())
		k = durable.Keep(store, durable.Options{})
		s, err = k.Resume(t.Context(), f.build(t, k), "run", durable.TakeFree).Get()
		require.NoError(t, err)
	}
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Greater(t, processes, 2, "one for each step in which something is added, and one more")
	assert.Len(t, f.effects, familyCalls)
	for key, n := range f.effects {
		assert.Equal(t, 1, n, key)
	}
	for key, n := range f.models {
		assert.Equal(t, 1, n, key)
	}
}

// A process that is cut off in the middle of a call of a sub-agent leaves the call open:
// the call runs again, and is not answered with "cancelled".
func TestSubagentsThatAreCutOff(t *testing.T) {
	want := func() string {
		f := newFamily()
		s, err := f.build(t, durable.Keep(openStore(t), durable.Options{})).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		return said(s)
	}()
	for _, where := range []string{"boss 0 a", "north leaf 0 a", "south leaf 1 a"} {
		t.Run(where, func(t *testing.T) {
			f, store := newFamily(), openStore(t)
			ctx, cut := context.WithCancelCause(t.Context())
			f.during = func(ctx context.Context, what string) error {
				if what == where && f.effects[what] == 1 {
					cut(agent.ErrSuspended)
					return context.Cause(ctx)
				}
				return nil
			}
			k := durable.Keep(store, durable.Options{})
			s, err := f.build(t, k).RunWith(ctx, agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			require.True(t, s.Parked())
			k = durable.Keep(store, durable.Options{})
			s, err = k.Resume(t.Context(), f.build(t, k), "run", durable.TakeFree).Get()
			require.NoError(t, err)
			assert.Equal(t, agent.StatusDone, s.Status())
			assert.Equal(t, want, said(s))
			assert.Equal(t, 2, f.effects[where])
			assert.Len(t, f.effects, familyCalls)
			for key := range f.effects {
				assert.Len(t, f.keys[key], 1, "%s has one idempotency key", key)
			}
		})
	}
}

// An agent with a keeper cannot be a sub-agent of an agent without one.
func TestASubagentIsKeptWithItsParentOrNotAtAll(t *testing.T) {
	f := newFamily()
	below := f.member("below").With(capability.UseDurability{Keeper: durable.Keep(openStore(t), durable.Options{})})
	_, err := f.member("above").With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: below}}}).Build().Get()
	require.ErrorContains(t, err, `agent "below": its runs are durable but those of its parent agent are not`)
}

// A tool that starts a run by itself, without looking for the run that it has started before, gets an error and no
// second run.
func TestARunThatHasBegunIsNotStartedAgain(t *testing.T) {
	store := openStore(t)
	starts := 0
	build := func(k *durable.Keeper, during func()) *agent.Agent {
		below, err := builder.New().WithName("below").WithDriver(agent.DriverFunc(func(ctx context.Context, _ agent.State) (agent.Step, error) {
			starts++
			during()
			return agent.Step{Message: agent.Assistant("Done.")}, ctx.Err()
		})).With(capability.UseDurability{Keeper: k}).Build().Get()
		require.NoError(t, err)
		own := toolexec.CallFunc(agent.ToolSpec{Name: "own"}, func(ctx context.Context, c toolexec.Call, _ struct{}) (string, error) {
			s, err := below.RunWith(durable.Within(ctx, c.State, c.ID), agent.RunSettings{Parent: c.State.Run()}, agent.NewState(), agent.UserText("go")).Get()
			return s.Answer(), cmp.Or(err, ctx.Err())
		})
		a, err := builder.New().WithName("above").WithDriver(agenttest.Script(agenttest.Call("own", `{}`), agenttest.Say("Done."))).
			With(capability.UseTools(toolexec.WithPolicy(own, toolexec.Policy{Doubt: toolexec.DoubtRepeat})), capability.UseDurability{Keeper: k}).Build().Get()
		require.NoError(t, err)
		return a
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	k := durable.Keep(store, durable.Options{})
	_, err := build(k, func() { cancel(agent.ErrSuspended) }).RunWith(ctx, agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	k = durable.Keep(store, durable.Options{})
	s, err := k.Resume(t.Context(), build(k, func() {}), "run", durable.TakeFree).Get()
	require.NoError(t, err)
	assert.Equal(t, 1, starts)
	for _, step := range s.RunSteps() {
		result := step.Result(0)
		assert.Contains(t, result.Text(), "which has not ended: resume that run")
		break
	}
}
