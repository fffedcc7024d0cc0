package durabletest

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// model is a store in memory. TestRandom compares stores with it. It keeps the contract except for the
// rule that broken names: the tests of this package show that the suite detects each such store.
type model struct {
	*modelData

	broken string
}

type modelData struct {
	mu        sync.Mutex
	runs      []*modelRun // in the order of creation
	queues    []modelQueue
	deny      durable.Switch
	records   []durable.AuditRecord
	waivers   []durable.Waiver
	documents []*modelDocument
	listeners map[chan struct{}]struct{}
	changed   bool      // since the lock was acquired
	at        time.Time // when the lock was acquired
	closed    chan struct{}
	close     func()
}

type modelRun struct {
	durable.Run

	input, result []byte
	submitted     []byte // the first input, if replaced is set
	replaced      bool
	ended         []byte // the last Commit's fingerprint, if it ended the run or passed it on
	journal       []durable.Entry
	events        []durable.Event
	waits         []modelWait
	anyWait       bool
	tokens        []modelToken // of waits, beside their TokenHash
	signals       []durable.Signal
	sent, handled int64
	offer         int64
	offered       time.Time
}

// modelWait is a wait with the claim of the owner that checks it.
type modelWait struct {
	durable.Wait

	checker string
	until   time.Time
}

// modelToken is a token of a wait.
type modelToken struct{ token, wait, subject string }

type modelQueue struct {
	needs  durable.Needs
	polled time.Time
}

func newModel(broken string) model {
	closed := make(chan struct{})
	return model{&modelData{listeners: map[chan struct{}]struct{}{}, closed: closed, close: sync.OnceFunc(func() { close(closed) })}, broken}
}

// now returns the time as stores keep it.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// lock locks the store until done is called, which notifies the receivers of changes.
func (m model) lock(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil && m.broken != "context" {
		return func() {}, err
	}
	m.mu.Lock()
	m.at = now()
	return m.unlock, nil
}

func (m model) unlock() {
	if m.changed && m.broken != "changes" {
		for ch := range m.listeners {
			select {
			case ch <- struct{}{}:
			default:
			}
			if m.broken == "one listener" {
				break
			}
		}
	}
	m.changed = false
	m.mu.Unlock()
}

// find locks the store, until done is called, and looks for a run.
func (m model) find(ctx context.Context, id agent.RunID) (r *modelRun, done func(), err error) {
	done, err = m.lock(ctx)
	if err != nil {
		return nil, done, err
	}
	if r = m.findRun(id); r == nil {
		return nil, done, durable.ErrNotFound
	}
	return r, done, nil
}

// findRun returns the run with the ID, or nil.
func (m model) findRun(id agent.RunID) *modelRun {
	for _, r := range m.runs {
		if r.ID == id {
			return r
		}
	}
	return nil
}

func (r *modelRun) isHeld() bool { return r.Owner != "" && time.Now().Before(r.Expires) }

// copy returns the summary; its maps are not shared.
func (r *modelRun) copy() durable.Run {
	c := r.Run
	c.Demands, c.Labels = maps.Clone(r.Demands), maps.Clone(r.Labels)
	return c
}

// setStatus changes the status; a run that becomes ready is owed an offer.
func (m model) setStatus(r *modelRun, s durable.Status) {
	if s == durable.StatusReady && r.Status == durable.StatusReady {
		return
	}
	r.Status, r.Ready = s, time.Time{}
	if s == durable.StatusReady {
		r.Ready, r.offered = m.at, time.Time{}
		if m.broken != "offer number" {
			r.offer++
		}
		m.changed = m.changed || m.broken != "changes of ready runs"
	}
}

// isOverdue reports whether the deadline of an open wait has passed.
func (r *modelRun) isOverdue() bool { return !r.AnswerBy.IsZero() && !r.AnswerBy.After(time.Now()) }

// clearOwner removes the lease.
func (r *modelRun) clearOwner() { r.Owner, r.Expires = "", time.Time{} }

// isSatisfied reports whether a waiting run has nothing to wait for.
func (m model) isSatisfied(r *modelRun) bool {
	open := 0
	for _, w := range r.waits {
		switch child := m.findRun(w.Child); {
		case w.Answer != nil:
			if w.Answer.Ends && m.broken != "answer ends" || r.anyWait && m.broken != "any wait" {
				return true
			}
			continue
		case child != nil && child.Status.Ended() && m.broken != "child ends":
			return true
		}
		open++
	}
	return open == 0
}

// wake makes a waiting run ready when it is satisfied and no process holds it.
func (m model) wake(r *modelRun) {
	switch {
	case r.Status != durable.StatusWaiting, r.isHeld() && m.broken != "wake held", r.Paused && m.broken != "wake paused", !m.isSatisfied(r):
	default:
		r.clearOwner()
		r.Updated = m.at
		m.setStatus(r, durable.StatusReady)
	}
}

// giveUp ends the lease of a run that has not ended.
func (m model) giveUp(r *modelRun, delay time.Duration) {
	r.clearOwner()
	r.Updated = m.at
	switch {
	case r.CancelCause != "" && m.broken != "release cancelled":
		m.setStatus(r, durable.StatusReady)
	case r.Paused && m.broken != "release paused":
		m.setStatus(r, durable.StatusWaiting)
	case r.Status == durable.StatusRunning && delay > 0 && m.broken != "delay":
		r.NotBefore = m.at.Add(delay)
		m.setStatus(r, durable.StatusPending)
	case r.Status == durable.StatusRunning, m.isSatisfied(r), r.isOverdue() && m.broken != "release overdue":
		m.setStatus(r, durable.StatusReady)
	}
}

