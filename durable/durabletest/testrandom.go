package durabletest

import (
	"context"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// TestRandom makes random calls to a store, and compares what callers see of its runs after each call with what the table of
// transitions allows. Open returns an empty store for each of the sequences of calls, and TestRandom closes it. The flags of
// package rapid set the number of sequences and replay one of them. Without -rapid.seed, the sequences are always the same.
func TestRandom(t *testing.T, open func(t *testing.T) durable.Store) {
	if seed := flag.Lookup("rapid.seed"); seed.Value.String() == seed.DefValue {
		require.NoError(t, seed.Value.Set("1"))
		defer func() { require.NoError(t, seed.Value.Set(seed.DefValue)) }()
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t)
		defer func() { assert.NoError(t, s.Close(), "close the store") }()
		r := &random{T: rt, ctx: t.Context(), store: s, state: &state{documents: map[string]document{}}}
		actions := r.actions()
		for range rapid.IntRange(1, 80).Draw(rt, "calls") {
			name := rapid.SampledFrom(actionNames).Draw(rt, "call")
			actions[name]()
		}
		r.compare(r.state.clone(), "", true)
	})
}

// random makes calls to a store.
type random struct {
	*rapid.T

	ctx    context.Context //nolint:containedctx // of the test
	store  durable.Store
	state  *state
	leases []durable.Lease
	events int // how many have been written
	calls  int // of compare
}

// call is a call of a store, with those arguments that its transition needs.
type call struct {
	event string // a key of transitions
	run   agent.RunID
	// do makes the call.
	do func() (any, error)

	lease   durable.Lease // what is not known before a call is empty
	ttl     time.Duration // or a delay
	take    durable.Take
	jobs    []durable.Job
	keys    []durable.Key
	limit   int
	claimed []agent.RunID
	commit  durable.Commit
	answers []durable.Answer
	signal  durable.Signal
	wait    string
	token   [32]byte
	more    bool // AddToken
	kinds   []durable.WaitKind
	hosts   []string
	number  int64
	name    string
	expires time.Time

	result any // what the call must return: set by its transition
}

// make makes a call, and compares what it returns and changes with what its transition allows.
func (r *random) make(c *call) {
	got, err := c.do()
	next := r.state.clone()
	want, wantErr := next.apply(c)
	require.Equal(r, kindOf(wantErr), kindOf(err), "%s: got error %v, want %v", c.event, err, wantErr)
	if err == nil {
		require.Equal(r, want, got, "%s", c.event)
		if l, ok := want.(durable.Lease); ok {
			r.leases = append(r.leases, l)
		}
	}
	r.compare(next, c.run, false)
}

// withoutResult returns what a call without a result returns.
func withoutResult(err error) (any, error) { return nil, err }

// The values that the calls choose from are few, so that calls meet each other's runs.
var (
	randomIDs    = []agent.RunID{"a", "b", "c", "d", "e"}
	randomNames  = []string{"x", "y"}
	randomOwners = []string{"one", "two"}
	// randomTTLs have expired at once, or do not expire during the test.
	randomTTLs = []time.Duration{gone, hour, hour}
	// Frequent calls are named several times.
	actionNames = []string{
		"submit", "submit", "begin", "acquire", "acquire", "claim", "claim", "commit", "commit", "commit",
		"renew", "release", "release", "suspend", "suspend", "suspend", "answer", "answer", "answer", "signal", "signal", "signal",
		"end", "reconcile", "reconcile", "offered", "delete", "prune", "token", "watch", "watch", "watch", "waiver",
		"pass", "pass", "document", "document",
	}
)

func draw[T any](r *random, what string, values ...T) T {
	return rapid.SampledFrom(values).Draw(r.T, what)
}

func (r *random) id() agent.RunID { return draw(r, "id", randomIDs...) }

