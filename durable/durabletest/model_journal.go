package durabletest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// checkLease finds the run of a lease and checks the lease, unless the store is broken in that method.
func (m model) checkLease(ctx context.Context, l durable.Lease, method string) (*modelRun, func(), error) {
	r, done, err := m.find(ctx, l.Run)
	if err == nil && (r.Epoch != l.Epoch || r.Owner == "" || r.Owner != l.Owner && m.broken != method+" of another owner") && m.broken != method {
		return nil, done, durable.ErrStale
	}
	if err == nil && m.broken == "expired is stale" && !r.isHeld() {
		return nil, done, durable.ErrStale
	}
	return r, done, err
}

// Renew implements durable.Store.
func (m model) Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (durable.Lease, error) {
	r, done, err := m.checkLease(ctx, l, "renew")
	defer done()
	if err != nil {
		return durable.Lease{}, err
	}
	r.Expires = m.at.Add(ttl)
	if m.broken == "renew adds" {
		r.Expires = l.Expires.Add(ttl)
	}
	return r.Lease(), nil
}

// Release implements durable.Store.
func (m model) Release(ctx context.Context, l durable.Lease, delay time.Duration) error {
	r, done, err := m.checkLease(ctx, l, "release")
	defer done()
	if err != nil {
		return err
	}
	m.giveUp(r, delay)
	return nil
}

// Commit implements durable.Store.
func (m model) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	if err := c.Check(); err != nil && m.broken != "commit check" {
		return err
	}
	r, done, err := m.checkLease(ctx, l, "commit")
	defer done()
	repeatable := c.Update.Status.Ended() || c.Update.Pass != nil && m.broken != "pass again"
	if repeatable && errors.Is(err, durable.ErrStale) && m.broken != "end again" {
		if ended := m.findRun(l.Run); bytes.Equal(ended.ended, c.Fingerprint(l)) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if c.Document != nil && m.broken == "commit document first" && m.checkVersion(*c.Document) == nil {
		m.addVersion(*c.Document)
	}
	journal, err := m.extendJournal(r, c.Entries)
	if err != nil {
		return err
	}
	if m.broken == "events first" {
		m.addEvents(r, c.Events)
	}
	if m.broken == "records first" {
		m.addRecords(c.Records...)
	}
	if m.broken == "handled first" {
		r.handled = max(r.handled, c.HandledSignals)
	}
	ending := agent.RunID("")
	if c.Update.Status.Ended() && m.broken != "after itself" {
		ending = l.Run
	}
	_, jobs, err := m.prepareJobs(c.Jobs, ending)
	if err != nil && m.broken != "jobs last" {
		return err
	}
	if c.Document != nil && m.broken != "commit document" {
		if err := m.checkVersion(*c.Document); err != nil {
			return err
		}
		m.addVersion(*c.Document)
	}
	r.journal, r.Entries, r.Updated = journal, r.Entries+int64(len(c.Entries)), m.at
	m.addEvents(r, c.Events)
	if m.broken != "commit records" {
		m.addRecords(lo.Map(c.Records, func(rec durable.AuditRecord, _ int) durable.AuditRecord {
			rec.Run = l.Run
			return rec
		})...)
	}
	if m.broken != "jobs" {
		m.store(jobs)
		m.changed = m.changed || len(jobs) > 0
	}
	r.handled = max(r.handled, c.HandledSignals)
	if m.broken == "handled falls" {
		r.handled = c.HandledSignals
	}
	m.update(r, c.Update)
	r.ended = nil
	if c.ReleasesLease() {
		r.ended = c.Fingerprint(l)
		if m.broken == "end differently" {
			r.ended = durable.Commit{Update: c.Update}.Fingerprint(l)
		}
	}
	return err
}

// extendJournal returns the journal of a run with more entries.
func (m model) extendJournal(r *modelRun, entries []durable.Entry) ([]durable.Entry, error) {
	journal := slices.Clip(r.journal)
	for i, e := range entries {
		if want := r.Entries + int64(i) + 1; e.Seq != want && m.broken != "seq" {
			return nil, &durable.SeqError{Run: r.ID, Got: e.Seq, Want: want}
		}
		if m.broken != "clone" {
			e.Data = bytes.Clone(e.Data)
		}
		if m.broken == "binary" {
			e.Data, _, _ = bytes.Cut(e.Data, []byte{0})
		}
		journal = append(journal, e)
		if m.broken == "half" {
			r.journal = journal
		}
	}
	return journal, nil
}

func (m model) update(r *modelRun, u durable.Update) {
	if u.Waits != nil {
		m.ask(r, u)
	}
	if u.Status != "" || m.broken == "empty status" {
		r.Reason, r.Blocked, r.Steps = u.Reason, u.Blocked && m.broken != "blocked", u.Steps
		m.setStatus(r, u.Status)
	}
	if u.Result != nil && (u.Status.Ended() || m.broken == "early result") {
		r.result = bytes.Clone(u.Result)
	}
	if r.Status.Ended() {
		m.end(r, u.Status)
	}
	if u.Pass != nil {
		m.pass(r, *u.Pass)
	}
	r.setAnswerBy()
}

// pass passes a run on.
func (m model) pass(r *modelRun, p durable.Pass) {
	if m.broken != "pass phase" {
		r.Phase = p.Phase
	}
	m.addQueue(r.Needs())
	if p.Input != nil && m.broken != "pass input" {
		if !r.replaced || m.broken == "first input" {
			r.submitted, r.replaced = r.input, true
		}
		r.input = bytes.Clone(p.Input)
	}
	if m.broken != "pass keeps waits" {
		m.dropWaits(r)
		r.anyWait = false
	}
	if m.broken != "pass keeps lease" {
		r.clearOwner()
	}
	if m.broken != "pass attempts" {
		r.Attempts = 0
	}
	switch {
	case r.Paused && (r.CancelCause == "" || m.broken == "pass cancelled") && m.broken != "pass paused":
		m.setStatus(r, durable.StatusWaiting)
	case m.broken != "pass running":
		m.setStatus(r, durable.StatusReady)
	}
}

