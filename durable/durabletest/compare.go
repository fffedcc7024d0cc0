package durabletest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// state is what callers see of a store, and what later calls depend on.
type state struct {
	rows      []*row // in the order of creation
	records   []durable.AuditRecord
	waivers   []waiver
	documents map[string]document
}

// row is what callers see of a run.
type row struct {
	durable.Run
	hidden

	input, submitted, result string
	waits                    []durable.Wait
	entries                  []durable.Entry
	events                   []durable.Event
}

// hidden is what earlier calls have set, and what callers see only by what later calls do.
type hidden struct {
	anyWait       bool // Update.AnyWait
	last          []byte
	offer         int64
	offered       bool
	sent, handled int64
	signals       []durable.Signal
	claims        map[string]checkClaim // by wait
	// delayed and passed are set during the call that delays the run or passes it on.
	delayed, passed bool
}

// checkClaim is a claim of ClaimChecks.
type checkClaim struct {
	owner string
	until time.Time
}

type waiver struct {
	id, revokedBy string
	expires       time.Time
}

// document has the versions of a document.
type document struct {
	versions [][]byte
	deleted  bool
}

func (d document) newest() int64 {
	if d.deleted {
		return 0
	}
	return int64(len(d.versions))
}

func (s *state) clone() *state {
	c := &state{nil, slices.Clone(s.records), slices.Clone(s.waivers), maps.Clone(s.documents)}
	for _, r := range s.rows {
		r := *r
		r.delayed, r.passed, r.waits = false, false, slices.Clone(r.waits)
		c.rows = append(c.rows, &r)
	}
	return c
}

// first returns the first selected run, or nil.
func (s *state) first(selects func(r *row) bool) *row {
	if i := slices.IndexFunc(s.rows, selects); i >= 0 {
		return s.rows[i]
	}
	return nil
}

func (s *state) find(id agent.RunID) *row { return s.first(func(r *row) bool { return r.ID == id }) }

func (s *state) findWaiver(id string) *waiver {
	if i := slices.IndexFunc(s.waivers, func(w waiver) bool { return w.id == id }); i >= 0 {
		return &s.waivers[i]
	}
	return nil
}

func (r *row) waitWithID(id string) *durable.Wait {
	if i := slices.IndexFunc(r.waits, func(w durable.Wait) bool { return w.ID == id }); i >= 0 {
		return &r.waits[i]
	}
	return nil
}

// claimable returns the ready runs with the keys, in the order of claims.
func (s *state) claimable(keys []durable.Key) (ready []*row) {
	for _, r := range s.rows {
		if r.Status == durable.StatusReady && slices.Contains(keys, r.Needs().Key()) {
			ready = append(ready, r)
		}
	}
	slices.SortStableFunc(ready, func(a, b *row) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Ready.Compare(b.Ready)) })
	return ready
}

// placesOf returns what decides the places of ready runs in the order of claims.
func placesOf(rows []*row) []string {
	places := []string{}
	for _, r := range rows {
		places = append(places, fmt.Sprintf("priority %d, ready %v", r.Priority, r.Ready))
	}
	return places
}

// compareWaits orders waits by the time at which they began, then by run and ID.
func compareWaits(a, b durable.Wait) int {
	return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.Run, b.Run), cmp.Compare(a.ID, b.ID))
}

// read returns a run as callers see it.
func (r *random) read(run durable.Run) *row {
	id, got := run.ID, &row{Run: run}
	for text, read := range map[*string]func(context.Context, agent.RunID) ([]byte, error){
		&got.input: r.store.Input, &got.submitted: r.store.SubmittedInput, &got.result: r.store.Result,
	} {
		data := must(read(r.ctx, id))(r)
		*text = string(data)
	}
	got.waits = must(r.store.Waits(r.ctx, id))(r)
	got.entries = must(r.store.Entries(r.ctx, id, 0))(r)
	got.events = must(r.store.Events(r.ctx, id, 0, 1000))(r)
	return got
}

// compare requires that the store has the state that a call about a run must leave. Times that the call sets are those of the store from
// then on. It reads the data of runs that the call may have changed, and some lists, unless it compares all.
func (r *random) compare(want *state, about agent.RunID, all bool) {
	runs := must(r.store.List(r.ctx, durable.Filter{}))(r)
	slices.Reverse(runs)
	require.Equal(r, lo.Map(want.rows, func(run *row, _ int) agent.RunID { return run.ID }), runIDs(runs), "runs")
	for i, run := range want.rows {
		before := r.state.find(run.ID)
		if !all && before != nil && run.ID != about && reflect.DeepEqual(before.Run, runs[i]) && slices.Equal(before.describe(before), run.describe(before)) {
			continue
		}
		got := r.read(runs[i])
		require.Equal(r, run.describe(before), got.describe(before), "run %q", run.ID)
		got.hidden = run.hidden
		want.rows[i] = got
	}
	r.state = want
	for i, compare := range []func(){r.compareLists, r.compareSignals, r.compareOffers, r.compareWaits, r.compareRecords, r.compareDocuments} {
		if all || (r.calls+i)%3 == 0 {
			compare()
		}
	}
	r.calls++
	for last := time.Now().Truncate(time.Microsecond); time.Now().Truncate(time.Microsecond).Equal(last); {
		time.Sleep(time.Microsecond) // each call has a time of its own
	}
}

