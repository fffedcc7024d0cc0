package capability_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/toolexec"
)

var errDead = errors.New("the process is dead")

// dying is the store of a process that dies after so many entries.
type dying struct {
	durable.Store

	left atomic.Int64
}

func (s *dying) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	had := s.left.Add(-int64(max(1, len(c.Entries)))) + int64(max(1, len(c.Entries)))
	switch {
	case had <= 0:
		return errDead
	case int(had) < len(c.Entries): // a commit of its own had the first ones
		return errors.Join(errDead, s.Store.Commit(ctx, l, durable.Commit{Entries: c.Entries[:had]}))
	}
	return s.Store.Commit(ctx, l, c)
}

func (s *dying) Release(context.Context, durable.Lease, time.Duration) error { return errDead }

// compactedRun records a run's requests to the two models, in all its processes.
type compactedRun struct {
	shown     map[int][]string // to the agent's own, by step
	summaries map[int]int      // how often one was paid for, by step
	written   int              // since the agent's own was asked
}

func newCompactedRun() *compactedRun {
	return &compactedRun{shown: map[int][]string{}, summaries: map[int]int{}}
}

const readSteps = 9

// build returns the agent as each process builds it. Replies say how many tokens there were,
// and summaries cost something.
func (r *compactedRun) build(t *testing.T, k *durable.Keeper) *agent.Agent {
	t.Helper()
	model := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		n := s.RunStepCount()
		r.shown[n] = append(r.shown[n], agenttest.Transcript(s))
		if r.written > 0 {
			r.summaries[n] += r.written
			r.written = 0
		}
		if n == readSteps {
			return agent.Step{Message: agent.Assistant("end")}, nil
		}
		return agent.Step{
			Message: agent.Assistant("", agent.ToolCall{ID: fmt.Sprint("call_", n), Name: "read", Arguments: "{}"}),
			Usage:   agent.Usage{InputTokens: 10}, FinishReason: agent.FinishToolCalls,
		}, nil
	})
	scribe := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		r.written++
		bytes := 0
		for _, m := range s.Messages() {
			bytes += len(m.Text())
		}
		return agent.Step{Message: agent.Assistant(fmt.Sprint("the gist of ", bytes)), Usage: agent.Usage{InputTokens: 100, OutputTokens: 7}}, nil
	})
	read := toolexec.WithPolicy(toolexec.Func("read", "Reads.", func(context.Context, nothing) (string, error) {
		return strings.Repeat("x", 400), nil
	}), toolexec.Policy{Doubt: toolexec.DoubtRepeat})
	return builtWith(t, model, nil, capability.UseTools(read), capability.UseDurability{Keeper: k},
		capability.UseCompaction{Messages: 6, Keep: 2, Driver: scribe})
}

// A durable run that is cut off at any place continues with the same views as an undisturbed
// run, and does not pay twice for a summary whose model call was answered.
func TestCompactionOfARunThatIsCutOff(t *testing.T) {
	open := func() durable.Store {
		store := memory.New()
		t.Cleanup(func() { assert.NoError(t, store.Close()) })
		return store
	}
	whole := newCompactedRun()
	want := ran(t, whole.build(t, durable.Keep(open(), durable.Options{})), agent.NewState(), agent.UserText("go"))
	require.Greater(t, len(whole.summaries), 2, "there is something to lose")

	lost, kept := 0, 0
	for writes, ended := int64(1), false; !ended; writes++ {
		r, store := newCompactedRun(), open()
		dies := &dying{Store: store}
		dies.left.Store(writes)
		_, err := r.build(t, durable.Keep(dies, durable.Options{Patience: -1})).
			RunWith(t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
		if ended = err == nil; ended {
			break
		}
		require.ErrorIs(t, err, errDead)
		entries, err := store.Entries(t.Context(), "run", 0)
		require.NoError(t, err)
		answered := 0
		for _, e := range entries {
			if e.Kind == durable.EntryReply {
				answered++
			}
		}

		k := durable.Keep(store, durable.Options{})
		s, err := k.Resume(t.Context(), r.build(t, k), "run", durable.TakeOver).Get()
		require.NoError(t, err, "after %d writes", writes)
		require.Equal(t, agent.StatusDone, s.Status())
		assert.Equal(t, agenttest.Transcript(want), agenttest.Transcript(s), "after %d writes", writes)
		assert.Equal(t, want.RunUsage(), s.RunUsage(), "after %d writes", writes)
		assert.Equal(t, capability.CompactedIn(want).Summary, capability.CompactedIn(s).Summary)
		for step, asked := range r.shown {
			for _, text := range asked {
				assert.Equal(t, whole.shown[step][0], text, "step %d after %d writes", step, writes)
			}
		}
		require.Len(t, r.summaries, len(whole.summaries))
		for step, n := range r.summaries {
			if step < answered {
				kept++
				assert.Equal(t, 1, n, "the summary of step %d, after %d writes", step, writes)
				continue
			}
			assert.LessOrEqual(t, n, 2)
			lost += n - 1
		}
	}
	assert.Positive(t, kept)
	assert.Positive(t, lost, "what was not written down is written again")
}