func (r *random) actions() map[string]func() {
	return map[string]func(){
		"submit": r.trySubmit, "begin": r.tryBegin, "acquire": r.tryAcquire, "claim": r.tryClaim, "commit": r.tryCommit, "suspend": r.trySuspend,
		"renew":   func() { r.tryRenew(r.lease(), draw(r, "ttl", randomTTLs...)) },
		"release": func() { r.tryRelease(r.lease(), draw(r, "delay", 0, 0, hour)) },
		"answer":  r.tryAnswer, "signal": r.trySignal, "offered": r.tryRecordOffers, "token": r.trySetToken, "watch": r.tryClaimChecks, "waiver": r.waive,
		"document": r.changeDocument,
		"pass": func() {
			r.write(r.lease(), passTo(draw(r, "phase", "", phaseKind), draw(r, "input", nil, nil, []byte("another"), []byte{})))
		},
		"end": func() { r.write(r.lease(), durable.Commit{Update: endUpdate()}) },
		"reconcile": func() {
			r.make(&call{event: "reconcile", do: func() (any, error) {
				done, err := r.store.Reconcile(r.ctx)
				return []bool{done.Changed(), done.Done}, err
			}})
		},
		"delete": func() {
			id := r.id()
			r.make(&call{event: "delete", run: id, do: func() (any, error) { return withoutResult(r.store.Delete(r.ctx, id)) }})
		},
		"prune": func() {
			r.make(&call{event: "prune", do: func() (any, error) { return r.store.Prune(r.ctx, later()) }})
		},
	}
}

func (r *random) job() durable.Job {
	j := durable.Job{
		ID: r.id(), Name: draw(r, "name", randomNames...), Priority: draw[int8](r, "priority", 0, 0, 1, -1),
		IdempotencyKey: draw(r, "key", "", "", "", "k", "l"), Parent: draw(r, "parent", append([]agent.RunID{""}, randomIDs...)...),
		NotBefore: draw(r, "not before", time.Time{}, time.Time{}, longAgo(), later()),
		StartBy:   draw(r, "start by", time.Time{}, time.Time{}, time.Time{}, time.Time{}, longAgo(), later()),
		Deadline:  draw(r, "deadline", time.Time{}, time.Time{}, time.Time{}, time.Time{}, longAgo(), later()),
		Labels:    map[string]string{"team": draw(r, "team", "red", "blue")},
	}
	j.Input = []byte("input of " + j.Name)
	if j.StartBy.Before(j.NotBefore) { // an invalid job would be a second reason to fail
		j.StartBy = time.Time{}
	}
	j.Phase = draw(r, "phase", "", "", "", phaseKind)
	var others []agent.RunID
	for _, run := range r.state.rows {
		if run.ID != j.ID {
			others = append(others, run.ID)
		}
	}
	if len(others) > 0 && j.NotBefore.IsZero() && draw(r, "after another", false, false, true) {
		j.After = draw(r, "after", others...)
	}
	return j
}

func (r *random) jobs(most int) (jobs []durable.Job) {
	for range rapid.IntRange(0, most).Draw(r.T, "jobs") {
		jobs = append(jobs, r.job())
	}
	return jobs
}

func (r *random) trySubmit() {
	jobs := r.jobs(3)
	r.make(&call{event: "submit", jobs: jobs, do: func() (any, error) {
		runs, err := r.store.Submit(r.ctx, jobs...)
		return runIDs(runs), err
	}})
}

// makeToLease makes a call that returns a lease.
func (r *random) makeToLease(c *call, do func() (durable.Lease, error)) {
	c.do = func() (any, error) {
		l, err := do()
		l.Expires = time.Time{}
		return l, err
	}
	r.make(c)
}

func (r *random) drawOwner() durable.Lease {
	return durable.Lease{Owner: draw(r, "owner", randomOwners...)}
}

func (r *random) tryBegin() {
	j, l, ttl := r.job(), r.drawOwner(), draw(r, "ttl", randomTTLs...)
	r.makeToLease(&call{event: "begin", run: j.ID, jobs: []durable.Job{j}, lease: l, ttl: ttl}, func() (durable.Lease, error) {
		return r.store.Begin(r.ctx, j, l.Owner, ttl)
	})
}