// describe returns all that callers see of a run, with its times as they were before the call.
func (r *row) describe(before *row) []string {
	if before == nil {
		before = &row{}
	}
	lines := []string{
		fmt.Sprintf("status %s, reason %q, blocked %v, paused %v, cancelled by %q: %q",
			r.Status, r.Reason, r.Blocked, r.Paused, r.CancelCause, r.CancelReason),
		fmt.Sprintf("job %s %q %q %q %v %v %d %q %q %q",
			r.Kind, r.Name, r.Parent, r.After, r.Labels, r.Demands, r.Priority, r.IdempotencyKey, r.Root, r.input),
		fmt.Sprintf("phase %q, submitted %q", r.Phase, r.submitted),
		fmt.Sprintf("steps %d, attempts %d, entries %d, events %d, result %q", r.Steps, r.Attempts, r.Entries, r.Events, r.result),
		fmt.Sprintf("owner %q, epoch %d, expires %s, ready %s", r.Owner, r.Epoch, describeTime(r.Expires, before.Expires), describeTime(r.Ready, before.Ready)),
		fmt.Sprintf("created %s, updated %s", describeTime(r.Created, before.Created), describeTime(r.Updated, before.Updated)),
		fmt.Sprintf("not before %s, start by %s, deadline %s, answer by %s", describeTime(r.NotBefore, before.NotBefore),
			describeTime(r.StartBy, before.StartBy), describeTime(r.Deadline, before.Deadline), describeTime(r.AnswerBy, before.AnswerBy)),
	}
	for _, w := range r.waits {
		lines = append(lines, fmt.Sprintf("%s wait %q by %s, child %q, host %q, token %d",
			w.Kind, w.ID, describeTime(w.Deadline, time.Time{}), w.Child, w.Host, w.TokenHash[0]))
		for i, a := range w.Answers() {
			lines = append(lines, fmt.Sprintf("answer %d to wait %q: %q by %q, more %v, ends %v", i, w.ID, a.Data, a.By, a.More, a.Ends))
		}
	}
	for i, e := range r.entries {
		lines = append(lines, fmt.Sprintf("entry %d %d %q", i, e.Seq, e.Data))
	}
	for _, e := range r.events {
		lines = append(lines, fmt.Sprintf("event %q", e.Name))
	}
	return lines
}

// describeTime returns a time by its relation to the value before the call.
func describeTime(t, before time.Time) string {
	switch {
	case t.IsZero():
		return "never"
	case t.Equal(before):
		return "as before"
	case t.Equal(longAgo()):
		return "long ago"
	case t.Equal(later()):
		return "later"
	}
	return "new"
}

func (r *random) compareLists() {
	for _, f := range []durable.Filter{
		{Status: []durable.Status{durable.StatusReady}}, {Name: "x"}, {Label: durable.Label{Name: "team", Value: "red"}}, {Blocked: true},
	} {
		got := must(r.store.List(r.ctx, f))(r)
		ids := []agent.RunID{}
		for _, run := range slices.Backward(r.state.rows) {
			if (f.Status == nil || run.Status == f.Status[0]) && (f.Name == "" || run.Name == f.Name) &&
				(f.Label.Name == "" || run.Labels[f.Label.Name] == f.Label.Value) && (!f.Blocked || run.Blocked) {
				ids = append(ids, run.ID)
			}
		}
		require.Equal(r, ids, runIDs(got), "list %+v", f)
	}
}

func (r *random) compareSignals() {
	byRun := func(a, b durable.Signal) int { return cmp.Compare(a.Run, b.Run) }
	for _, owner := range randomOwners {
		want := []durable.Signal{}
		for _, run := range r.state.rows {
			if run.Owner == owner {
				want = append(want, run.newSignals()...)
			}
		}
		got := must(r.store.Signals(r.ctx, owner))(r)
		for i := range got {
			got[i].At = time.Time{}
		}
		slices.SortStableFunc(want, byRun)
		slices.SortStableFunc(got, byRun)
		require.Equal(r, want, append([]durable.Signal{}, got...), "signals for %q", owner)
	}
}

