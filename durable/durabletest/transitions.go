package durabletest

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// placements give a live run that no process holds its status: the first one that fits counts.
var placements = []struct {
	fits   func(s *state, r *row) bool
	status durable.Status
}{
	{func(_ *state, r *row) bool { return r.CancelCause != "" }, durable.StatusReady},
	{func(_ *state, r *row) bool { return r.Paused }, durable.StatusWaiting},
	{func(s *state, r *row) bool {
		return r.Status == durable.StatusWaiting && !s.isSatisfied(r) && !hasPassed(r.AnswerBy)
	}, durable.StatusWaiting},
	{func(_ *state, r *row) bool {
		return r.delayed || r.Attempts == 0 && !r.passed && r.NotBefore.After(time.Now())
	}, durable.StatusPending},
	{func(*state, *row) bool { return true }, durable.StatusReady},
}

// A need is a condition of a call. A call that does not meet it fails with the error; without one, it succeeds and changes nothing.
type need struct {
	isMet func(s *state, r *row, c *call) bool
	err   error
}

// The kinds of errors without a variable.
var (
	errHeld    = errors.New("held")
	errNumber  = errors.New("number")
	errInvalid = errors.New("invalid job")
)

// The needs of several calls.
var (
	known  = need{func(_ *state, r *row, _ *call) bool { return r != nil }, durable.ErrNotFound}
	live   = need{func(_ *state, r *row, _ *call) bool { return !r.Status.Ended() }, nil}
	unheld = need{func(_ *state, r *row, _ *call) bool { return !r.isHeld() }, errHeld}
	leased = need{func(_ *state, r *row, c *call) bool {
		return r.Epoch == c.lease.Epoch && r.Owner != "" && r.Owner == c.lease.Owner
	}, durable.ErrStale}
	newIDs = need{func(s *state, _ *row, c *call) bool { return s.hasFreeIDs(c.jobs) }, durable.ErrExists}
)