func (m model) addEvents(r *modelRun, events []durable.Event) {
	for _, e := range events {
		if m.broken != "event run" {
			e.Run = r.ID
		}
		r.Events++
		if m.broken != "event number" {
			e.Seq = r.Events
		}
		e.Data = bytes.Clone(e.Data)
		r.events = append(r.events, e)
	}
}

// Entries implements durable.Store.
func (m model) Entries(ctx context.Context, id agent.RunID, after int64) ([]durable.Entry, error) {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return nil, err
	}
	var all []durable.Entry
	for _, e := range r.journal {
		if e.Seq > after || m.broken == "after" && e.Seq == after {
			e.Data = bytes.Clone(e.Data)
			all = append(all, e)
		}
	}
	return all, nil
}

// Events implements durable.Store.
func (m model) Events(ctx context.Context, id agent.RunID, after int64, limit int) ([]durable.Event, error) {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return nil, err
	}
	var all []durable.Event
	for _, e := range r.events {
		if (e.Seq > after || m.broken == "events after") && (len(all) < limit || m.broken == "events limit") {
			e.Data = bytes.Clone(e.Data)
			all = append(all, e)
		}
	}
	return all, nil
}

// cancel requests the end of a run. One that has never started, and that no process holds, ends.
func (m model) cancel(r *modelRun, cause durable.CancelCause, reason string) {
	if r.CancelCause == "" || m.broken == "last reason" {
		r.CancelCause, r.CancelReason, r.Updated = cause, cmp.Or(reason, "cancelled"), m.at
	}
	if m.broken == "cancel cause" {
		r.CancelCause = durable.CancelRequest
	}
	m.changed = true
	switch {
	case r.isHeld() && m.broken != "cancel held", m.broken == "cancel wakes",
		r.Status == durable.StatusPending && m.broken == "cancel pending":
	case r.Attempts == 0 && m.broken != "cancel unstarted":
		r.Reason = agent.StopUser
		m.end(r, durable.StatusCancelled)
	case r.Status == durable.StatusPending, r.Status == durable.StatusWaiting:
		r.clearOwner()
		m.setStatus(r, durable.StatusReady)
	}
}

// Signal implements durable.Store.
func (m model) Signal(ctx context.Context, id agent.RunID, g durable.Signal) error {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil || r.Status.Ended() && m.broken != "signal ended" {
		return err
	}
	switch g.Kind {
	case durable.SignalCancel:
		m.cancel(r, durable.CancelRequest, g.Text)
	case durable.SignalPause:
		m.pause(r)
	case durable.SignalResume:
		m.resume(r)
	case durable.SignalContext:
	default:
		if m.broken == "signal kind" {
			return nil
		}
		return errors.New("unknown kind of signal")
	}
	if g.Kind == durable.SignalContext || g.Kind == durable.SignalResume && g.Text != "" && m.broken != "resume text" {
		r.sent++
		r.Updated = m.at
		g.Run, g.Seq, g.At = id, r.sent, m.at
		if m.broken == "signal by" {
			g.By = ""
		}
		r.signals = append(r.signals, g)
	}
	m.changed = m.changed || m.broken != "changes of signals"
	return nil
}

func (m model) pause(r *modelRun) {
	if r.Paused {
		return
	}
	r.Paused, r.Updated = true, m.at
	switch {
	case r.isHeld(), r.CancelCause != "" && m.broken != "pause cancelled":
	case r.Status == durable.StatusPending && m.broken != "pause pending", r.Status == durable.StatusReady && m.broken != "pause ready":
		m.setStatus(r, durable.StatusWaiting)
	}
}

func (m model) resume(r *modelRun) {
	if !r.Paused {
		return
	}
	r.Paused, r.Updated = false, m.at
	switch {
	case r.Status != durable.StatusWaiting, r.isHeld() && m.broken != "resume held", m.broken == "resume":
	case r.Attempts == 0 && r.NotBefore.After(time.Now()) && m.broken != "resume pending":
		r.clearOwner()
		m.setStatus(r, durable.StatusPending)
	case m.isSatisfied(r), r.isOverdue() && m.broken != "resume overdue", m.broken == "resume waiting", r.Attempts == 0 && m.broken == "resume after":
		r.clearOwner()
		m.setStatus(r, durable.StatusReady)
	}
}

// Signals implements durable.Store.
func (m model) Signals(ctx context.Context, owner string) ([]durable.Signal, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	var all []durable.Signal
	for _, r := range m.runs {
		switch {
		case r.Owner != owner, owner == "" && m.broken != "no owner", m.broken == "signals of expired" && !r.isHeld(),
			m.broken == "signals of waiting" && r.Status == durable.StatusWaiting:
			continue
		}
		for _, g := range r.signals {
			if g.Seq > r.handled {
				all = append(all, g)
			}
		}
		if r.Paused && m.broken != "pause signal" {
			all = append(all, durable.Signal{Run: r.ID, Kind: durable.SignalPause})
		}
		if r.CancelCause != "" && m.broken != "cancel signal" {
			all = append(all, durable.Signal{Run: r.ID, Kind: durable.SignalCancel, Text: r.CancelReason, Cause: r.CancelCause})
		}
	}
	return all, nil
}