// newSignals returns the signals that the holder of the run has not handled.
func (r *row) newSignals() []durable.Signal {
	all := slices.DeleteFunc(slices.Clone(r.signals), func(g durable.Signal) bool { return g.Seq <= r.handled })
	if r.Paused {
		all = append(all, durable.Signal{Run: r.ID, Kind: durable.SignalPause})
	}
	if r.CancelCause != "" {
		all = append(all, durable.Signal{Run: r.ID, Kind: durable.SignalCancel, Text: r.CancelReason, Cause: r.CancelCause})
	}
	return all
}

func (r *random) compareOffers() {
	want, backlog := []durable.Offer{}, map[durable.Key]int{}
	for _, run := range r.state.rows {
		if run.Status != durable.StatusReady {
			continue
		}
		backlog[run.Needs().Key()]++
		if !run.offered {
			want = append(want, durable.Offer{OfferID: durable.OfferID{Run: run.ID, Seq: run.offer}, Key: run.Needs().Key(), Priority: run.Priority})
		}
	}
	owed := must(r.store.Owed(r.ctx, hour, 100))(r)
	require.ElementsMatch(r, want, owed, "owed offers")
	services := must(r.store.QueueServices(r.ctx, randomKeys()...))(r)
	for _, key := range randomKeys() {
		require.Equal(r, backlog[key], services[key].Backlog, "backlog")
	}
}

func (r *random) compareWaits() {
	after := newWait("2")
	after.Run = "b"
	for _, f := range []durable.WaitFilter{
		{}, {Kinds: []durable.WaitKind{durable.WaitFile, durable.WaitApproval}}, {Run: "a"}, {Expired: true}, {Limit: 2}, {After: &after},
	} {
		got := must(r.store.OpenWaits(r.ctx, f))(r)
		var want []durable.Wait
		for _, run := range r.state.rows {
			for _, w := range run.waits {
				waits := run.Status == durable.StatusWaiting || run.Status == durable.StatusReady && hasPassed(run.AnswerBy)
				if waits && w.Answer == nil && (f.Kinds == nil || slices.Contains(f.Kinds, w.Kind)) && (f.Run == "" || f.Run == run.ID) &&
					(!f.Expired || hasPassed(w.Deadline)) && (f.After == nil || compareWaits(*f.After, w) < 0) {
					want = append(want, w)
				}
			}
		}
		slices.SortFunc(want, compareWaits)
		if f.Limit > 0 {
			want = want[:min(f.Limit, len(want))]
		}
		require.Equal(r, waitNames(want), waitNames(got), "open waits %+v", f)
	}
}

func (r *random) compareRecords() {
	records := must(r.store.AuditRecords(r.ctx, durable.AuditFilter{Limit: 1000}))(r)
	slices.Reverse(records)
	describe := func(records []durable.AuditRecord) []string {
		return lo.Map(records, func(record durable.AuditRecord, _ int) string {
			a := lo.FromPtr(record.Answer)
			return fmt.Sprintf("%s of run %q, %q by %q: answer %v %q %q %q more %v, ends %v", record.Kind, record.Run, record.Subject,
				record.By, record.Answer != nil, a.Wait, a.Subject, a.Data, a.More, a.Ends)
		})
	}
	require.Equal(r, describe(r.state.records), describe(records), "audit records")
	for _, all := range []bool{true, false} {
		waivers := must(r.store.Waivers(r.ctx, all))(r)
		want := append([]waiver{}, r.state.waivers...)
		if !all {
			want = slices.DeleteFunc(want, func(w waiver) bool { return w.revokedBy != "" || hasPassed(w.expires) })
		}
		slices.SortFunc(want, func(a, b waiver) int { return cmp.Compare(a.id, b.id) })
		got := lo.Map(waivers, func(w durable.Waiver, _ int) waiver { return waiver{w.ID, w.RevokedBy, w.Expires.UTC()} })
		require.Equal(r, want, got, "waivers")
	}
}

func (r *random) compareDocuments() {
	got := must(r.store.ListDocuments(r.ctx, "blueprint", "", 10))(r)
	names := []string{}
	for _, d := range got {
		names = append(names, d.Name)
		for i, data := range r.state.documents[d.Name].versions {
			old := must(r.store.Document(r.ctx, d.Kind, d.Name, int64(i)+1))(r)
			require.True(r, bytes.Equal(data, old.Data), "version %d of document %q: %q", i+1, d.Name, old.Data)
		}
		require.Equal(r, r.state.documents[d.Name].newest(), d.Version, "document %q", d.Name)
	}
	want := slices.DeleteFunc(slices.Sorted(maps.Keys(r.state.documents)), func(name string) bool { return r.state.documents[name].newest() == 0 })
	require.Equal(r, append([]string{}, want...), names, "documents")
}
