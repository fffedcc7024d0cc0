package durable_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// commits is a store that records the kinds of the entries of each commit, and of those with audit records also the calls of the records.
type commits struct {
	durable.Store

	mu    sync.Mutex
	all   []string
	audit []string
	kinds map[durable.EntryKind]chan struct{} // closed when an entry of the kind is in the journal
}

func (s *commits) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	err := s.Store.Commit(ctx, l, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range c.Entries {
		if wrote := s.kinds[e.Kind]; wrote != nil {
			close(wrote)
			delete(s.kinds, e.Kind)
		}
	}
	kinds := strings.Join(lo.Map(c.Entries, func(e durable.Entry, _ int) string { return string(e.Kind) }), " ")
	s.all = append(s.all, kinds)
	if len(c.Records) > 0 {
		s.audit = append(s.audit, kinds+": "+strings.Join(lo.Map(c.Records, func(r durable.AuditRecord, _ int) string { return r.Answer.Subject }), " "))
	}
	return err
}

// parallel lets calls of a step run at once.
type parallel struct{ calls int }

func (p parallel) Install(plan capability.Plan) mo.Result[capability.Plan] {
	return mo.Ok(plan.WithParallel(p.calls))
}

// committer returns an agent of one step with a number of calls, and its store.
func committer(t *testing.T, calls int, delay time.Duration, more ...capability.Capability) (*agent.Agent, *commits) {
	t.Helper()
	store := &commits{Store: openStore(t)}
	k := durable.Keep(store, durable.Options{})
	k.SetCommitDelay(delay)
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		if s.RunStepCount() > 0 {
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}
		return agent.Step{Message: agent.Assistant("", lo.Times(calls, func(i int) agent.ToolCall {
			return agent.ToolCall{ID: fmt.Sprint("call_", i), Name: "add", Arguments: `{}`}
		})...)}, nil
	})
	add := toolexec.Func("add", "Adds.", func(context.Context, struct{}) (string, error) { return "added", nil })
	a, err := builder.New().WithDriver(driver).With(capability.UseTools(add), capability.UseDurability{Keeper: k}).With(more...).Build().Get()
	require.NoError(t, err)
	return a, store
}

// A step with one call takes two commits, each further call one more, and calls that begin together share one.
func TestCommitsOfAStep(t *testing.T) {
	t.Parallel()
	// Entries wait for the one that follows, however slow the machine is.
	const delay = time.Hour
	for name, tc := range map[string]struct {
		calls int
		more  []capability.Capability
		want  []string
	}{
		"no call": {0, nil, []string{"begin", "reply step", "end"}},
		"a call":  {1, nil, []string{"begin", "reply decision call", "result step", "reply step", "end"}},
		"one after the other": {
			3, nil,
			[]string{"begin", "reply decision decision decision call", "result call", "result call", "result step", "reply step", "end"},
		},
		"a denied call": {
			1, []capability.Capability{capability.UseHooks(hooks.On(hooks.AtPreToolUse, "no", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				return c.Deny("no")
			}))},
			[]string{"begin", "reply decision result step", "reply step", "end"},
		},
		"an approval is asked for": {
			1, []capability.Capability{capability.UseApproval(agent.ParkApprover), capability.UseHooks(
				hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("May it?") }))},
			[]string{"begin", "reply decision park"},
		},
		"at once": {
			3, []capability.Capability{parallel{3}},
			[]string{"begin", "reply decision decision decision call call call", "result result result step", "reply step", "end"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, store := committer(t, tc.calls, delay, tc.more...)
			_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			assert.Equal(t, tc.want, store.all)
		})
	}
}

// A hook that takes long finds the reply in the journal, and a slow hook after the call the result.
func TestSlowHooksFindTheJournalWritten(t *testing.T) {
	t.Parallel()
	reply, result := make(chan struct{}), make(chan struct{})
	await := func(ctx context.Context, wrote chan struct{}) {
		select {
		case <-wrote:
		case <-ctx.Done():
			assert.Fail(t, "the entry is not in the journal")
		}
	}
	slow := []hooks.Hook{
		hooks.On(hooks.AtPreToolUse, "slow", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
			await(ctx, reply)
			return c.Allow()
		}),
		hooks.On(hooks.AtStepEnd, "slow-end", func(ctx context.Context, c hooks.StepEndContext) hooks.Result {
			if c.StepIndex() == 0 {
				await(ctx, result)
			}
			return c.Pass()
		}),
	}
	a, store := committer(t, 1, 2*time.Millisecond, capability.UseHooks(slow...))
	store.kinds = map[durable.EntryKind]chan struct{}{durable.EntryReply: reply, durable.EntryResult: result}
	_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
}
