package durabletest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const (
	// hour is a lease longer than any test.
	hour = time.Hour
	// gone is a lease that has expired as soon as it is granted.
	gone = time.Nanosecond
	// unknownRun is the id of a run that does not exist.
	unknownRun agent.RunID = "unknown"
)

// endStatuses are the statuses of runs that have ended.
var endStatuses = []durable.Status{durable.StatusCompleted, durable.StatusFailed, durable.StatusStopped, durable.StatusCancelled}

// patience is how long the tests wait for something that must happen.
var patience = 30 * time.Second

// testTime returns a time in the past that every store can represent.
func testTime() time.Time { return time.Date(2026, 11, 21, 12, 5, 8, 123456000, time.UTC) }

// longAgo returns a time in the past for every clock, and later one in the future.
func longAgo() time.Time { return testTime().AddDate(-5, 0, 0) }
func later() time.Time   { return testTime().AddDate(100, 0, 0) }

// newJob returns a small job. Its queue is that of all jobs of newJob.
func newJob(id agent.RunID) durable.Job {
	return durable.Job{ID: id, Name: "tester", Session: "s", Input: []byte("input of " + id)}
}

// newLaterJob returns a job whose run is pending.
func newLaterJob(id agent.RunID) durable.Job {
	j := newJob(id)
	j.NotBefore = later()
	return j
}

// testerKey returns the key of the jobs that newJob returns.
func testerKey() durable.Key { return keyOf(newJob("")) }

// keyOf returns the key of a job.
func keyOf(j durable.Job) durable.Key {
	if j.Kind == "" {
		j.Kind = durable.KindAgent
	}
	return j.Needs().Key()
}

// beginRun begins a run that one owner holds for an hour.
func beginRun(t *testing.T, s durable.Store, id agent.RunID) durable.Lease {
	t.Helper()
	return beginAs(t, s, newJob(id), "one", hour)
}

func beginAs(t *testing.T, s durable.Store, j durable.Job, owner string, ttl time.Duration) durable.Lease {
	return must(s.Begin(t.Context(), j, owner, ttl))(t)
}

func submitJobs(t *testing.T, s durable.Store, jobs ...durable.Job) []durable.Run {
	t.Helper()
	runs := must(s.Submit(t.Context(), jobs...))(t)
	require.Len(t, runs, len(jobs), "submitted runs")
	return runs
}

// getRun returns the record of a run, which must exist.
func getRun(t *testing.T, s durable.Store, id agent.RunID) durable.Run {
	return must(s.Run(t.Context(), id))(t)
}

// requireStatus checks the status of a run, and that it has a Ready exactly while it is ready.
func requireStatus(t *testing.T, s durable.Store, want durable.Status, ids ...agent.RunID) {
	t.Helper()
	for _, id := range ids {
		r := getRun(t, s, id)
		require.Equal(t, want, r.Status, "status of run %q", id)
		require.Equal(t, want == durable.StatusReady, !r.Ready.IsZero(), "run %q is %s since %v", id, r.Status, r.Ready)
	}
}

func acquireRun(t *testing.T, s durable.Store, id agent.RunID, owner string, take durable.Take) durable.Lease {
	return must(s.Acquire(t.Context(), id, owner, hour, take))(t)
}

// claimRuns claims runs for an hour as "two".
func claimRuns(t *testing.T, s durable.Store, limit int, keys ...durable.Key) []durable.Run {
	return must(s.Claim(t.Context(), "two", hour, limit, keys...))(t)
}

// add commits an update and entries.
func add(ctx context.Context, s durable.Store, l durable.Lease, u durable.Update, entries ...durable.Entry) error {
	return s.Commit(ctx, l, durable.Commit{Entries: entries, Update: u})
}

func writeUpdate(t *testing.T, s durable.Store, l durable.Lease, u durable.Update, entries ...durable.Entry) {
	t.Helper()
	writeCommit(t, s, l, durable.Commit{Entries: entries, Update: u})
}

func writeCommit(t *testing.T, s durable.Store, l durable.Lease, c durable.Commit) {
	t.Helper()
	require.NoError(t, s.Commit(t.Context(), l, c), "commit to run %q", l.Run)
}

func endRun(t *testing.T, s durable.Store, l durable.Lease) {
	t.Helper()
	writeUpdate(t, s, l, endUpdate())
}

func releaseRun(t *testing.T, s durable.Store, l durable.Lease) {
	t.Helper()
	require.NoError(t, s.Release(t.Context(), l, 0), "release run %q", l.Run)
}

// expireLease makes a lease expire at once.
func expireLease(t *testing.T, s durable.Store, l durable.Lease) {
	t.Helper()
	require.NoError(t, second(s.Renew(t.Context(), l, gone)))
}

