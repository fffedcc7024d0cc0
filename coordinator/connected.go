package coordinator

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// servedWithin is how long ago a worker may have looked for runs of a queue that is served.
const servedWithin = 70 * time.Second

// ListQueues returns the queues of runs that have not ended, and how workers serve them.
func (c *Coordinator) ListQueues(ctx context.Context) ([]wire.Queue, error) {
	needs, err := c.store.Queues(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing queues: %w", err)
	}
	served, err := c.store.QueueServices(ctx, lo.Map(needs, func(n durable.Needs, _ int) durable.Key { return n.Key() })...)
	if err != nil {
		return nil, fmt.Errorf("listing queues: %w", err)
	}
	return lo.Map(needs, func(n durable.Needs, _ int) wire.Queue {
		s := served[n.Key()]
		return wire.Queue{Needs: n, LastPoll: s.LastPoll, Backlog: s.Backlog, Oldest: s.Oldest, Served: time.Since(s.LastPoll) < servedWithin}
	}), nil
}

// ListRunners returns all workers and remote runners that were connected in the last ten minutes, each with its current runs.
func (c *Coordinator) ListRunners(ctx context.Context) ([]wire.Runner, error) {
	workers, err := c.store.Workers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing runners: %w", err)
	}
	running, err := c.store.List(ctx, durable.Filter{Status: []durable.Status{durable.StatusRunning}, Limit: maxRuns})
	if err != nil {
		return nil, fmt.Errorf("listing runners: %w", err)
	}
	has := map[string][]wire.RunnerRun{}
	for _, r := range running {
		has[r.Owner] = append(has[r.Owner], wire.RunnerRun{RunID: r.ID, AgentName: r.Name})
	}
	return lo.Map(workers, func(w durable.WorkerRecord, _ int) wire.Runner {
		return wire.Runner{
			Name: w.Owner, Kinds: w.Kinds, Labels: ownLabels(w.Labels), Capacity: w.Capacity, Runs: append([]wire.RunnerRun{}, has[w.Owner]...),
			LastSeen: w.Seen, Draining: w.Draining, Version: w.Version,
		}
	}), nil
}

// ownLabels returns the labels that people have given.
func ownLabels(all map[string]string) map[string]string {
	own := maps.Clone(all)
	maps.DeleteFunc(own, func(name, _ string) bool {
		return strings.HasPrefix(name, reservedPrefix) && !strings.HasPrefix(name, labelCommand)
	})
	return own
}

// recordWorker records that a runner is connected. A request that claims no runs says so alone.
func (r RemoteRunner) recordWorker(ctx context.Context, labels map[string]string, in wire.ClaimRequest) error {
	w := durable.WorkerRecord{Owner: r.owner, Draining: in.Draining}
	if in.Limit > 0 {
		w.Labels, w.Capacity, w.Version = labels, in.Capacity, in.Version
		w.Kinds = []durable.Kind{durable.KindAgent, durable.KindCommand}
		if len(in.Types) > 0 {
			w.Kinds = lo.Map(in.Types, func(t string, _ int) durable.Kind { return kindOf(&wire.Blueprint{Type: wire.Type(t)}) })
		}
	}
	return r.c.store.RecordWorker(ctx, w)
}
