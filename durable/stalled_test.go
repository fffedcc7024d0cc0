package durable_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
)

// stalling is a store whose first append does not answer, or fails, until its observer was notified.
type stalling struct {
	durable.Store

	fails bool
	told  chan struct{}
	mu    sync.Mutex
	event []agent.Event
}

var errDown = errors.New("the disk is away")

func (s *stalling) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	if !s.fails {
		<-s.told
	}
	select {
	case <-s.told:
		return s.Store.Commit(ctx, l, c)
	default:
		return errDown
	}
}

func (s *stalling) Observe(_ context.Context, e agent.Event) {
	switch e.(type) {
	case durable.StoreStalled:
		close(s.told)
	case durable.StoreRecovered:
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.event = append(s.event, e)
}

// Observers get events when a store does not answer or fails, and when it has recovered. The run loses nothing.
func TestAStalledStoreIsTold(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{"it does not answer": nil, "it fails": errDown} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &stalling{Store: openStore(t), fails: want != nil, told: make(chan struct{})}
			a := builder.New().WithDriver(agenttest.Script(agenttest.Say("Done."))).WithObserver(store).
				With(capability.UseDurability{Keeper: durable.Keep(store, durable.Options{})}).Build().MustGet()
			s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			require.Len(t, store.event, 2)
			assert.Equal(t, durable.StoreStalled{Run: s.Run(), Err: want}, store.event[0])
			recovered, ok := store.event[1].(durable.StoreRecovered)
			require.True(t, ok)
			assert.GreaterOrEqual(t, recovered.After, time.Second)
			kept, err := durable.Load(t.Context(), store, s.Run().ID)
			require.NoError(t, err)
			assert.Equal(t, agent.StatusDone, kept.Status())
		})
	}
}