func (r *random) tryAcquire() {
	id, l, ttl := r.id(), r.drawOwner(), draw(r, "ttl", randomTTLs...)
	take := draw(r, "take", durable.TakeFree, durable.TakeFree, durable.TakeOver)
	r.makeToLease(&call{event: "acquire", run: id, lease: l, ttl: ttl, take: take}, func() (durable.Lease, error) {
		return r.store.Acquire(r.ctx, id, l.Owner, ttl, take)
	})
}

func (r *random) tryRenew(l durable.Lease, ttl time.Duration) {
	r.makeToLease(&call{event: "renew", run: l.Run, lease: l, ttl: ttl}, func() (durable.Lease, error) { return r.store.Renew(r.ctx, l, ttl) })
}

func (r *random) tryRelease(l durable.Lease, delay time.Duration) {
	r.make(&call{event: "release", run: l.Run, lease: l, ttl: delay, do: func() (any, error) {
		return withoutResult(r.store.Release(r.ctx, l, delay))
	}})
}

func (r *random) write(l durable.Lease, c durable.Commit) {
	r.make(&call{event: "commit", run: l.Run, lease: l, commit: c, jobs: c.Jobs, do: func() (any, error) {
		return withoutResult(r.store.Commit(r.ctx, l, c))
	}})
}

// lease chooses a lease, which may be stale.
func (r *random) lease() durable.Lease {
	var held []durable.Lease
	for _, run := range r.state.rows {
		if run.Owner != "" {
			held = append(held, run.Lease())
		}
	}
	switch {
	case len(held) > 0 && draw(r, "valid", true, true, true, false):
		return draw(r, "lease", held...)
	case len(r.leases) > 0:
		return draw(r, "lease", r.leases...)
	}
	return durable.Lease{Run: r.id(), Owner: "one", Epoch: 1}
}

// randomKeys returns the keys of all queues.
func randomKeys() []durable.Key {
	keys := []durable.Key{phaseKey()}
	for _, name := range randomNames {
		keys = append(keys, keyOf(durable.Job{Name: name}))
	}
	return keys
}

func (r *random) tryClaim() {
	c := &call{event: "claim", lease: r.drawOwner(), ttl: draw(r, "ttl", randomTTLs...), limit: rapid.IntRange(0, 3).Draw(r.T, "limit")}
	c.keys = rapid.SliceOfNDistinct(rapid.SampledFrom(randomKeys()), 1, 3, rapid.ID).Draw(r.T, "keys")
	c.do = func() (any, error) {
		runs, err := r.store.Claim(r.ctx, c.lease.Owner, c.ttl, c.limit, c.keys...)
		var rows []*row
		for _, run := range runs {
			before := r.state.find(run.ID)
			require.NotNil(r, before, "run %q", run.ID)
			rows, c.claimed = append(rows, before), append(c.claimed, run.ID)
			r.leases = append(r.leases, run.Lease())
		}
		return placesOf(rows), err
	}
	r.make(c)
}

func (r *random) drawWaits() (all []durable.Wait) {
	for _, call := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "2", "3"}), 1, 2, rapid.ID).Draw(r.T, "waits") {
		w := newWaitBy(call, draw(r, "wait deadline", time.Time{}, time.Time{}, time.Time{}, longAgo(), later()))
		w.Child = draw(r, "child", append([]agent.RunID{"", ""}, randomIDs...)...)
		w.Kind = draw(r, "kind of wait", durable.WaitApproval, durable.WaitFile, durable.WaitCommand)
		w.Host = draw(r, "host", "", "", "h")
		w.Asked = draw(r, "asked", time.Time{}, testTime(), longAgo())
		all = append(all, w)
	}
	return all
}

