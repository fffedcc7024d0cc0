package durabletest_test

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// memory is a store in memory. It keeps the contract, but for the one sentence that
// broken names: the tests of this package show that each such store is found out.
type memory struct {
	*data

	broken string
}

type data struct {
	mu   sync.Mutex
	runs []*kept // in the order of making
	deny durable.Switch
}

type kept struct {
	durable.Run

	since     time.Time // since when it waits to be taken up, as far as an event said so
	journal   []durable.Entry
	questions []durable.Question
}

func newMemory(broken string) memory { return memory{data: &data{}, broken: broken} }

// find locks the store, until done is called, and looks a run up.
func (m memory) find(ctx context.Context, id agent.RunID) (r *kept, done func(), err error) {
	if err := ctx.Err(); err != nil && m.broken != "context" {
		return nil, func() {}, err
	}
	m.mu.Lock()
	for _, r := range m.runs {
		if r.ID == id {
			return r, m.mu.Unlock, nil
		}
	}
	return nil, m.mu.Unlock, durable.ErrNotFound
}

func (r *kept) held(now time.Time) bool { return r.Owner != "" && now.Before(r.Expires) }

func (r *kept) lease() durable.Lease {
	return durable.Lease{Run: r.ID, Owner: r.Owner, Epoch: r.Epoch, Expires: r.Expires}
}

func (m memory) Create(ctx context.Context, r durable.Run, owner string, ttl time.Duration) (durable.Lease, error) {
	_, done, err := m.find(ctx, r.ID)
	defer done()
	if err == nil && m.broken != "exists" {
		return durable.Lease{}, durable.ErrExists
	}
	if err := ctx.Err(); err != nil {
		return durable.Lease{}, err
	}
	now := time.Now().UTC().Round(0)
	made := &kept{Run: durable.Run{
		ID: r.ID, Session: r.Session, Agent: r.Agent, Parent: r.Parent, Root: r.Root, Status: durable.StatusRunning,
		Created: now, Updated: now, Owner: owner, Epoch: 1, Expires: now.Add(ttl),
	}}
	if m.broken == "created" {
		made.Created = r.Created
	}
	m.runs = append(m.runs, made)
	return made.lease(), nil
}

func (m memory) Claim(ctx context.Context, id agent.RunID, owner string, ttl time.Duration, take durable.Take) (durable.Lease, error) {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return durable.Lease{}, err
	}
	now := time.Now().UTC().Round(0)
	switch {
	case r.Status.Terminal() && m.broken != "claim ended":
		return durable.Lease{}, durable.ErrEnded
	case r.held(now) && r.Owner != owner && (take == durable.TakeFree) && m.broken != "held":
		return durable.Lease{}, &durable.HeldError{Run: id, Owner: r.Owner, Expires: r.Expires}
	case take == durable.TakeFree && r.Owner != "" && r.Owner != owner && m.broken == "eternal":
		return durable.Lease{}, &durable.HeldError{Run: id, Owner: r.Owner, Expires: r.Expires}
	}
	r.Owner, r.Expires = owner, now.Add(ttl)
	if m.broken != "same epoch" {
		r.Epoch++
	}
	return r.lease(), nil
}

// leased works like find, for a holder of a lease.
func (m memory) leased(ctx context.Context, l durable.Lease, except string) (*kept, func(), error) {
	r, done, err := m.find(ctx, l.Run)
	if err == nil && (r.Epoch != l.Epoch || r.Owner == "") && m.broken != except {
		return nil, done, durable.ErrStale
	}
	if err == nil && m.broken == "expired" && !r.held(time.Now()) {
		return nil, done, durable.ErrStale
	}
	return r, done, err
}

func (m memory) Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (durable.Lease, error) {
	r, done, err := m.leased(ctx, l, "renew")
	defer done()
	if err != nil {
		return durable.Lease{}, err
	}
	r.Expires = time.Now().UTC().Round(0).Add(ttl)
	if m.broken == "renew adds" {
		r.Expires = l.Expires.Add(ttl)
	}
	return r.lease(), nil
}

