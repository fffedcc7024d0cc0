package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
)

// LH-81
func TestStoreEngine(t *testing.T) {
	durabletest.TestEngine(t, func(t *testing.T) durable.Engine {
		return durable.NewStoreEngine(openStore(t), 5*time.Millisecond)
	})
}

func TestEmbeddedAsAnEngine(t *testing.T) {
	durabletest.TestEngine(t, func(t *testing.T) durable.Engine {
		return durable.NewEmbedded(durable.Keep(openStore(t), durable.Options{}), durable.EmbeddedOptions{Poll: 5 * time.Millisecond})
	})
}

// ends notes what an engine tells of its runs.
type ends struct {
	mu   sync.Mutex
	of   map[agent.RunID]mo.Result[agent.State]
	more chan struct{}
}

func newEnds() *ends {
	return &ends{of: map[agent.RunID]mo.Result[agent.State]{}, more: make(chan struct{}, 1000)}
}

func (e *ends) told(id agent.RunID, r mo.Result[agent.State]) {
	e.mu.Lock()
	e.of[id] = r
	e.mu.Unlock()
	e.more <- struct{}{}
}

func (e *ends) wait(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-e.more:
		case <-time.After(30 * time.Second):
			require.Fail(t, "the engine takes too long")
		}
	}
}

// running returns an engine that runs until the test ends.
func running(t *testing.T, store durable.Store, w *world, o durable.EmbeddedOptions, more ...capability.Capability) (*durable.Embedded, *ends, func()) {
	t.Helper()
	k, told := durable.Keep(store, durable.Options{}), newEnds()
	o.Ended = told.told
	o.Agent = func(name string) (*agent.Agent, error) {
		if name != "clerk" {
			return nil, fmt.Errorf("unknown agent %q", name)
		}
		return w.agent(t, k, more...), nil
	}
	e := durable.NewEmbedded(k, o)
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { assert.NoError(t, e.Run(ctx)) })
	stop := sync.OnceFunc(func() { cancel(); over.Wait() })
	t.Cleanup(stop)
	return e, told, stop
}

func submitted(t *testing.T, e durable.Engine, name string) agent.RunID {
	t.Helper()
	run, err := e.Submit(t.Context(), durable.Job{Agent: name, Input: []agent.Message{agent.UserText("go")}})
	require.NoError(t, err)
	return run.ID
}

// Jobs run without a caller that waits for them; runs that wait are taken up at once when
// they are answered; a job for an unknown agent is reported and left alone.
func TestEmbedded(t *testing.T) {
	store, w := openStore(t), newWorld()
	e, told, stop := running(t, store, w, durable.EmbeddedOptions{Poll: time.Hour, Workers: 2}, asks("guard"), capability.UseApproval(agent.ParkApprover))
	var ids []agent.RunID
	for range 5 {
		ids = append(ids, submitted(t, e, "clerk"))
	}
	told.wait(t, 5)
	stranger := submitted(t, e, "stranger")
	told.wait(t, 1)
	require.ErrorContains(t, told.of[stranger].Error(), `unknown agent "stranger"`)
	for _, id := range ids {
		s, err := told.of[id].Get()
		require.NoError(t, err)
		assert.True(t, s.Waiting())
		questions, err := store.Questions(t.Context(), id)
		require.NoError(t, err)
		var answers []durable.Answer
		for _, q := range questions {
			i, err := durable.InterventionOf(q)
			require.NoError(t, err)
			answer, err := durable.AnswerOf(i, agent.Approval{Verdict: agent.Approve})
			require.NoError(t, err)
			answers = append(answers, answer)
		}
		require.NoError(t, e.Answer(t.Context(), id, answers...))
	}
	told.wait(t, 5)
	for _, id := range ids {
		s, err := told.of[id].Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDone, s.Status())
	}
	assert.Len(t, w.effects, 5*2*lastStep)
	require.NoError(t, e.Cancel(t.Context(), stranger, "not needed"))
	stop()
}

// An engine that stops lets its runs end their step; another one goes on with them.
func TestEmbeddedStopsAndStarts(t *testing.T) {
	store, w := openStore(t), newWorld()
	begun, release := make(chan struct{}, 8), make(chan struct{})
	var once sync.Once
	slow := capability.UseStepProcessor("slow", agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		begun <- struct{}{}
		once.Do(func() { <-release })
		return next(ctx, s)
	}))
	e, told, stop := running(t, store, w, durable.EmbeddedOptions{}, slow)
	id := submitted(t, e, "clerk")
	<-begun
	go close(release)
	stop()
	told.wait(t, 1)
	s, err := told.of[id].Get()
	require.NoError(t, err)
	if s.Status() != agent.StatusDone { // it may have been faster than the stop
		assert.True(t, s.Parked())
		assert.False(t, s.Waiting())
	}
	e, told, _ = running(t, store, w, durable.EmbeddedOptions{})
	if s.Status() != agent.StatusDone {
		told.wait(t, 1)
	}
	runs, err := e.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, runs[0].Status)
	assert.Len(t, w.effects, 2*lastStep)
	for key, n := range w.effects {
		assert.Equal(t, 1, n, key)
	}
}

// A run that does not end its step in time is cut off, and nothing is lost.
func TestEmbeddedCutsOff(t *testing.T) {
	store, w := openStore(t), newWorld()
	begun := make(chan struct{}, 1)
	var once sync.Once
	stuck := capability.UseStepProcessor("stuck", agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		if s.RunStepCount() == 1 {
			once.Do(func() { close(begun); <-ctx.Done() })
		}
		return next(ctx, s)
	}))
	e, told, stop := running(t, store, w, durable.EmbeddedOptions{Grace: time.Millisecond}, stuck)
	id := submitted(t, e, "clerk")
	<-begun
	stop()
	told.wait(t, 1)
	if s, err := told.of[id].Get(); err == nil {
		assert.True(t, s.Parked())
	}
	_, told, _ = running(t, store, w, durable.EmbeddedOptions{}, stuck)
	told.wait(t, 1)
	s, err := told.of[id].Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	for key, n := range w.effects {
		assert.Equal(t, 1, n, key)
	}
}

// A store that cannot be read is told, and the engine goes on.
func TestEmbeddedWithoutAStore(t *testing.T) {
	inner, w := openStore(t), newWorld()
	away := &unreadable{Store: inner}
	_, told, _ := running(t, away, w, durable.EmbeddedOptions{Poll: time.Millisecond})
	told.wait(t, 2)
	require.ErrorIs(t, told.of[""].Error(), errAway)
}

var errAway = errors.New("the database is away")

type unreadable struct{ durable.Store }

func (unreadable) Due(context.Context, int) ([]durable.Run, error) { return nil, errAway }
