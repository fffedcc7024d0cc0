package store

import (
	"context"
	"fmt"
	"maps"
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

// wholeMicros returns a time as it is stored.
func wholeMicros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// runsOf returns the runs of prepared jobs, in their order, and those that are new. The others have a known idempotency key.
// Ending, unless empty, is a run that ends before they are submitted.
func (t tx) runsOf(jobs []durable.Job, ending agent.RunID) (all []durable.Run, added []NewRun, err error) {
	var earlier []agent.RunID
	var keys []string
	for _, j := range jobs {
		if j.After != "" {
			earlier = append(earlier, j.After)
		}
		if j.IdempotencyKey != "" {
			keys = append(keys, j.IdempotencyKey)
		}
	}
	byID, err := t.lockAll(earlier...)
	if err != nil {
		return nil, nil, err
	}
	byKey := map[string]Run{}
	if len(keys) > 0 {
		if byKey, err = t.RunsByKey(keys...); err != nil {
			return nil, nil, err
		}
	}
	for _, j := range jobs {
		if known, found := byKey[j.IdempotencyKey]; found && j.IdempotencyKey != "" {
			all = append(all, known.Run)
			continue
		}
		if j.Input != nil {
			j.Input = t.keys.seal(j.Input, inputPlace(j.ID))
		}
		r := NewRun{Input: j.Input, Run: Run{Run: durable.Run{
			ID: j.ID, Session: j.Session, Kind: j.Kind, Name: j.Name, Version: j.Version, Parent: j.Parent, Root: j.Root, Phase: j.Phase,
			After: j.After, Traits: j.Traits, Summary: t.keys.sealLine(j.Summary, summaryPlace(j.ID)),
			Demands: orNil(j.Demands), Labels: orNil(j.Labels), Priority: j.Priority, IdempotencyKey: j.IdempotencyKey, By: j.By,
			Created: t.Now(), Updated: t.Now(), NotBefore: wholeMicros(j.NotBefore), StartBy: wholeMicros(j.StartBy), Deadline: wholeMicros(j.Deadline),
			Status: durable.StatusPending,
		}}}
		after, found := byID[j.After]
		switch {
		case j.After != "" && !found:
			return nil, nil, fmt.Errorf("run %q starts after run %q: %w", j.ID, j.After, durable.ErrNotFound)
		case j.After != "" && !after.Status.Ended() && j.After != ending:
			r.Status = durable.StatusWaiting
			r.Waits = []Wait{{Wait: durable.AfterWait(j.ID, j.After, t.Now())}}
		case !j.NotBefore.After(t.Now()):
			r.Status, r.Ready, r.Offer = durable.StatusReady, t.Now(), 1
		}
		r.setIdle()
		all, added = append(all, r.Run.Run), append(added, r)
		byID[j.ID] = r.Run
		if j.IdempotencyKey != "" {
			byKey[j.IdempotencyKey] = r.Run
		}
	}
	return all, added, nil
}

// storeRuns stores new runs.
func (t tx) storeRuns(runs []NewRun) error {
	for _, r := range runs {
		if r.Traits.PastHook != "" {
			t.rules.AddOverride(r.Name, r.Traits.PastHook)
		}
	}
	if slices.ContainsFunc(runs, func(r NewRun) bool { return r.Status == durable.StatusReady }) {
		t.Notify()
	}
	if len(runs) == 0 {
		return nil
	}
	return t.AddRuns(runs...)
}

// orNil returns a copy of names, nil for an empty map.
func orNil(names map[string]string) map[string]string {
	if len(names) == 0 {
		return nil
	}
	return maps.Clone(names)
}

// Submit implements durable.Store.
func (s *Store) Submit(ctx context.Context, jobs ...durable.Job) (runs []durable.Run, err error) {
	if jobs, err = prepareJobs(jobs); err != nil || len(jobs) == 0 {
		return nil, err
	}
	err = s.writeData(ctx, "submitting jobs", func(t tx) error {
		all, added, err := t.runsOf(jobs, "")
		if err != nil {
			return err
		}
		runs = all
		return t.storeRuns(added)
	})
	return unlessFailed(s.keys.openRuns(runs...), err)
}

// Begin implements durable.Store.
func (s *Store) Begin(ctx context.Context, j durable.Job, owner string, ttl time.Duration) (l durable.Lease, err error) {
	if j, err = j.PrepareToBegin(); err != nil {
		return durable.Lease{}, err
	}
	err = s.writeData(ctx, "beginning a run", func(t tx) error {
		_, added, err := t.runsOf([]durable.Job{j}, "")
		switch {
		case err != nil:
			return err
		case len(added) == 0:
			return fmt.Errorf("key %q: %w", j.IdempotencyKey, durable.ErrExists)
		}
		r := &added[0]
		r.Offer = 0
		r.Start(owner, ttl, t.Now())
		r.setIdle()
		l = r.Lease()
		return t.AddRuns(*r)
	})
	return unlessFailed(l, err)
}