func (r *random) update() durable.Update {
	end := draw(r, "end", endStatuses...)
	u := durable.Update{
		Status: draw(r, "status", "", "", durable.StatusRunning, durable.StatusWaiting, durable.StatusWaiting, end, end),
		Reason: draw[agent.StopReason](r, "reason", "", agent.StopCompleted), Blocked: rapid.Bool().Draw(r.T, "blocked"),
		Steps: rapid.IntRange(0, 9).Draw(r.T, "steps"), Result: []byte(draw(r, "result", "", "result")),
	}
	switch draw(r, "ask", "no", "none", "some", "some") {
	case "none":
		u.Waits = []durable.Wait{}
	case "some":
		u.Waits, u.AnyWait = r.drawWaits(), draw(r, "any", false, true)
	}
	return u
}

// trySuspend lets a run wait for answers. Its holder may keep the lease.
func (r *random) trySuspend() {
	l := r.lease()
	c := durable.Commit{Update: waitUpdate(1, r.drawWaits()...)}
	c.Update.AnyWait = draw(r, "any", false, true)
	r.write(l, c)
	switch draw(r, "then", "release", "release", "expire", "keep") {
	case "release":
		r.tryRelease(l, 0)
	case "expire":
		r.tryRenew(l, gone)
	}
}

func (r *random) tryCommit() {
	l := r.lease()
	c := durable.Commit{Update: r.update(), HandledSignals: rapid.Int64Range(0, 2).Draw(r.T, "handled")}
	next := int64(1)
	if run := r.state.find(l.Run); run != nil {
		next += run.Entries
	}
	if draw(r, "number", "next", "next", "next", "other") == "other" {
		next += draw[int64](r, "wrong", -1, 1)
	} else {
		c.Jobs = r.jobs(1) // a commit has one reason to fail
	}
	count := rapid.Int64Range(0, 2).Draw(r.T, "entries")
	c.Entries = newEntries(next, next+count-1)
	for range rapid.IntRange(0, 2).Draw(r.T, "events") {
		e := newEvent(draw(r, "event", "e", "f"))
		r.events++
		e.At = e.At.Add(time.Duration(r.events) * time.Microsecond) // an equal Commit would be a repetition
		c.Events = append(c.Events, e)
	}
	for range rapid.IntRange(0, 1).Draw(r.T, "records") {
		a := newAnswer(draw(r, "call", "c", "d"))
		c.Records = append(c.Records, durable.AuditRecord{At: testTime(), Kind: durable.AuditAnswer, Subject: "bash", By: "ann", Answer: &a})
	}
	r.write(l, c)
}

func (r *random) changeDocument() {
	c := &call{event: "put a document", name: draw(r, "name", "d", "e")}
	if draw(r, "delete", false, false, true) {
		c.event, c.do = "delete a document", func() (any, error) { return withoutResult(r.store.DeleteDocument(r.ctx, "blueprint", c.name, 0)) }
		r.make(c)
		return
	}
	c.number = rapid.Int64Range(0, 3).Draw(r.T, "version")
	if draw(r, "newest", true, true, false) {
		c.number = r.state.documents[c.name].newest()
	}
	c.do = func() (any, error) {
		return withoutResult(second(r.store.PutDocument(r.ctx, newDocument(c.name, c.number))))
	}
	r.make(c)
}

func (r *random) tryAnswer() {
	id, calls := r.id(), []string{"1", "2", "3"}
	var asked []agent.RunID
	for _, run := range r.state.rows {
		if len(run.waits) > 0 {
			asked = append(asked, run.ID)
		}
	}
	if len(asked) > 0 && draw(r, "asked", true, true, true, false) {
		id, calls = draw(r, "run", asked...), nil
		for _, w := range r.state.find(id).waits {
			calls = append(calls, w.ID)
		}
	}
	c := &call{event: "answer", run: id}
	for _, call := range rapid.SliceOfNDistinct(rapid.SampledFrom(calls), 1, min(2, len(calls)), rapid.ID).Draw(r.T, "answers") {
		a := newAnswer(call)
		a.Ends = draw(r, "ends", false, false, false, true)
		a.Wait = draw(r, "named", a.Wait, a.Wait, a.Wait, a.Wait, a.Subject)
		a.More, a.By = draw(r, "more", false, false, true), draw(r, "by", "", "ann")
		c.answers = append(c.answers, a)
	}
	form := func(waits []durable.Wait, _ time.Time) ([]durable.Answer, error) { // refuses a third answer
		for _, w := range waits {
			if len(w.Partial) > 1 {
				return nil, durable.ErrConflict
			}
		}
		return c.answers, nil
	}
	c.do = func() (any, error) { return withoutResult(r.store.Answer(r.ctx, id, form)) }
	r.make(c)
}

