package durabletest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// TestRandom compares a store with a model of the contract: both get the same random calls, and after each call their runs
// must be equal. Open returns an empty store for each of the sequences of calls, and TestRandom closes it. The flags of
// package rapid set the number of sequences and replay one of them. Without -rapid.seed, the sequences are always the same.
func TestRandom(t *testing.T, open func(t *testing.T) durable.Store) {
	if seed := flag.Lookup("rapid.seed"); seed.Value.String() == seed.DefValue {
		require.NoError(t, seed.Value.Set("1"))
		defer func() { require.NoError(t, seed.Value.Set(seed.DefValue)) }()
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t)
		defer func() { assert.NoError(t, s.Close(), "close the store") }()
		r := &random{T: rt, ctx: t.Context(), store: s, model: newModel("")}
		actions := r.actions()
		for range rapid.IntRange(1, 80).Draw(rt, "calls") {
			name := rapid.SampledFrom(actionNames).Draw(rt, "call")
			actions[name]()
			r.compare()
		}
	})
}

// random makes the same calls to a store and to a model.
type random struct {
	*rapid.T

	ctx    context.Context //nolint:containedctx // of the test
	store  durable.Store
	model  model
	leases []durable.Lease
	events int // how many have been written
}

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
		"submit": r.trySubmit, "begin": r.tryBegin, "acquire": r.tryAcquire, "claim": r.tryClaim, "commit": r.tryCommit,
		"suspend": r.suspend, "renew": r.tryRenew,
		"release": r.tryRelease, "answer": r.tryAnswer, "signal": r.trySignal, "reconcile": r.tryReconcile, "offered": r.tryRecordOffers,
		"token": r.trySetToken, "watch": r.tryClaimChecks, "waiver": r.tryWaiver,
		"pass": r.tryPass, "document": r.tryDocument,
		"end": func() {
			l := r.lease()
			r.same("end", r.store.Commit(r.ctx, l, durable.Commit{Update: endUpdate()}), r.model.Commit(r.ctx, l, durable.Commit{Update: endUpdate()}))
		},
		"delete": func() {
			id := r.id()
			r.same("delete", r.store.Delete(r.ctx, id), r.model.Delete(r.ctx, id))
		},
		"prune": func() {
			n, err := r.store.Prune(r.ctx, later())
			want, _ := r.model.Prune(r.ctx, later())
			r.same("prune", err, nil)
			require.Equal(r, want, n, "pruned runs")
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
	if others := r.model.otherRuns(j.ID); len(others) > 0 && j.NotBefore.IsZero() && draw(r, "after another", false, false, true) {
		j.After = draw(r, "after", others...)
	}
	return j
}