func reconcileAll(t *testing.T, s durable.Store) durable.Reconciled {
	return must(s.Reconcile(t.Context()))(t)
}

// askRun begins a run that waits for answers. Its process still holds it.
func askRun(t *testing.T, s durable.Store, id agent.RunID, waits ...durable.Wait) durable.Lease {
	t.Helper()
	l := beginRun(t, s, id)
	writeUpdate(t, s, l, waitUpdate(1, waits...))
	return l
}

// suspendRun begins a run that waits for answers and that no process holds.
func suspendRun(t *testing.T, s durable.Store, id agent.RunID, waits ...durable.Wait) {
	t.Helper()
	releaseRun(t, s, askRun(t, s, id, waits...))
}

func waitUpdate(steps int, waits ...durable.Wait) durable.Update {
	return durable.Update{Status: durable.StatusWaiting, Steps: steps, Waits: waits}
}

// endUpdate returns an update that ends a run.
func endUpdate() durable.Update {
	return durable.Update{Status: durable.StatusCompleted, Reason: agent.StopCompleted, Steps: 3}
}

// newEntry returns a small entry with that number.
func newEntry(seq int64) durable.Entry {
	return durable.Entry{Seq: seq, Kind: "note", At: testTime(), Data: []byte("data")}
}

// newEntries returns small entries with those numbers.
func newEntries(from, to int64) []durable.Entry {
	var all []durable.Entry
	for seq := from; seq <= to; seq++ {
		all = append(all, newEntry(seq))
	}
	return all
}

// newEvent returns a small event.
func newEvent(name string) durable.Event {
	return durable.Event{At: testTime(), Name: name, Data: []byte("data of " + name)}
}

func readEvents(t *testing.T, s durable.Store, id agent.RunID, after int64, limit int) []durable.Event {
	return must(s.Events(t.Context(), id, after, limit))(t)
}

// eventNames returns the names of all events of a run.
func eventNames(t *testing.T, s durable.Store, id agent.RunID) []string {
	t.Helper()
	return lo.Map(readEvents(t, s, id, 0, 10_000), func(e durable.Event, _ int) string { return e.Name })
}

// readJournal returns the whole journal of a run.
func readJournal(t *testing.T, s durable.Store, id agent.RunID) []durable.Entry {
	return must(s.Entries(t.Context(), id, 0))(t)
}

// readData returns what Store.Input, Store.SubmittedInput or Store.Result return for a run.
func readData(t *testing.T, read func(ctx context.Context, id agent.RunID) ([]byte, error), id agent.RunID) string {
	return string(must(read(t.Context(), id))(t))
}

// newWait returns a wait for an approval.
func newWait(id string) durable.Wait {
	return durable.Wait{ID: id, Kind: durable.WaitApproval, Subject: "subject of " + id, Tool: "bash", Asked: testTime(), Data: []byte("may I?")}
}

// newWaitBy returns a wait with a deadline.
func newWaitBy(id string, deadline time.Time) durable.Wait {
	w := newWait(id)
	w.Deadline = deadline
	return w
}

// newWaitTo returns a wait for the end of a child.
func newWaitTo(id string, child agent.RunID) durable.Wait {
	w := newWait(id)
	w.Kind, w.Child = durable.WaitChild, child
	return w
}

func newAnswer(call string) durable.Answer {
	return durable.Answer{Wait: call, Subject: "subject of " + call, Data: []byte("yes")}
}

// newEnding returns an answer that ends the run.
func newEnding(call string) durable.Answer {
	a := newAnswer(call)
	a.Ends = true
	return a
}

// newPartial returns an answer that does not decide.
func newPartial(call, by string) durable.Answer {
	a := newAnswer(call)
	a.More, a.By = true, by
	return a
}

// newDecided returns a wait with its answer.
func newDecided(id string) durable.Wait {
	w := newWait(id)
	w.Answer = new(newAnswer(id))
	return w
}

// answerAll answers waits in one call.
func answerAll(t *testing.T, s durable.Store, id agent.RunID, answers ...durable.Answer) {
	t.Helper()
	require.NoError(t, s.Answer(t.Context(), id, durable.Answers(answers...)), "answer run %q", id)
}

// refusesAnswers checks that answers of the run "r" fail with an error and change nothing.
func refusesAnswers(t *testing.T, s durable.Store, want error, answers ...durable.Answer) {
	t.Helper()
	changesNothing(t, s, func() {
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(answers...)), want, "%+v", answers)
	})
}

func answerRun(t *testing.T, s durable.Store, id agent.RunID, calls ...string) {
	t.Helper()
	for _, call := range calls {
		require.NoError(t, s.Answer(t.Context(), id, durable.Answers(newAnswer(call))), "answer %q of run %q", call, id)
	}
}