func (r *random) trySetToken() {
	c := &call{event: "token", run: r.id(), wait: draw(r, "wait", "1", "2", "3"), token: [32]byte{draw[byte](r, "token", 1, 2, 3)}}
	c.more = draw(r, "add", false, false, true)
	set := r.store.SetToken
	if c.more {
		set = r.store.AddToken
	}
	c.do = func() (any, error) { return withoutResult(set(r.ctx, c.run, c.wait, c.token)) }
	r.make(c)
}

func (r *random) tryClaimChecks() {
	c := &call{event: "watch", lease: r.drawOwner(), ttl: draw(r, "ttl", gone, hour), limit: draw(r, "limit", 3, 3, 3, 1, 0)}
	c.kinds, c.hosts = draw(r, "kinds", watched, watched, []durable.WaitKind{durable.WaitFile}), draw(r, "hosts", []string{"h"}, []string{"h"}, nil)
	c.do = func() (any, error) {
		got, err := r.store.ClaimChecks(r.ctx, c.lease.Owner, c.ttl, c.limit, c.kinds, c.hosts...)
		return waitNames(got), err
	}
	r.make(c)
}

func (r *random) waive() {
	w := newWaiver(draw(r, "waiver", "1", "2", "3"))
	w.Expires = draw(r, "expires", longAgo(), later())
	c := &call{event: "add a waiver", name: w.ID, expires: w.Expires, do: func() (any, error) { return withoutResult(r.store.AddWaiver(r.ctx, w)) }}
	if draw(r, "revoke", false, true) {
		c.event, c.do = "revoke a waiver", func() (any, error) { return withoutResult(r.store.RevokeWaiver(r.ctx, w.ID, "ops")) }
	}
	r.make(c)
}

func (r *random) trySignal() {
	g := durable.Signal{
		Kind: draw(r, "kind", durable.SignalCancel, durable.SignalContext,
			durable.SignalPause, durable.SignalPause, durable.SignalResume, durable.SignalResume),
		Text: draw(r, "text", "", "text"), By: "ops",
	}
	id := r.id()
	r.make(&call{event: string(g.Kind), run: id, signal: g, do: func() (any, error) { return withoutResult(r.store.Signal(r.ctx, id, g)) }})
}

func (r *random) tryRecordOffers() {
	o := durable.OfferID{Run: r.id(), Seq: rapid.Int64Range(0, 3).Draw(r.T, "number")}
	if run := r.state.find(o.Run); run != nil && rapid.Bool().Draw(r.T, "newest") {
		o.Seq = run.offer
	}
	r.make(&call{event: "offered", run: o.Run, number: o.Seq, do: func() (any, error) { return withoutResult(r.store.RecordOffers(r.ctx, o)) }})
}

// kindOf returns the kind of an error.
func kindOf(err error) string {
	for _, known := range []error{
		durable.ErrNotFound, durable.ErrExists, durable.ErrEnded, durable.ErrStale, durable.ErrAnswered, durable.ErrConflict,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	switch {
	case err == nil:
		return ""
	case errors.As(err, new(*durable.HeldError)):
		return errHeld.Error()
	case errors.As(err, new(*durable.SeqError)):
		return errNumber.Error()
	case strings.Contains(err.Error(), "leased at once"):
		return errInvalid.Error()
	}
	return err.Error()
}
