package durabletest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// prepareJobs returns the runs of jobs in their order, and those of them that are new, without storing them.
// Ending, unless empty, is a run that ends before they are submitted.
func (m model) prepareJobs(jobs []durable.Job, ending agent.RunID) (all, added []*modelRun, err error) {
	jobs = slices.Clone(jobs)
	for i, j := range jobs {
		if jobs[i], err = j.Prepare(); err != nil && m.broken != "invalid" {
			return nil, nil, err
		}
	}
	for _, j := range jobs {
		both := slices.Concat(m.runs, added)
		hasKey := func(r *modelRun) bool { return j.IdempotencyKey != "" && r.IdempotencyKey == j.IdempotencyKey }
		if m.broken == "key in one call" {
			both = m.runs
		}
		if i := slices.IndexFunc(both, hasKey); i >= 0 && m.broken != "key" {
			all = append(all, both[i])
			continue
		}
		if slices.ContainsFunc(slices.Concat(m.runs, added), func(r *modelRun) bool { return r.ID == j.ID }) && m.broken != "exists" {
			if m.broken == "submit half" {
				m.store(added)
			}
			return nil, nil, fmt.Errorf("run %q: %w", j.ID, durable.ErrExists)
		}
		r := m.newRun(j)
		if j.After != "" {
			i := slices.IndexFunc(slices.Concat(m.runs, added), func(r *modelRun) bool { return r.ID == j.After })
			switch {
			case i < 0 && m.broken == "after unknown":
			case i < 0:
				if m.broken == "after half" {
					m.store(added)
				}
				return nil, nil, fmt.Errorf("run %q starts after run %q: %w", j.ID, j.After, durable.ErrNotFound)
			case m.broken == "after ignored":
			case !slices.Concat(m.runs, added)[i].Status.Ended() && j.After != ending, m.broken == "after ended":
				r.Status, r.Ready, r.offer = durable.StatusWaiting, time.Time{}, 0
				r.waits = []modelWait{{Wait: durable.AfterWait(j.ID, j.After, m.at)}}
			}
		}
		all, added = append(all, r), append(added, r)
	}
	return all, added, nil
}

func (m model) newRun(j durable.Job) *modelRun {
	r := &modelRun{input: bytes.Clone(j.Input), Run: durable.Run{
		ID: j.ID, Session: j.Session, Kind: j.Kind, Name: j.Name, Version: j.Version, Parent: j.Parent, Root: j.Root,
		Demands: maps.Clone(j.Demands), Labels: maps.Clone(j.Labels), Priority: j.Priority, IdempotencyKey: j.IdempotencyKey, By: j.By,
		Created: m.at, Updated: m.at, NotBefore: j.NotBefore, StartBy: j.StartBy, Deadline: j.Deadline, Status: durable.StatusPending,
		Phase: j.Phase,
	}}
	switch m.broken {
	case "labels":
		r.Labels = nil
	case "version":
		r.Version = ""
	case "demands":
		r.Demands = nil
	case "submitter":
		r.By = ""
	case "phase":
		r.Phase = ""
	}
	if m.broken == "not before" || !j.NotBefore.After(m.at) {
		m.setStatus(r, durable.StatusReady)
	}
	return r
}

// store adds runs and their queues.
func (m model) store(added []*modelRun) {
	for _, r := range added {
		m.runs = append(m.runs, r)
		m.addQueue(r.Needs())
	}
}

// addQueue adds a queue unless it exists.
func (m model) addQueue(needs durable.Needs) {
	if !slices.ContainsFunc(m.queues, func(q modelQueue) bool { return q.needs.Key() == needs.Key() }) || m.broken == "queue twice" {
		m.queues = append(m.queues, modelQueue{needs: needs})
	}
}

// Submit implements durable.Store.
func (m model) Submit(ctx context.Context, jobs ...durable.Job) ([]durable.Run, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	all, added, err := m.prepareJobs(jobs, "")
	if err != nil {
		return nil, err
	}
	if m.broken == "submit order" {
		slices.Reverse(added)
	}
	m.store(added)
	runs := make([]durable.Run, len(all))
	for i, r := range all {
		runs[i] = r.copy()
	}
	return runs, nil
}

// Begin implements durable.Store.
func (m model) Begin(ctx context.Context, j durable.Job, owner string, ttl time.Duration) (durable.Lease, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return durable.Lease{}, err
	}
	if j, err = j.PrepareToBegin(); err != nil && m.broken != "begin after" && m.broken != "invalid" {
		return durable.Lease{}, err
	}
	_, added, err := m.prepareJobs([]durable.Job{j}, "")
	if err != nil {
		return durable.Lease{}, err
	}
	if len(added) == 0 {
		if m.broken == "begin known key" {
			return durable.Lease{}, nil
		}
		return durable.Lease{}, fmt.Errorf("key %q: %w", j.IdempotencyKey, durable.ErrExists)
	}
	m.store(added)
	r := added[0]
	if m.broken != "begin offers" {
		r.offer, r.Ready = 0, time.Time{}
	}
	if r.Status == durable.StatusPending && m.broken == "begin pending" {
		return r.Lease(), nil
	}
	r.Status = durable.StatusRunning
	r.Attempts = 1
	return m.lease(r, owner, ttl), nil
}

// lease gives the next lease of a run.
func (m model) lease(r *modelRun, owner string, ttl time.Duration) durable.Lease {
	r.Owner, r.Expires = owner, m.at.Add(ttl)
	if m.broken != "same epoch" || r.Epoch == 0 {
		r.Epoch++
	}
	return r.Lease()
}