func (m memory) Release(ctx context.Context, l durable.Lease) error {
	r, done, err := m.leased(ctx, l, "release")
	defer done()
	if err != nil {
		return err
	}
	r.Owner, r.Expires, r.since = "", time.Time{}, time.Now()
	return nil
}

func (m memory) Append(ctx context.Context, l durable.Lease, u durable.Update, entries ...durable.Entry) error {
	r, done, err := m.leased(ctx, l, "append")
	defer done()
	if err != nil {
		return err
	}
	journal := slices.Clip(r.journal)
	for i, e := range entries {
		if want := r.Entries + int64(i) + 1; e.Seq != want && m.broken != "seq" {
			return &durable.SeqError{Run: l.Run, Got: e.Seq, Want: want}
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
	r.journal, r.Entries = journal, r.Entries+int64(len(entries))
	r.Updated = time.Now().UTC().Round(0)
	if u.Status != "" || m.broken == "empty status" {
		r.Status, r.Reason, r.Steps = u.Status, u.Reason, u.Steps
	}
	if u.Questions != nil {
		m.ask(r, u.Questions)
	}
	if r.Status.Terminal() {
		if m.broken != "end keeps lease" {
			r.Owner, r.Expires = "", time.Time{}
		}
		if m.broken != "end keeps questions" {
			r.questions = nil
		}
	}
	r.deadline()
	return nil
}

func (m memory) ask(r *kept, asked []durable.Question) {
	old := r.questions
	r.questions = nil
	for _, q := range asked {
		q.Run, q.Data = r.ID, bytes.Clone(q.Data)
		for _, o := range old {
			if o.Call == q.Call && (o.Hash == q.Hash || m.broken == "answer of old hash") && o.Answer != nil && m.broken != "forgets answers" {
				q.Answer = o.Answer
			}
		}
		r.questions = append(r.questions, q)
	}
	if m.broken == "call order" {
		slices.SortFunc(r.questions, func(a, b durable.Question) int { return cmp.Compare(a.Call, b.Call) })
	}
}

func (r *kept) deadline() {
	r.Deadline = time.Time{}
	for _, q := range r.questions {
		if q.Answer == nil && !q.Deadline.IsZero() && (r.Deadline.IsZero() || q.Deadline.Before(r.Deadline)) {
			r.Deadline = q.Deadline
		}
	}
}

func (m memory) Entries(ctx context.Context, id agent.RunID, after int64) ([]durable.Entry, error) {
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

func (m memory) Run(ctx context.Context, id agent.RunID) (durable.Run, error) {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return durable.Run{}, err
	}
	return r.Run, nil
}

func (m memory) List(ctx context.Context, f durable.Filter) ([]durable.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []durable.Run
	behind := f.Before == ""
	limit := cmp.Or(f.Limit, durable.DefaultLimit)
	for _, r := range slices.Backward(m.runs) {
		switch {
		case !behind && r.ID == f.Before:
			behind = true
			if m.broken == "page" {
				all = append(all, r.Run)
			}
		case !behind,
			f.Status != nil && !slices.Contains(f.Status, r.Status),
			f.Agent != "" && f.Agent != r.Agent,
			f.Session != "" && f.Session != r.Session,
			f.Parent != "" && f.Parent != r.Parent,
			len(all) == limit && m.broken != "limit":
		default:
			all = append(all, r.Run)
		}
	}
	if !behind && m.broken != "page gone" {
		return nil, durable.ErrNotFound
	}
	if m.broken == "oldest first" {
		slices.Reverse(all)
	}
	return all, nil
}

func (m memory) Due(ctx context.Context, limit int) ([]durable.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	type waiting struct {
		run   durable.Run
		since time.Time
	}
	var all []waiting
	for _, r := range m.runs {
		if since, due := m.dueSince(r); due {
			all = append(all, waiting{r.Run, since})
		}
	}
	if m.broken != "due order" {
		slices.SortStableFunc(all, func(a, b waiting) int { return a.since.Compare(b.since) })
	}
	var runs []durable.Run
	for _, w := range all[:min(limit, len(all))] {
		runs = append(runs, w.run)
	}
	return runs, nil
}

func (m memory) dueSince(r *kept) (since time.Time, due bool) {
	now := time.Now()
	if r.Status.Terminal() || r.held(now) && m.broken != "due held" {
		return since, false
	}
	if r.CancelReason != "" && m.broken != "due cancelled" {
		return r.since, true
	}
	if r.Status == durable.StatusRunning {
		return cmp.Or(r.Expires, r.since), m.broken != "due running"
	}
	open, ends := 0, false
	for _, q := range r.questions {
		if q.Answer != nil {
			ends = ends || q.Answer.Ends && m.broken != "due ends"
			continue
		}
		open++
		for _, child := range m.runs {
			if child.ID == q.Child && child.Status.Terminal() && m.broken != "due child" {
				return child.Updated, true
			}
		}
	}
	if !r.Deadline.IsZero() && r.Deadline.Before(now) && m.broken != "due deadline" {
		return r.Deadline, true
	}
	return r.since, ends || open == 0 && m.broken != "due answered"
}

func (m memory) Questions(ctx context.Context, id agent.RunID) ([]durable.Question, error) {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return nil, err
	}
	var all []durable.Question
	for _, q := range r.questions {
		q.Data = bytes.Clone(q.Data)
		if q.Answer != nil {
			a := *q.Answer
			a.Data = bytes.Clone(a.Data)
			q.Answer = &a
		}
		all = append(all, q)
	}
	return all, nil
}

func (m memory) QuestionByToken(ctx context.Context, tokenHash [32]byte) (durable.Question, error) {
	if err := ctx.Err(); err != nil {
		return durable.Question{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.runs {
		for _, q := range r.questions {
			if q.TokenHash == tokenHash && (tokenHash != [32]byte{} || m.broken == "no token") {
				return q, nil
			}
		}
	}
	return durable.Question{}, durable.ErrNotFound
}

func (m memory) Answer(ctx context.Context, id agent.RunID, answers ...durable.Answer) error {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return err
	}
	if r.Status != durable.StatusWaiting && m.broken != "answer running" {
		return durable.ErrNotFound
	}
	all := slices.Clone(r.questions)
	if m.broken == "answer half" {
		all = r.questions
	}
	for _, a := range answers {
		i := slices.IndexFunc(all, func(q durable.Question) bool {
			return q.Call == a.Call && (q.Hash == a.Hash || m.broken == "answer hash")
		})
		switch {
		case i < 0:
			return durable.ErrNotFound
		case all[i].Answer != nil && m.broken != "answer twice":
			return durable.ErrAnswered
		}
		if m.broken != "answer at" {
			a.At = time.Now().UTC().Round(0)
		}
		a.Data = bytes.Clone(a.Data)
		all[i].Answer = &a
	}
	r.questions, r.since = all, time.Now()
	r.deadline()
	return nil
}

func (m memory) Cancel(ctx context.Context, id agent.RunID, reason string) error {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil || r.Status.Terminal() && m.broken != "cancel ended" {
		return err
	}
	r.CancelReason = cmp.Or(r.CancelReason, reason, "cancelled")
	return nil
}

func (m memory) Delete(ctx context.Context, id agent.RunID) error {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return err
	}
	if r.held(time.Now()) && m.broken != "delete held" {
		return &durable.HeldError{Run: id, Owner: r.Owner, Expires: r.Expires}
	}
	m.runs = slices.DeleteFunc(m.runs, func(k *kept) bool { return k == r })
	return nil
}

func (m memory) Prune(ctx context.Context, before time.Time) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.runs)
	m.runs = slices.DeleteFunc(m.runs, func(r *kept) bool {
		return (r.Status.Terminal() || m.broken == "prune running") && r.Updated.Before(before)
	})
	return n - len(m.runs), nil
}

func (m memory) DenyTools(ctx context.Context) (durable.Switch, error) {
	if err := ctx.Err(); err != nil {
		return durable.Switch{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deny, nil
}

func (m memory) SetDenyTools(ctx context.Context, s durable.Switch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deny = s
	if m.broken == "switch" {
		m.deny.Reason = ""
	}
	return nil
}

func (m memory) Close() error { return nil }