func readWaits(t *testing.T, s durable.Store, id agent.RunID) []durable.Wait {
	return must(s.Waits(t.Context(), id))(t)
}

func cancelSignal(reason string) durable.Signal {
	return durable.Signal{Kind: durable.SignalCancel, Text: reason, By: "ops"}
}

func sendSignal(t *testing.T, s durable.Store, id agent.RunID, kind durable.SignalKind, text string) {
	t.Helper()
	require.NoError(t, s.Signal(t.Context(), id, durable.Signal{Kind: kind, Text: text, By: "ops"}), "send %s to run %q", kind, id)
}

func pauseRun(t *testing.T, s durable.Store, id agent.RunID) {
	t.Helper()
	sendSignal(t, s, id, durable.SignalPause, "")
	require.True(t, getRun(t, s, id).Paused, "run %q is paused", id)
}

func resumeRun(t *testing.T, s durable.Store, id agent.RunID) {
	t.Helper()
	sendSignal(t, s, id, durable.SignalResume, "")
	require.False(t, getRun(t, s, id).Paused, "run %q is paused", id)
}

// readSignals returns the kinds and texts of the signals for an owner, by run.
func readSignals(t *testing.T, s durable.Store, owner string) map[agent.RunID][]string {
	t.Helper()
	signals := must(s.Signals(t.Context(), owner))(t)
	all := map[agent.RunID][]string{}
	for i, g := range signals {
		if i > 0 && signals[i-1].Run != g.Run {
			require.NotContains(t, all, g.Run, "the signals of a run are together")
		}
		all[g.Run] = append(all[g.Run], strings.TrimSpace(string(g.Kind)+" "+string(g.Cause))+" "+g.Text)
	}
	return all
}

func runIDs(runs []durable.Run) []agent.RunID {
	return lo.Map(runs, func(r durable.Run, _ int) agent.RunID { return r.ID })
}

// look returns what callers see of a store.
func look(t *testing.T, s durable.Store) (all []any) {
	t.Helper()
	ctx := t.Context()
	add := func(v any, err error) {
		require.NoError(t, err, "look at the store")
		all = append(all, v)
	}
	runs, err := s.List(ctx, durable.Filter{Limit: 1000})
	add(runs, err)
	for _, r := range runs {
		add(s.Input(ctx, r.ID))
		add(s.SubmittedInput(ctx, r.ID))
		add(s.Result(ctx, r.ID))
		add(s.Entries(ctx, r.ID, 0))
		add(s.Events(ctx, r.ID, 0, 1000))
		add(s.Waits(ctx, r.ID))
	}
	add(s.Queues(ctx))
	add(s.Owed(ctx, hour, 1000))
	add(s.AuditRecords(ctx, durable.AuditFilter{Limit: 1000}))
	add(s.Waivers(ctx, true))
	add(s.ListDocuments(ctx, "blueprint", "", 1000))
	add(s.DenyTools(ctx))
	return append(all, readSignals(t, s, "one"), readSignals(t, s, "two"))
}

// changesNothing checks that calls change nothing that callers see.
func changesNothing(t *testing.T, s durable.Store, calls func()) {
	t.Helper()
	before := look(t, s)
	calls()
	require.Equal(t, before, look(t, s), "what callers see changes")
}

// refusesCommit checks that a Commit fails with an error and changes nothing.
func refusesCommit(t *testing.T, s durable.Store, want error, l durable.Lease, c durable.Commit, what ...any) {
	t.Helper()
	changesNothing(t, s, func() { require.ErrorIs(t, s.Commit(t.Context(), l, c), want, what...) })
}

// repeats checks that the last Commit of a run may be repeated, and then does nothing.
func repeats(t *testing.T, s durable.Store, l durable.Lease, c durable.Commit) {
	t.Helper()
	changesNothing(t, s, func() {
		for range 2 {
			writeCommit(t, s, l, c)
		}
	})
}

// must returns a func that returns the value of a call, which must have succeeded.
func must[T any](v T, err error) func(t require.TestingT) T {
	return func(t require.TestingT) T {
		require.NoError(t, err)
		return v
	}
}

// second returns the error of a call that returns something else as well.
func second[T any](_ T, err error) error { return err }

// sameEntries compares journals: a time is equal in any zone, no data is empty data.
func sameEntries(t *testing.T, want, got []durable.Entry) {
	t.Helper()
	require.Len(t, got, len(want), "entries")
	for i, w := range want {
		g := got[i]
		assert.Equal(t, []any{w.Seq, w.Kind, w.Key}, []any{g.Seq, g.Kind, g.Key}, "entry %d", i)
		assert.True(t, w.At.Equal(g.At), "entry %d: at %v, want %v", i, g.At, w.At)
		assert.Equal(t, string(w.Data), string(g.Data), "data of entry %d", i)
	}
}