// Acquire implements durable.Store.
func (m model) Acquire(ctx context.Context, id agent.RunID, owner string, ttl time.Duration, take durable.Take) (durable.Lease, error) {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return durable.Lease{}, err
	}
	switch {
	case r.Status.Ended() && m.broken != "acquire ended":
		return durable.Lease{}, durable.ErrEnded
	case r.isHeld() && r.Owner != owner && take == durable.TakeFree && m.broken != "held",
		take == durable.TakeFree && r.Owner != "" && r.Owner != owner && m.broken == "eternal":
		return durable.Lease{}, &durable.HeldError{Run: id, Owner: r.Owner, Expires: r.Expires}
	}
	switch {
	case r.Status == durable.StatusWaiting && m.broken != "acquire waiting":
	case r.Status == durable.StatusReady && m.broken == "acquire ready", r.Status == durable.StatusPending && m.broken == "acquire pending":
	default:
		m.setStatus(r, durable.StatusRunning)
		if m.broken != "attempts" {
			r.Attempts++
		}
	}
	r.Updated = m.at
	return m.lease(r, owner, ttl), nil
}

// sortReady sorts ready runs in the order of claims.
func (m model) sortReady(ready []*modelRun) {
	slices.SortStableFunc(ready, func(a, b *modelRun) int {
		if m.broken == "claim priority" {
			return a.Ready.Compare(b.Ready)
		}
		if m.broken == "claim order" {
			return cmp.Compare(b.Priority, a.Priority)
		}
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Ready.Compare(b.Ready))
	})
}

// Claim implements durable.Store.
func (m model) Claim(ctx context.Context, owner string, ttl time.Duration, limit int, keys ...durable.Key) ([]durable.Run, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	var ready []*modelRun
	for _, r := range m.runs {
		if (r.Status == durable.StatusReady || r.Status == durable.StatusPending && m.broken == "claim pending") &&
			(slices.Contains(keys, r.Needs().Key()) || m.broken == "claim keys") {
			ready = append(ready, r)
		}
	}
	m.sortReady(ready)
	var runs []durable.Run
	for _, r := range ready {
		if len(runs) >= limit && m.broken != "claim limit" {
			break
		}
		if m.broken != "claim twice" {
			m.setStatus(r, durable.StatusRunning)
		}
		r.Attempts++
		if m.broken != "updated by claim" {
			r.Updated = m.at
		}
		m.lease(r, owner, ttl)
		runs = append(runs, r.copy())
	}
	return runs, nil
}

// Queues implements durable.Store.
func (m model) Queues(ctx context.Context) ([]durable.Needs, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	var all []durable.Needs
	for _, q := range m.queues {
		q.needs.Demands = maps.Clone(q.needs.Demands)
		all = append(all, q.needs)
	}
	return all, nil
}

// makeReady makes a run ready because a time has come.
func (m model) makeReady(r *modelRun) {
	if m.broken != "updated by time" {
		r.Updated = m.at
	}
	m.setStatus(r, durable.StatusReady)
}

const modelBatch = 1000

// Reconcile implements durable.Store.
func (m model) Reconcile(ctx context.Context) (durable.Reconciled, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return durable.Reconciled{}, err
	}
	passed := func(t time.Time) bool { return !t.IsZero() && !t.After(m.at) }
	each := func(cause string, applies func(*modelRun) bool, do func(*modelRun)) (n int) {
		for _, r := range m.runs {
			if n < modelBatch && !r.Status.Ended() && m.broken != cause && applies(r) {
				do(r)
				n++
			}
		}
		return n
	}
	var out durable.Reconciled
	out.Expired = each("expired", func(r *modelRun) bool {
		return r.Owner != "" && !r.isHeld() && (r.Status == durable.StatusRunning || m.broken != "expired waiting")
	}, func(r *modelRun) {
		m.giveUp(r, 0)
		if m.broken == "expired keeps owner" {
			r.Owner = "one"
		}
	})
	out.Overdue = each("overdue", func(r *modelRun) bool {
		return r.Status == durable.StatusWaiting && (!r.isHeld() || m.broken == "overdue held") &&
			(!r.Paused || m.broken == "overdue paused") && r.isOverdue()
	}, m.makeReady)
	out.Due = each("due", func(r *modelRun) bool {
		return r.Status == durable.StatusPending && (passed(r.NotBefore) || m.broken == "due early")
	}, m.makeReady)
	unstarted := each("start by", func(r *modelRun) bool {
		return passed(r.StartBy) && (r.Attempts == 0 || m.broken == "start by started") && (!r.isHeld() || m.broken == "start by held")
	}, func(r *modelRun) {
		r.CancelCause, r.CancelReason = cmp.Or(r.CancelCause, durable.CancelStartBy), cmp.Or(r.CancelReason, "it did not start in time")
		r.Reason, r.Updated = agent.StopUser, m.at
		m.end(r, durable.StatusCancelled)
	})
	late := each("deadline", func(r *modelRun) bool {
		return passed(r.Deadline) && (r.CancelCause == "" || m.broken == "deadline again")
	}, func(r *modelRun) { m.cancel(r, durable.CancelDeadline, "the deadline has passed") })
	out.Late = late + unstarted
	out.Done = max(out.Expired, out.Overdue, out.Due, late, unstarted) < modelBatch || m.broken == "reconcile done"
	return out, nil
}
