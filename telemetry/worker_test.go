package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
)

// endingRunner ends the runs that it gets, after it let them wait because a call is in doubt.
type endingRunner struct{ store durable.Store }

func (endingRunner) Owner() string   { return "worker" }
func (endingRunner) Has(string) bool { return true }
func (endingRunner) Suspend()        {}

func (r endingRunner) Execute(ctx context.Context, about durable.Run) error {
	if about.Attempts > 2 {
		return r.store.Commit(ctx, about.Lease(), durable.Commit{Update: durable.Update{Status: durable.StatusCompleted, Reason: agent.StopCompleted}})
	}
	data, err := json.Marshal(agent.Intervention{Questions: agent.Questions{{Kind: agent.QuestionDoubt}}})
	if err != nil {
		return err
	}
	return r.store.Commit(ctx, about.Lease(), durable.Commit{Update: durable.Update{
		Status: durable.StatusWaiting, Waits: []durable.Wait{{ID: "pay", Kind: durable.WaitDoubt, Subject: "h", Data: data}},
	}})
}

// failsOnce is a store that is away once, after it has not answered for a while.
type failsOnce struct {
	durable.Store

	once    sync.Once
	stalled chan struct{} // closed when that was noticed

	measuring sync.Once
	measured  chan struct{} // closed when the worker has read the last of what it measures
}

func (s *failsOnce) OpenWaits(ctx context.Context, f durable.WaitFilter) ([]durable.Wait, error) {
	all, err := s.Store.OpenWaits(ctx, f)
	if slices.Contains(f.Kinds, durable.WaitInput) {
		s.measuring.Do(func() { close(s.measured) })
	}
	return all, err
}

func (s *failsOnce) Reconcile(ctx context.Context) (durable.Reconciled, error) {
	<-s.stalled
	return s.Store.Reconcile(ctx)
}

func (s *failsOnce) Queues(ctx context.Context) (needs []durable.Needs, err error) {
	s.once.Do(func() { err = errors.New("away") })
	if err != nil {
		return nil, err
	}
	return s.Store.Queues(ctx)
}

// addWorker adds the measurements from a worker that takes a run over from a dead one.
func (s series) addWorker(t *testing.T) {
	t.Helper()
	store := memory.New()
	defer store.Close()
	runs, err := store.Submit(t.Context(), durable.Job{Name: "clerk"})
	require.NoError(t, err)
	claimed, err := store.Claim(t.Context(), "dead", time.Nanosecond, 1, runs[0].Needs().Key())
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	reader := sdkmetric.NewManualReader()
	released := make(chan struct{}, 1)
	away := &failsOnce{Store: store, stalled: make(chan struct{}), measured: make(chan struct{})}
	w, err := durable.NewWorker(away, durable.WorkerOptions{
		Runners: map[durable.Kind]durable.Runner{durable.KindAgent: endingRunner{store}}, Poll: 5 * time.Millisecond,
		Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		Observe: func(e durable.WorkerEvent) {
			switch {
			case e.Kind == durable.WorkerStalled:
				close(away.stalled)
			case e.Kind == durable.WorkerInDoubt:
				assert.NoError(t, store.Answer(t.Context(), e.Run.ID, durable.Answers(durable.Answer{Wait: "pay"})))
			case e.Kind == durable.WorkerReleased && e.Run.Status.Ended():
				released <- struct{}{}
			}
		},
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { assert.NoError(t, w.Run(ctx)) })
	<-released
	<-away.measured
	stop()
	over.Wait()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	for _, scope := range all.ScopeMetrics {
		lo.ForEach(scope.Metrics, func(m metricdata.Metrics, _ int) { s.add(m) })
	}
}
