package engine_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// finisher is a runner that ends each run at once.
type finisher struct {
	owner   string
	store   durable.Store
	started chan<- start
}

// start is when a runner began to execute a run.
type start struct {
	run agent.RunID
	at  time.Time
	err error
}

func (f *finisher) Owner() string { return f.owner }

func (*finisher) Has(string) bool { return true }

func (*finisher) Suspend() {}

func (f *finisher) Execute(ctx context.Context, r durable.Run) error {
	s := start{run: r.ID, at: time.Now()}
	s.err = f.store.Commit(ctx, r.Lease(), durable.Commit{Update: durable.Update{Status: durable.StatusCompleted}})
	f.started <- s
	return s.err
}

// measureWorkers measures the time from the submission of a job until one of many idle workers of one process executes it.
// Each is a whole worker with a scheduler of its own.
func measureWorkers(m *measuring) {
	p := m.backend.open(m.T)
	ctx, stop := context.WithCancel(m.Context())
	started := make(chan start, m.workers)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	workers := make([]*durable.Worker, m.workers)
	for i := range workers {
		w, err := durable.NewWorker(p.Store, durable.WorkerOptions{Runners: map[durable.Kind]durable.Runner{
			durable.KindAgent: &finisher{fmt.Sprint("worker ", i), p.Store, started},
		}})
		require.NoError(m, err)
		workers[i] = w
		group.Go(func() { _ = w.Run(ctx) }) // always nil
	}
	var took []time.Duration
	pace := time.NewTicker(m.pace)
	defer pace.Stop()
	executed := map[agent.RunID]int{}
	const warm = 5
	for range m.jobs + warm {
		began := time.Now()
		runs, err := p.Submit(ctx, durable.Job{Name: "clerk"})
		require.NoError(m, err)
		s := <-started
		require.NoError(m, s.err)
		require.Equal(m, runs[0].ID, s.run)
		executed[s.run]++
		took = append(took, s.at.Sub(began))
		<-pace.C
	}
	stop()
	group.Wait()
	close(started)
	for s := range started {
		executed[s.run]++
	}
	leases := 0
	for id, n := range executed {
		r, err := p.Run(m.Context(), id)
		require.NoError(m, err)
		require.Equal(m, durable.StatusCompleted, r.Status)
		require.Equal(m, 1, n)
		leases = max(leases, r.Attempts)
	}
	took = took[warm:]
	m.report.each(m, "workers", took)
	m.row(fmt.Sprintf("one ready run, %s idle workers", thousands(m.workers)), "p99 50 ms", leases == 1 && quantile(took, 99) <= 50*time.Millisecond,
		"%d lease, p50 %s, **p99 %s**", leases, milliseconds(quantile(took, 50)), milliseconds(quantile(took, 99)))
}