// transitions are the calls that change a run: what each needs, in this order, and what it changes.
var transitions = map[string]struct {
	needs  []need
	change func(s *state, r *row, c *call)
}{
	"submit": {[]need{newIDs}, func(s *state, _ *row, c *call) { c.result = s.addRuns(c.jobs) }},
	"begin": {
		[]need{
			{func(_ *state, _ *row, c *call) bool { return c.jobs[0].After == "" }, errInvalid},
			{func(s *state, _ *row, c *call) bool { return s.withKey(c.jobs[0].IdempotencyKey) == nil }, durable.ErrExists},
			newIDs,
		},
		func(s *state, _ *row, c *call) {
			s.addRuns(c.jobs)
			r := s.find(c.run)
			r.offer = 0
			c.result = r.start(c.lease.Owner, c.ttl)
		},
	},
	"acquire": {
		[]need{
			known,
			{live.isMet, durable.ErrEnded},
			{func(_ *state, r *row, c *call) bool {
				return !r.isHeld() || r.Owner == c.lease.Owner || c.take == durable.TakeOver
			}, errHeld},
		},
		func(_ *state, r *row, c *call) { c.result = r.start(c.lease.Owner, c.ttl) },
	},
	"claim": {nil, startClaimed},
	"commit": {
		[]need{
			known,
			{func(_ *state, r *row, c *call) bool { return !slices.Equal(r.last, c.commit.Fingerprint(c.lease)) }, nil},
			leased,
			{func(_ *state, r *row, c *call) bool {
				return len(c.commit.Entries) == 0 || c.commit.Entries[0].Seq == r.Entries+1
			}, errNumber},
			newIDs,
		},
		applyCommit,
	},
	"renew": {
		[]need{known, leased},
		func(_ *state, r *row, c *call) {
			r.Expires = time.Now().Add(c.ttl)
			c.result = r.lease()
		},
	},
	"release": {
		[]need{known, leased},
		func(s *state, r *row, c *call) {
			if r.delayed = c.ttl > 0 && r.Status == durable.StatusRunning && !r.Paused && r.CancelCause == ""; r.delayed {
				r.NotBefore = time.Now().Add(c.ttl)
			}
			r.endLease()
			place(s, r)
		},
	},
	"answer": {
		[]need{
			known,
			{func(_ *state, r *row, _ *call) bool {
				return !slices.ContainsFunc(r.waits, func(w durable.Wait) bool { return len(w.Partial) > 1 })
			}, durable.ErrConflict},
			{func(_ *state, r *row, c *call) bool {
				return !slices.ContainsFunc(c.answers, func(a durable.Answer) bool { w := r.waitWithID(a.Wait); return w != nil && w.Answer != nil })
			}, durable.ErrAnswered},
			{func(_ *state, r *row, c *call) bool {
				return r.Status == durable.StatusWaiting && !slices.ContainsFunc(c.answers, func(a durable.Answer) bool { return r.waitWithID(a.Wait) == nil })
			}, durable.ErrNotFound},
		},
		addAnswers,
	},
	"token": {
		[]need{
			known,
			{func(_ *state, r *row, c *call) bool { w := r.waitWithID(c.wait); return w != nil && w.Answer == nil }, durable.ErrNotFound},
			{func(_ *state, r *row, c *call) bool { return c.more || r.waitWithID(c.wait).TokenHash == [32]byte{} }, durable.ErrExists},
		},
		func(_ *state, r *row, c *call) {
			if !c.more {
				r.waitWithID(c.wait).TokenHash = c.token
			}
		},
	},
	"cancel": {[]need{known, live}, func(s *state, r *row, c *call) { s.cancel(r, durable.CancelRequest, c.signal.Text) }},
	"pause": {
		[]need{known, live, {func(_ *state, r *row, _ *call) bool { return !r.Paused }, nil}},
		func(s *state, r *row, _ *call) {
			r.Paused, r.Updated = true, time.Now()
			place(s, r)
		},
	},
	"resume": {
		[]need{known, live, {func(_ *state, r *row, c *call) bool { return r.Paused || c.signal.Text != "" }, nil}},
		func(s *state, r *row, c *call) {
			r.Updated = time.Now()
			if c.signal.Text != "" {
				r.addSignal(c.signal)
			}
			if r.Paused {
				r.Paused = false
				place(s, r)
			}
		},
	},
	"context": {
		[]need{known, live},
		func(_ *state, r *row, c *call) {
			r.Updated = time.Now()
			r.addSignal(c.signal)
		},
	},
	"offered": {
		[]need{{func(_ *state, r *row, c *call) bool {
			return r != nil && r.Status == durable.StatusReady && r.offer == c.number
		}, nil}},
		func(_ *state, r *row, _ *call) { r.offered = true },
	},
	"reconcile": {nil, func(s *state, _ *row, c *call) { c.result = s.passTime() }},
	"delete":    {[]need{known, unheld}, func(s *state, r *row, _ *call) { s.remove(func(other *row) bool { return other == r }) }},
	"prune": {nil, func(s *state, _ *row, c *call) {
		n := len(s.rows)
		s.remove(func(r *row) bool { return r.Status.Ended() })
		c.result = n - len(s.rows)
	}},
	"watch": {nil, giveChecks},
	"add a waiver": {
		[]need{{func(s *state, _ *row, c *call) bool { return s.findWaiver(c.name) == nil }, durable.ErrExists}},
		func(s *state, _ *row, c *call) {
			s.waivers = append(s.waivers, waiver{id: c.name, expires: c.expires})
			s.records = append(s.records, durable.AuditRecord{Kind: durable.AuditWaiver, Subject: c.name, By: "ann"})
		},
	},
	"revoke a waiver": {
		[]need{
			{func(s *state, _ *row, c *call) bool { return s.findWaiver(c.name) != nil }, durable.ErrNotFound},
			{func(s *state, _ *row, c *call) bool { return s.findWaiver(c.name).revokedBy == "" }, nil},
		},
		func(s *state, _ *row, c *call) {
			s.findWaiver(c.name).revokedBy = "ops"
			s.records = append(s.records, durable.AuditRecord{Kind: durable.AuditWaiverRevoked, Subject: c.name, By: "ops"})
		},
	},
	"put a document": {
		[]need{{func(s *state, _ *row, c *call) bool { return s.documents[c.name].newest() == c.number }, durable.ErrConflict}},
		func(s *state, _ *row, c *call) {
			s.documents[c.name] = document{append(slices.Clip(s.documents[c.name].versions), newDocument(c.name, c.number).Data), false}
		},
	},
	"delete a document": {
		[]need{{func(s *state, _ *row, c *call) bool { return s.documents[c.name].newest() > 0 }, durable.ErrNotFound}},
		func(s *state, _ *row, c *call) {
			s.documents[c.name] = document{s.documents[c.name].versions, true}
		},
	},
}