// end ends a run and wakes the runs that wait for it.
func (m model) end(r *modelRun, s durable.Status) {
	m.setStatus(r, s)
	r.Paused = r.Paused && m.broken == "end keeps pause"
	if m.broken != "end keeps lease" {
		r.clearOwner()
	}
	if m.broken != "end keeps waits" {
		m.dropWaits(r)
	}
	r.setAnswerBy()
	for _, parent := range m.runs {
		waits := slices.ContainsFunc(parent.waits, func(w modelWait) bool {
			return w.Child == r.ID && w.Answer == nil
		})
		if waits && m.broken != "parents" {
			m.wake(parent)
		}
		for i, w := range parent.waits {
			if w.IsAfter() && w.Child == r.ID && w.Answer == nil && m.broken != "after deleted" {
				parent.waits[i].Answer = &durable.Answer{Wait: w.ID, Subject: w.Subject, Ends: true, At: m.at}
			}
		}
	}
}

func (r *modelRun) setAnswerBy() {
	r.AnswerBy = time.Time{}
	for _, w := range r.waits {
		if w.Answer == nil && !w.Deadline.IsZero() && (r.AnswerBy.IsZero() || w.Deadline.Before(r.AnswerBy)) {
			r.AnswerBy = w.Deadline
		}
	}
}

// Run implements durable.Store.
func (m model) Run(ctx context.Context, id agent.RunID) (durable.Run, error) {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return durable.Run{}, err
	}
	return r.copy(), nil
}

// List implements durable.Store.
func (m model) List(ctx context.Context, f durable.Filter) ([]durable.Run, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	var all []durable.Run
	after := f.Before == ""
	limit := cmp.Or(f.Limit, durable.DefaultLimit)
	for _, r := range slices.Backward(m.runs) {
		switch {
		case !after && r.ID == f.Before:
			after = true
			if m.broken == "page" {
				all = append(all, r.copy())
			}
		case !after, !m.matches(f, r), len(all) == limit && m.broken != "limit":
		default:
			all = append(all, r.copy())
		}
	}
	if !after && m.broken != "page gone" {
		return nil, durable.ErrNotFound
	}
	if m.broken == "oldest first" {
		slices.Reverse(all)
	}
	return all, nil
}

func (m model) matches(f durable.Filter, r *modelRun) bool {
	label, has := r.Labels[f.Label.Name]
	checks := map[string]bool{
		"filter status":  len(f.Status) == 0 || slices.Contains(f.Status, r.Status),
		"filter kind":    f.Kind == "" || f.Kind == r.Kind,
		"filter phase":   f.Phase == "" || f.Phase == r.Phase,
		"filter name":    f.Name == "" || f.Name == r.Name,
		"filter session": f.Session == "" || f.Session == r.Session,
		"filter parent":  f.Parent == "" || f.Parent == r.Parent,
		"filter label":   f.Label.Name == "" || has && label == f.Label.Value,
		"filter blocked": !f.Blocked || r.Blocked,
		"filter since":   f.Since.IsZero() || !r.Created.Before(f.Since),
		"filter until":   f.Until.IsZero() || r.Created.Before(f.Until),
	}
	for name, ok := range checks {
		if !ok && m.broken != name {
			return false
		}
	}
	return true
}

// Input implements durable.Store.
func (m model) Input(ctx context.Context, id agent.RunID) ([]byte, error) {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil || m.broken == "input" {
		return nil, err
	}
	return bytes.Clone(r.input), nil
}

// SubmittedInput implements durable.Store.
func (m model) SubmittedInput(ctx context.Context, id agent.RunID) ([]byte, error) {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return nil, err
	}
	if r.replaced && m.broken != "submitted input" {
		return bytes.Clone(r.submitted), nil
	}
	return bytes.Clone(r.input), nil
}

// Result implements durable.Store.
func (m model) Result(ctx context.Context, id agent.RunID) ([]byte, error) {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return nil, err
	}
	return bytes.Clone(r.result), nil
}

// Delete implements durable.Store.
func (m model) Delete(ctx context.Context, id agent.RunID) error {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return err
	}
	if r.isHeld() && m.broken != "delete held" {
		return &durable.HeldError{Run: id, Owner: r.Owner, Expires: r.Expires}
	}
	if m.broken == "delete keeps key" {
		r.ID = "deleted " + id
		return nil
	}
	m.runs = slices.DeleteFunc(m.runs, func(k *modelRun) bool { return k == r })
	m.forgetAnswers(r)
	return nil
}

// Prune implements durable.Store.
func (m model) Prune(ctx context.Context, before time.Time) (int, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return 0, err
	}
	n := len(m.runs)
	m.runs = slices.DeleteFunc(m.runs, func(r *modelRun) bool {
		old := (r.Status.Ended() || m.broken == "prune running") && r.Updated.Before(before)
		if old && m.broken != "prune keeps answers" {
			m.forgetAnswers(r)
		}
		return old
	})
	if m.broken == "prune queues" {
		m.queues = nil
	}
	return n - len(m.runs), nil
}

// DenyTools implements durable.Store.
func (m model) DenyTools(ctx context.Context) (durable.Switch, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return durable.Switch{}, err
	}
	return m.deny, nil
}

// SetDenyTools implements durable.Store.
func (m model) SetDenyTools(ctx context.Context, s durable.Switch) error {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return err
	}
	m.deny = s
	if m.broken == "switch" {
		m.deny.Reason = ""
	}
	return nil
}

// Close implements durable.Store.
func (m model) Close() error {
	if m.broken != "close" {
		m.close()
	}
	return nil
}
