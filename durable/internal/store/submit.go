package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// prepareJobs returns jobs with their defaults.
func prepareJobs(jobs []durable.Job) (_ []durable.Job, err error) {
	jobs = slices.Clone(jobs)
	for i, j := range jobs {
		if jobs[i], err = j.Prepare(); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// newRuns are the runs of jobs that are submitted.
type newRuns struct {
	all   []Run // in the order of the jobs: new runs, and those whose idempotency key was known
	added []newRun
}

// newRun is a run that is not stored yet.
type newRun struct {
	Run

	input []byte
	waits []Wait
}

// runsOf returns the runs of prepared jobs. Ending, unless empty, is a run that ends before they are submitted.
func (t tx) runsOf(jobs []durable.Job, ending agent.RunID) (n newRuns, err error) {
	var ids []agent.RunID
	var keys []string
	for _, j := range jobs {
		ids = append(ids, j.ID)
		if j.After != "" {
			ids = append(ids, j.After)
		}
		if j.IdempotencyKey != "" {
			keys = append(keys, j.IdempotencyKey)
		}
	}
	byID, err := t.Lock(ids...)
	if err != nil {
		return n, err
	}
	byKey, err := t.RunsByKey(keys...)
	if err != nil {
		return n, err
	}
	for _, j := range jobs {
		if known, found := byKey[j.IdempotencyKey]; found && j.IdempotencyKey != "" {
			n.all = append(n.all, known)
			continue
		}
		if _, found := byID[j.ID]; found {
			return n, fmt.Errorf("run %q: %w", j.ID, durable.ErrExists)
		}
		r := newRun{input: j.Input, Run: Run{Run: durable.Run{
			ID: j.ID, Session: j.Session, Kind: j.Kind, Name: j.Name, Version: j.Version, Parent: j.Parent, Root: j.Root, Phase: j.Phase,
			Demands: j.Demands, Labels: j.Labels, Priority: j.Priority, IdempotencyKey: j.IdempotencyKey, By: j.By,
			Created: t.now, Updated: t.now, NotBefore: j.NotBefore, StartBy: j.StartBy, Deadline: j.Deadline, Status: durable.StatusPending,
		}}}
		after, found := byID[j.After]
		switch {
		case j.After != "" && !found:
			return n, fmt.Errorf("run %q starts after run %q: %w", j.ID, j.After, durable.ErrNotFound)
		case j.After != "" && !after.Status.Ended() && j.After != ending:
			r.Status = durable.StatusWaiting
			r.waits = []Wait{{Wait: durable.AfterWait(j.ID, j.After, t.now)}}
		case !j.NotBefore.After(t.now):
			t.setStatus(&r.Run, durable.StatusReady)
		}
		n.all, n.added = append(n.all, r.Run), append(n.added, r)
		byID[j.ID] = r.Run
		if j.IdempotencyKey != "" {
			byKey[j.IdempotencyKey] = r.Run
		}
	}
	return n, nil
}

// add stores new runs.
func (t tx) add(added []newRun) error {
	for _, r := range added {
		if err := t.AddQueue(r.Needs()); err != nil {
			return err
		}
		if err := t.AddRun(r.Run, r.input); err != nil {
			return err
		}
		if err := t.PutWaits(r.ID, r.waits); err != nil {
			return err
		}
	}
	return nil
}

// Submit implements durable.Store.
func (s *Store) Submit(ctx context.Context, jobs ...durable.Job) (runs []durable.Run, err error) {
	if jobs, err = prepareJobs(jobs); err != nil {
		return nil, err
	}
	err = s.write(ctx, func(t tx) error {
		n, err := t.runsOf(jobs, "")
		if err != nil {
			return err
		}
		runs = make([]durable.Run, len(n.all))
		for i, r := range n.all {
			runs[i] = r.Run
		}
		return t.add(n.added)
	})
	if err != nil {
		return nil, err
	}
	return runs, nil
}

// Begin implements durable.Store.
func (s *Store) Begin(ctx context.Context, j durable.Job, owner string, ttl time.Duration) (l durable.Lease, err error) {
	if j, err = j.PrepareToBegin(); err != nil {
		return durable.Lease{}, err
	}
	err = s.write(ctx, func(t tx) error {
		n, err := t.runsOf([]durable.Job{j}, "")
		switch {
		case err != nil:
			return err
		case len(n.added) == 0:
			return fmt.Errorf("key %q: %w", j.IdempotencyKey, durable.ErrExists)
		}
		r := &n.added[0]
		r.Offer = 0
		r.Start(owner, ttl, t.now)
		l = r.Lease()
		return t.add(n.added)
	})
	return l, err
}