// causes are why Reconcile changes a live run, in the order in which they count.
var causes = []struct {
	applies func(r *row) bool
	change  func(s *state, r *row)
}{
	{func(r *row) bool { return r.Owner != "" && !r.isHeld() }, func(s *state, r *row) {
		r.endLease()
		place(s, r)
	}},
	{func(r *row) bool {
		return r.Status == durable.StatusWaiting && !r.isHeld() && !r.Paused && hasPassed(r.AnswerBy)
	}, place},
	{func(r *row) bool { return r.Status == durable.StatusPending && hasPassed(r.NotBefore) }, place},
	{func(r *row) bool { return r.Attempts == 0 && !r.isHeld() && hasPassed(r.StartBy) }, func(s *state, r *row) {
		if r.CancelCause == "" {
			r.CancelCause, r.CancelReason = durable.CancelStartBy, "it did not start in time"
		}
		r.Reason = agent.StopUser
		s.end(r, durable.StatusCancelled)
	}},
	{
		func(r *row) bool { return r.CancelCause == "" && hasPassed(r.Deadline) },
		func(s *state, r *row) { s.cancel(r, durable.CancelDeadline, "the deadline has passed") },
	},
}

// apply changes the state as a call must change it, and returns what the call must return.
func (s *state) apply(c *call) (any, error) {
	t, r := transitions[c.event], s.find(c.run)
	for _, n := range t.needs {
		if !n.isMet(s, r, c) {
			return nil, n.err
		}
	}
	t.change(s, r, c)
	return c.result, nil
}

// place gives a run its status, unless a process holds it, or has held it and executed it.
func place(s *state, r *row) {
	if r.isHeld() || r.Owner != "" && r.Status == durable.StatusRunning {
		return
	}
	for _, p := range placements {
		if p.fits(s, r) {
			if p.status != r.Status {
				r.endLease()
				r.become(p.status)
			}
			return
		}
	}
}

// wakeRun places a waiting run that has nothing to wait for.
func wakeRun(s *state, r *row) {
	if r.Status == durable.StatusWaiting && s.isSatisfied(r) {
		place(s, r)
	}
}

// isSatisfied reports whether a run has nothing to wait for.
func (s *state) isSatisfied(r *row) bool {
	open := 0
	for _, w := range r.waits {
		switch child := s.find(w.Child); {
		case w.Answer != nil && (w.Answer.Ends || r.anyWait), w.Answer == nil && child != nil && child.Status.Ended():
			return true
		case w.Answer == nil:
			open++
		}
	}
	return open == 0
}

func hasPassed(t time.Time) bool { return !t.IsZero() && !t.After(time.Now()) }

func (r *row) isHeld() bool { return r.Owner != "" && time.Now().Before(r.Expires) }

// become changes the status. A run that becomes ready is owed an offer.
func (r *row) become(status durable.Status) {
	r.Status, r.Ready = status, time.Time{}
	if status == durable.StatusReady {
		r.Ready, r.offered = time.Now(), false
		r.offer++
	}
}

// endLease ends the lease.
func (r *row) endLease() { r.Owner, r.Expires, r.Updated = "", time.Time{}, time.Now() }

// start leases the run to an owner. A waiting run stays waiting.
func (r *row) start(owner string, ttl time.Duration) any {
	if r.Status != durable.StatusWaiting {
		r.become(durable.StatusRunning)
		r.Attempts++
	}
	r.Owner, r.Expires, r.Updated = owner, time.Now().Add(ttl), time.Now()
	r.Epoch++
	return r.lease()
}

func (r *row) lease() durable.Lease {
	return durable.Lease{Run: r.ID, Owner: r.Owner, Epoch: r.Epoch}
}

func (r *row) addSignal(g durable.Signal) {
	r.sent++
	g.Run, g.Seq = r.ID, r.sent
	r.signals = append(slices.Clip(r.signals), g)
}