// otherRuns returns the runs except one.
func (m model) otherRuns(id agent.RunID) (ids []agent.RunID) {
	for _, r := range m.runs {
		if r.ID != id {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func (r *random) jobs(most int) (jobs []durable.Job) {
	for range rapid.IntRange(0, most).Draw(r.T, "jobs") {
		jobs = append(jobs, r.job())
	}
	return jobs
}

func (r *random) trySubmit() {
	jobs := r.jobs(3)
	runs, err := r.store.Submit(r.ctx, jobs...)
	want, wantErr := r.model.Submit(r.ctx, jobs...)
	r.same(fmt.Sprintf("submit %+v", jobs), err, wantErr)
	require.Equal(r, runIDs(want), runIDs(runs), "submitted runs")
}

func (r *random) tryBegin() {
	j, owner, ttl := r.job(), draw(r, "owner", randomOwners...), draw(r, "ttl", randomTTLs...)
	l, err := r.store.Begin(r.ctx, j, owner, ttl)
	want, wantErr := r.model.Begin(r.ctx, j, owner, ttl)
	r.keep("begin", l, want, err, wantErr)
}

func (r *random) tryAcquire() {
	id, owner, ttl := r.id(), draw(r, "owner", randomOwners...), draw(r, "ttl", randomTTLs...)
	take := draw(r, "take", durable.TakeFree, durable.TakeFree, durable.TakeOver)
	l, err := r.store.Acquire(r.ctx, id, owner, ttl, take)
	want, wantErr := r.model.Acquire(r.ctx, id, owner, ttl, take)
	r.keep("acquire", l, want, err, wantErr)
}

// keep compares leases and keeps them for later calls.
func (r *random) keep(what string, got, want durable.Lease, err, wantErr error) {
	r.same(what, err, wantErr)
	require.Equal(r, []any{want.Run, want.Owner, want.Epoch}, []any{got.Run, got.Owner, got.Epoch}, "lease")
	if err == nil {
		r.leases = append(r.leases, want)
	}
}

// lease chooses a lease, which may be stale.
func (r *random) lease() durable.Lease {
	var held []durable.Lease
	for _, run := range r.model.runs {
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

func (r *random) tryClaim() {
	owner, ttl, limit := draw(r, "owner", randomOwners...), draw(r, "ttl", randomTTLs...), rapid.IntRange(0, 3).Draw(r.T, "limit")
	var keys []durable.Key
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(randomNames), 1, 2, rapid.ID).Draw(r.T, "names") {
		keys = append(keys, keyOf(durable.Job{Name: name}))
	}
	if draw(r, "in a phase", false, true) {
		keys = append(keys, phaseKey())
	}
	runs, err := r.store.Claim(r.ctx, owner, ttl, limit, keys...)
	r.same("claim", err, nil)

	// Runs that became ready in one call have the same place in the order: the model claims those that the store chose.
	place := func(run *modelRun) string { return fmt.Sprintf("priority %d, ready %v", run.Priority, run.Ready) }
	var want, got []string
	for _, run := range r.model.claimable(keys)[:min(limit, len(r.model.claimable(keys)))] {
		want = append(want, place(run))
	}
	for _, id := range runIDs(runs) {
		run := r.model.findRun(id)
		require.NotNil(r, run, "run %q", id)
		got = append(got, place(run))
	}
	require.Equal(r, want, got, "claimed runs")
	for _, run := range runs {
		l, err := r.model.Acquire(r.ctx, run.ID, owner, ttl, durable.TakeFree)
		require.NoError(r, err)
		r.keep("claim", run.Lease(), l, nil, nil)
	}
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
	end := draw(r, "end", durable.StatusCompleted, durable.StatusFailed, durable.StatusStopped, durable.StatusCancelled)
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

// suspend lets a run wait for answers. Its holder may keep the lease.
func (r *random) suspend() {
	l := r.lease()
	c := durable.Commit{Update: waitUpdate(1, r.drawWaits()...)}
	c.Update.AnyWait = draw(r, "any", false, true)
	r.same("commit", r.store.Commit(r.ctx, l, c), r.model.Commit(r.ctx, l, c))
	switch draw(r, "then", "release", "release", "expire", "keep") {
	case "release":
		r.same("release", r.store.Release(r.ctx, l, 0), r.model.Release(r.ctx, l, 0))
	case "expire":
		got, err := r.store.Renew(r.ctx, l, gone)
		want, wantErr := r.model.Renew(r.ctx, l, gone)
		r.keep("renew", got, want, err, wantErr)
	}
}

func (r *random) tryCommit() {
	l := r.lease()
	c := durable.Commit{Update: r.update(), HandledSignals: rapid.Int64Range(0, 2).Draw(r.T, "handled")}
	next := int64(1)
	if run := r.model.findRun(l.Run); run != nil {
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
	r.same(fmt.Sprintf("commit %+v", c), r.store.Commit(r.ctx, l, c), r.model.Commit(r.ctx, l, c))
}

func (r *random) tryPass() {
	l := r.lease()
	c := passTo(draw(r, "phase", "", phaseKind), draw(r, "input", nil, nil, []byte("another"), []byte{}))
	r.same("pass", r.store.Commit(r.ctx, l, c), r.model.Commit(r.ctx, l, c))
}

func (r *random) tryDocument() {
	name := draw(r, "name", "d", "e")
	if draw(r, "delete", false, false, true) {
		r.same("delete a document", r.store.DeleteDocument(r.ctx, "blueprint", name), r.model.DeleteDocument(r.ctx, "blueprint", name))
		return
	}
	d := newDocument(name, rapid.Int64Range(0, 3).Draw(r.T, "version"))
	if draw(r, "newest", true, true, false) {
		d.Version = r.model.findDocument(d.Kind, name).newest()
	}
	_, err := r.store.PutDocument(r.ctx, d)
	r.same("put a document", err, second(r.model.PutDocument(r.ctx, d)))
}

func (r *random) tryRenew() {
	l, ttl := r.lease(), draw(r, "ttl", randomTTLs...)
	got, err := r.store.Renew(r.ctx, l, ttl)
	want, wantErr := r.model.Renew(r.ctx, l, ttl)
	r.keep("renew", got, want, err, wantErr)
}

func (r *random) tryRelease() {
	l, delay := r.lease(), draw(r, "delay", 0, 0, hour)
	r.same("release", r.store.Release(r.ctx, l, delay), r.model.Release(r.ctx, l, delay))
}

func (r *random) tryAnswer() {
	id, calls := r.id(), []string{"1", "2", "3"}
	if asked := r.model.withWaits(); len(asked) > 0 && draw(r, "asked", true, true, true, false) {
		run := draw(r, "run", asked...)
		id, calls = run.ID, nil
		for _, w := range run.waits {
			calls = append(calls, w.ID)
		}
	}
	var answers []durable.Answer
	for _, call := range rapid.SliceOfNDistinct(rapid.SampledFrom(calls), 1, min(2, len(calls)), rapid.ID).Draw(r.T, "answers") {
		a := newAnswer(call)
		a.Ends = draw(r, "ends", false, false, false, true)
		a.Wait = draw(r, "named", a.Wait, a.Wait, a.Wait, a.Wait, a.Subject)
		a.More, a.By = draw(r, "more", false, false, true), draw(r, "by", "", "ann")
		answers = append(answers, a)
	}
	form := func(waits []durable.Wait, _ time.Time) ([]durable.Answer, error) { // refuses a third answer
		for _, w := range waits {
			if len(w.Partial) > 1 {
				return nil, durable.ErrConflict
			}
		}
		return answers, nil
	}
	err, want := r.store.Answer(r.ctx, id, form), r.model.Answer(r.ctx, id, form)
	r.same("answer", err, want)
}

func (r *random) trySetToken() {
	id, wait := r.id(), draw(r, "wait", "1", "2", "3")
	token := [32]byte{draw[byte](r, "token", 1, 2, 3)}
	if draw(r, "add", false, false, true) {
		r.same("add token", r.store.AddToken(r.ctx, id, wait, token), r.model.AddToken(r.ctx, id, wait, token))
		return
	}
	r.same("token", r.store.SetToken(r.ctx, id, wait, token), r.model.SetToken(r.ctx, id, wait, token))
}

func (r *random) tryClaimChecks() {
	owner, ttl, limit := draw(r, "owner", randomOwners...), draw(r, "ttl", gone, hour), draw(r, "limit", 3, 3, 3, 1, 0)
	kinds, hosts := draw(r, "kinds", watched, watched, []durable.WaitKind{durable.WaitFile}), draw(r, "hosts", []string{"h"}, []string{"h"}, nil)
	got, err := r.store.ClaimChecks(r.ctx, owner, ttl, limit, kinds, hosts...)
	want, wantErr := r.model.ClaimChecks(r.ctx, owner, ttl, limit, kinds, hosts...)
	r.same("watch", err, wantErr)
	require.Equal(r, waitNames(want), waitNames(got), "waits to watch")
}

func (r *random) tryWaiver() {
	w := newWaiver(draw(r, "waiver", "1", "2", "3"))
	w.Expires = draw(r, "expires", longAgo(), later())
	if draw(r, "revoke", false, true) {
		r.same("revoke a waiver", r.store.RevokeWaiver(r.ctx, w.ID, "ops"), r.model.RevokeWaiver(r.ctx, w.ID, "ops"))
		return
	}
	r.same("add a waiver", r.store.AddWaiver(r.ctx, w), r.model.AddWaiver(r.ctx, w))
}

func (r *random) trySignal() {
	g := durable.Signal{
		Kind: draw(r, "kind", durable.SignalCancel, durable.SignalContext,
			durable.SignalPause, durable.SignalPause, durable.SignalResume, durable.SignalResume),
		Text: draw(r, "text", "", "text"), By: "ops",
	}
	id := r.id()
	r.same("signal", r.store.Signal(r.ctx, id, g), r.model.Signal(r.ctx, id, g))
}

func (r *random) tryReconcile() {
	got, err := r.store.Reconcile(r.ctx)
	want, wantErr := r.model.Reconcile(r.ctx)
	r.same("reconcile", err, wantErr)
	require.Equal(r, []bool{want.Changed(), want.Done}, []bool{got.Changed(), got.Done}, "reconciled: got %+v, want %+v", got, want)
}

func (r *random) tryRecordOffers() {
	id := durable.OfferID{Run: r.id(), Seq: rapid.Int64Range(0, 3).Draw(r.T, "number")}
	if run := r.model.findRun(id.Run); run != nil && rapid.Bool().Draw(r.T, "newest") {
		id.Seq = run.offer
	}
	r.same("offered", r.store.RecordOffers(r.ctx, id), r.model.RecordOffers(r.ctx, id))
}

// same compares the kinds of errors.
func (r *random) same(what string, got, want error) {
	kind := func(err error) string {
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
			return "held"
		case errors.As(err, new(*durable.SeqError)):
			return "number"
		case strings.Contains(err.Error(), "leased at once"):
			return "invalid job"
		}
		return err.Error()
	}
	require.Equal(r, kind(want), kind(got), "%s: got error %v, want %v", what, got, want)
}

// claimable returns the ready runs with the keys, in the order of claims.
func (m model) claimable(keys []durable.Key) (ready []*modelRun) {
	for _, r := range m.runs {
		if r.Status == durable.StatusReady && slices.Contains(keys, r.Needs().Key()) {
			ready = append(ready, r)
		}
	}
	m.sortReady(ready)
	return ready
}

// withWaits returns the runs that have waits.
func (m model) withWaits() (runs []*modelRun) {
	for _, r := range m.runs {
		if len(r.waits) > 0 {
			runs = append(runs, r)
		}
	}
	return runs
}