// hasFreeIDs reports whether no run has the ID of a job. A job with a known key may have any ID.
func (s *state) hasFreeIDs(jobs []durable.Job) bool {
	ids, keys := map[agent.RunID]bool{}, map[string]bool{}
	for _, r := range s.rows {
		ids[r.ID], keys[r.IdempotencyKey] = true, true
	}
	for _, j := range jobs {
		if j.IdempotencyKey == "" || !keys[j.IdempotencyKey] {
			if ids[j.ID] {
				return false
			}
			ids[j.ID], keys[j.IdempotencyKey] = true, true
		}
	}
	return true
}

// withKey returns the run with an idempotency key, or nil.
func (s *state) withKey(key string) *row {
	return s.first(func(r *row) bool { return key != "" && r.IdempotencyKey == key })
}

// addRuns adds the runs of new jobs, and returns the IDs of all.
func (s *state) addRuns(jobs []durable.Job) []agent.RunID {
	ids := []agent.RunID{}
	for _, j := range jobs {
		if r := s.withKey(j.IdempotencyKey); r != nil {
			ids = append(ids, r.ID)
			continue
		}
		j, _ = j.Prepare()
		r := &row{input: string(j.Input), submitted: string(j.Input), Run: durable.Run{
			ID: j.ID, Kind: j.Kind, Name: j.Name, Parent: j.Parent, Root: j.Root, Phase: j.Phase, After: j.After, Labels: j.Labels, Demands: j.Demands,
			Priority: j.Priority, IdempotencyKey: j.IdempotencyKey, NotBefore: j.NotBefore, StartBy: j.StartBy, Deadline: j.Deadline,
			Created: time.Now(), Updated: time.Now(),
		}}
		if after := s.find(j.After); after != nil && !after.Status.Ended() {
			r.Status, r.waits = durable.StatusWaiting, []durable.Wait{durable.AfterWait(j.ID, j.After, time.Now())}
		}
		place(s, r)
		s.rows, ids = append(s.rows, r), append(ids, r.ID)
	}
	return ids
}

// startClaimed starts the runs that the store has chosen. The result is where they must have been in the order: runs that became ready at one
// time have the same place.
func startClaimed(s *state, _ *row, c *call) {
	want := placesOf(s.claimable(c.keys))
	for _, id := range c.claimed {
		s.find(id).start(c.lease.Owner, c.ttl)
	}
	c.result = want[:min(c.limit, len(want))]
}

// applyCommit changes the run of a Commit.
func applyCommit(s *state, r *row, c *call) {
	r.last = c.commit.Fingerprint(c.lease)
	u := c.commit.Update
	r.Updated = time.Now()
	r.entries, r.Entries = append(slices.Clip(r.entries), c.commit.Entries...), r.Entries+int64(len(c.commit.Entries))
	r.events, r.Events = append(slices.Clip(r.events), c.commit.Events...), r.Events+int64(len(c.commit.Events))
	r.handled = max(r.handled, c.commit.HandledSignals)
	for _, record := range c.commit.Records {
		record.Run = r.ID
		s.records = append(s.records, record)
	}
	if u.Waits != nil {
		r.ask(u)
	}
	if u.Status != "" {
		r.Reason, r.Blocked, r.Steps = u.Reason, u.Blocked, u.Steps
	}
	switch {
	case u.Pass != nil:
		r.pass(*u.Pass)
		place(s, r)
	case u.Status.Ended():
		r.result = string(u.Result)
		s.end(r, u.Status)
	case u.Status != "":
		r.become(u.Status)
	}
	s.addRuns(c.commit.Jobs)
}

// ask replaces the waits. Those with an ID from before keep what was recorded for them.
func (r *row) ask(u durable.Update) {
	waits, claims := slices.Clone(u.Waits), map[string]checkClaim{}
	for i := range waits {
		w := &waits[i]
		w.Run = r.ID
		if old := r.waitWithID(w.ID); old != nil {
			w.TokenHash, w.Partial, w.Answer, claims[w.ID] = old.TokenHash, old.Partial, old.Answer, r.claims[w.ID]
		}
	}
	r.waits, r.claims, r.anyWait = waits, claims, u.AnyWait
	r.setAnswerBy()
}

func (r *row) setAnswerBy() {
	r.AnswerBy = time.Time{}
	for _, w := range r.waits {
		if w.Answer == nil && !w.Deadline.IsZero() && (r.AnswerBy.IsZero() || w.Deadline.Before(r.AnswerBy)) {
			r.AnswerBy = w.Deadline
		}
	}
}

// pass gives the run to the next phase, which counts its attempts again.
func (r *row) pass(p durable.Pass) {
	r.Phase, r.Attempts, r.passed, r.anyWait = p.Phase, 0, true, false
	if p.Input != nil {
		r.input = string(p.Input)
	}
	r.waits, r.claims, r.AnswerBy, r.Status = nil, nil, time.Time{}, durable.StatusRunning
	r.endLease()
}

// addAnswers adds answers to waits.
func addAnswers(s *state, r *row, c *call) {
	r.Updated = time.Now()
	for _, a := range c.answers {
		w := r.waitWithID(a.Wait)
		a.Subject = w.Subject
		if a.More {
			w.Partial = append(slices.Clip(w.Partial), a)
		} else {
			w.Answer = &a
		}
		s.records = append(s.records, durable.AuditRecord{
			Kind: durable.AuditAnswer, Run: r.ID, Subject: cmp.Or(w.Tool, w.Subject), By: a.By, Answer: &a,
		})
	}
	r.setAnswerBy()
	wakeRun(s, r)
}

// end ends a run, and wakes the runs that wait for it.
func (s *state) end(r *row, status durable.Status) {
	r.endLease()
	r.become(status)
	r.Paused, r.waits, r.claims, r.AnswerBy = false, nil, nil, time.Time{}
	for _, other := range s.rows {
		for i, w := range other.waits {
			if w.Child != r.ID || w.Answer != nil {
				continue
			}
			wakeRun(s, other)
			if w.IsAfter() {
				other.waits[i].Answer = &durable.Answer{Wait: w.ID, Subject: w.Subject, Ends: true}
			}
		}
	}
}

// cancel requests the end of a run. One that has not started ends.
func (s *state) cancel(r *row, cause durable.CancelCause, reason string) {
	if r.CancelCause == "" {
		r.CancelCause, r.CancelReason, r.Updated = cause, cmp.Or(reason, "cancelled"), time.Now()
	}
	if !r.isHeld() && r.Attempts == 0 {
		r.Reason = agent.StopUser
		s.end(r, durable.StatusCancelled)
	} else {
		place(s, r)
	}
}

// passTime changes the runs that time changes. It returns whether it changed any, and that nothing is left.
func (s *state) passTime() []bool {
	changed := false
	for _, cause := range causes {
		for _, r := range s.rows {
			if !r.Status.Ended() && cause.applies(r) {
				cause.change(s, r)
				changed = true
			}
		}
	}
	return []bool{changed, true}
}

// remove deletes runs, and the data of their answers.
func (s *state) remove(selects func(r *row) bool) {
	for i, record := range s.records {
		if r := s.find(record.Run); r != nil && selects(r) && record.Answer != nil {
			without := *record.Answer
			without.Data = nil
			s.records[i].Answer = &without
		}
	}
	s.rows = slices.DeleteFunc(s.rows, selects)
}

// giveChecks gives an owner waits to watch.
func giveChecks(s *state, _ *row, c *call) {
	var own, free []durable.Wait
	for _, r := range s.rows {
		for _, w := range r.waits {
			claim := r.claims[w.ID]
			switch {
			case w.Answer != nil, !slices.Contains(c.kinds, w.Kind), w.Host != "" && !slices.Contains(c.hosts, w.Host),
				r.Status != durable.StatusWaiting, r.Paused:
			case claim.owner == c.lease.Owner:
				own = append(own, w)
			case claim.owner == "", hasPassed(claim.until):
				free = append(free, w)
			}
		}
	}
	slices.SortFunc(own, compareWaits)
	slices.SortFunc(free, compareWaits)
	all := slices.Concat(own, free)
	all = all[:min(c.limit, len(all))]
	for _, w := range all {
		r := s.find(w.Run)
		if r.claims = maps.Clone(r.claims); r.claims == nil {
			r.claims = map[string]checkClaim{}
		}
		if claim := r.claims[w.ID]; claim.owner != c.lease.Owner || claim.until.Before(time.Now().Add(c.ttl/2)) {
			r.claims[w.ID] = checkClaim{c.lease.Owner, time.Now().Add(c.ttl)}
		}
	}
	slices.SortFunc(all, compareWaits)
	c.result = waitNames(all)
}
