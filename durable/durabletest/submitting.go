package durabletest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var submitting = map[string]part{
	"a job is a ready run": func(t *testing.T, s durable.Store) {
		want := fullJob("r")
		r := submitJobs(t, s, want)[0]
		sameJob(t, want, r)
		assert.Equal(t, durable.StatusReady, r.Status)
		assert.Equal(t, []any{"", int64(0), 0, int64(0), int64(0), 0}, []any{r.Owner, r.Epoch, r.Attempts, r.Entries, r.Events, r.Steps})
		assert.False(t, r.Created.IsZero(), "created")
		assert.False(t, r.Ready.IsZero(), "ready")
		assert.Equal(t, []any{time.Time{}, time.Time{}, "", false, false}, []any{r.Expires, r.AnswerBy, r.CancelReason, r.Paused, r.Blocked})
		assert.Equal(t, r, getRun(t, s, "r"))
		assert.Equal(t, string(want.Input), readData(t, s.Input, "r"))
		assert.Empty(t, readData(t, s.Result, "r"))
		assert.Empty(t, readJournal(t, s, "r"))
		assert.Empty(t, eventNames(t, s, "r"))
	},
	"the job survives the run": func(t *testing.T, s durable.Store) {
		want := fullJob("r")
		submitJobs(t, s, want)
		l := acquireRun(t, s, "r", "one", durable.TakeFree)
		sameJob(t, want, getRun(t, s, "r"))
		writeUpdate(t, s, l, waitUpdate(1, newWait("c")), newEntry(1))
		sameJob(t, want, getRun(t, s, "r"))
		endRun(t, s, l)
		sameJob(t, want, getRun(t, s, "r"))
		assert.Equal(t, string(want.Input), readData(t, s.Input, "r"))
	},
	"defaults are filled in": func(t *testing.T, s durable.Store) {
		runs := submitJobs(t, s, durable.Job{}, durable.Job{ID: "child", Parent: "p"}, durable.Job{Kind: durable.KindCommand})
		assert.NotEmpty(t, runs[0].ID)
		assert.NotEqual(t, runs[0].ID, runs[2].ID)
		assert.Equal(t, []any{durable.KindAgent, runs[0].ID}, []any{runs[0].Kind, runs[0].Root})
		assert.Equal(t, agent.RunID("p"), runs[1].Root)
		assert.Equal(t, durable.KindCommand, runs[2].Kind)
		assert.Empty(t, readData(t, s.Input, runs[0].ID))
		l := beginAs(t, s, durable.Job{}, "one", hour)
		assert.NotEmpty(t, l.Run)
		assert.Equal(t, l.Run, getRun(t, s, l.Run).Root)
	},
	"many jobs at once, in order": func(t *testing.T, s durable.Store) {
		var jobs []durable.Job
		for i := range 300 {
			jobs = append(jobs, durable.Job{ID: agent.RunID(strconv.Itoa(i * 7 % 300)), Name: strconv.Itoa(i % 3), Input: fmt.Append(nil, i)})
		}
		for i, r := range submitJobs(t, s, jobs...) {
			require.Equal(t, jobs[i].ID, r.ID)
			require.Equal(t, jobs[i].Name, r.Name)
		}
		assert.Equal(t, "9", readData(t, s.Input, jobs[9].ID))
		assert.Equal(t, jobs[299].ID, listIDs(t, s, durable.Filter{Limit: 1})[0], "the last one is the newest")
		submitJobs(t, s)
		assert.Len(t, listIDs(t, s, durable.Filter{Limit: 1000}), 300)
	},
	"an ID is taken once, and no job is stored": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("r"))
		for name, jobs := range map[string][]durable.Job{
			"known":        {newJob("a"), {ID: "r", Name: "other"}, newJob("b")},
			"known, first": {newJob("r"), newJob("a")},
			"twice":        {newJob("a"), newJob("b"), newJob("a")},
		} {
			changesNothing(t, s, func() { require.ErrorIs(t, second(s.Submit(t.Context(), jobs...)), durable.ErrExists, name) })
		}
	},
	"an ID stays taken when the run has ended": func(t *testing.T, s durable.Store) {
		endRun(t, s, beginRun(t, s, "r"))
		require.ErrorIs(t, second(s.Begin(t.Context(), newJob("r"), "two", hour)), durable.ErrExists)
		require.ErrorIs(t, second(s.Submit(t.Context(), newJob("r"))), durable.ErrExists)
	},
	"an invalid job is refused": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		for name, bad := range map[string]durable.Job{
			"label":           {ID: "bad", Labels: map[string]string{"a b": "c"}},
			"demand":          {ID: "bad", Demands: map[string]string{"": "c"}},
			"name":            {ID: "bad", Name: strings.Repeat("x", 257)},
			"idempotency key": {ID: "bad", IdempotencyKey: strings.Repeat("x", 257)},
			"start":           {ID: "bad", NotBefore: testTime(), StartBy: testTime().Add(-hour)},
		} {
			changesNothing(t, s, func() {
				require.Error(t, second(s.Submit(t.Context(), newJob("good"), bad)), name)
				require.Error(t, second(s.Begin(t.Context(), bad, "one", hour)), name)
				require.Error(t, s.Commit(t.Context(), l, durable.Commit{Entries: newEntries(1, 1), Jobs: []durable.Job{newJob("good"), bad}}), name)
			})
		}
	},
	"a job for later is pending": func(t *testing.T, s durable.Store) {
		soon, past := newJob("soon"), newJob("past")
		soon.NotBefore, past.NotBefore = later(), longAgo()
		runs := submitJobs(t, s, soon, past)
		assert.Equal(t, []durable.Status{durable.StatusPending, durable.StatusReady}, []durable.Status{runs[0].Status, runs[1].Status})
		requireStatus(t, s, durable.StatusPending, "soon")
		assert.True(t, soon.NotBefore.Equal(getRun(t, s, "soon").NotBefore))
		assert.Equal(t, []agent.RunID{"past"}, runIDs(claimRuns(t, s, 10, testerKey())))
		assert.True(t, reconcileAll(t, s).Done)
		requireStatus(t, s, durable.StatusPending, "soon")
	},
	"a run that does not exist is not found": func(t *testing.T, s durable.Store) {
		changesNothing(t, s, func() {
			for name, err := range callRun(t.Context(), s, durable.Lease{Run: unknownRun, Owner: "one", Epoch: 1}) {
				assert.ErrorIs(t, err, durable.ErrNotFound, name)
			}
		})
	},
	"ids and texts are any text": func(t *testing.T, s durable.Store) { testTexts(t, s) },
	"a cancelled context changes nothing": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		suspendRun(t, s, "p", newWait("c"))
		submitJobs(t, s, newJob("ready"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		changesNothing(t, s, func() {
			for _, errs := range []map[string]error{callRun(ctx, s, l), callRun(ctx, s, durable.Lease{Run: "p"}), {
				"submit":          second(s.Submit(ctx, newJob("new"))),
				"begin":           second(s.Begin(ctx, newJob("new"), "one", hour)),
				"claim":           second(s.Claim(ctx, "two", hour, 1, testerKey())),
				"queues":          second(s.Queues(ctx)),
				"reconcile":       second(s.Reconcile(ctx)),
				"signals":         second(s.Signals(ctx, "one")),
				"list":            second(s.List(ctx, durable.Filter{})),
				"wait by token":   second(s.WaitByToken(ctx, [32]byte{1})),
				"open waits":      second(s.OpenWaits(ctx, durable.WaitFilter{})),
				"watch":           second(s.ClaimChecks(ctx, "one", hour, 1, []durable.WaitKind{durable.WaitApproval})),
				"audit records":   second(s.AuditRecords(ctx, durable.AuditFilter{})),
				"add a waiver":    s.AddWaiver(ctx, newWaiver("w")),
				"revoke a waiver": s.RevokeWaiver(ctx, "w", "ops"),
				"waivers":         second(s.Waivers(ctx, true)),
				"prune":           second(s.Prune(ctx, time.Now().Add(hour))),
				"deny tools":      second(s.DenyTools(ctx)),
				"set deny tools":  s.SetDenyTools(ctx, durable.Switch{On: true}),
				"owed":            second(s.Owed(ctx, hour, 10)),
				"polled":          s.RecordPoll(ctx, testerKey()),
				"served":          second(s.QueueServices(ctx, testerKey())),
				"offered":         s.RecordOffers(ctx, durable.OfferID{Run: "ready", Seq: 1}),
			}} {
				for name, err := range errs {
					assert.ErrorIs(t, err, ctx.Err(), name)
				}
			}
		})
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
	},
}

// callRun makes every call about a run, and returns their errors.
func callRun(ctx context.Context, s durable.Store, l durable.Lease) map[string]error {
	return map[string]error{
		"acquire":   second(s.Acquire(ctx, l.Run, "two", hour, durable.TakeFree)),
		"take over": second(s.Acquire(ctx, l.Run, "two", hour, durable.TakeOver)),
		"renew":     second(s.Renew(ctx, l, hour)),
		"release":   s.Release(ctx, l, 0),
		"step":      add(ctx, s, l, durable.Update{Status: durable.StatusWaiting}, newEntry(1)),
		"commit":    s.Commit(ctx, l, durable.Commit{Entries: newEntries(1, 1), Jobs: []durable.Job{newJob("new")}}),
		"input":     second(s.Input(ctx, l.Run)),
		"result":    second(s.Result(ctx, l.Run)),
		"submitted": second(s.SubmittedInput(ctx, l.Run)),
		"entries":   second(s.Entries(ctx, l.Run, 0)),
		"events":    second(s.Events(ctx, l.Run, 0, 1)),
		"run":       second(s.Run(ctx, l.Run)),
		"waits":     second(s.Waits(ctx, l.Run)),
		"answer":    s.Answer(ctx, l.Run, durable.Answers(newAnswer("c"))),
		"token":     s.SetToken(ctx, l.Run, "c", [32]byte{1}),
		"add token": s.AddToken(ctx, l.Run, "c", [32]byte{1}),
		"cancel":    s.Signal(ctx, l.Run, durable.Signal{Kind: durable.SignalCancel, Text: "why"}),
		"pause":     s.Signal(ctx, l.Run, durable.Signal{Kind: durable.SignalPause}),
		"context":   s.Signal(ctx, l.Run, durable.Signal{Kind: durable.SignalContext, Text: "by the way"}),
		"delete":    s.Delete(ctx, l.Run),
	}
}

// fullJob returns a job with every field set.
func fullJob(id agent.RunID) durable.Job {
	return durable.Job{
		ID: id, Kind: durable.KindCommand, Name: "deploy", Version: "v1.2", Session: "s", Parent: "p", Root: "top",
		Input: []byte("input\x00\xff"), Demands: map[string]string{"gpu": "a100", "zone": "ü"}, Labels: map[string]string{"team": "red", "x/y": ""},
		Priority: -7, NotBefore: longAgo(), StartBy: later(), Deadline: later().Add(hour), IdempotencyKey: "key of " + string(id), By: "ann",
		Traits: durable.Traits{
			Turn: durable.TurnLater, ParentSession: "above", CallsBack: true, RequestKey: "hash", Hook: "on_run_start", HasHooks: true, HoldsResult: true,
			RetryOf: "before", PastHook: "guard", Because: "a reason",
			Trace: "00-1-2-01",
		},
	}
}

// sameJob compares a run with its job.
func sameJob(t *testing.T, want durable.Job, got durable.Run) {
	t.Helper()
	assert.Equal(t, []any{want.ID, want.Kind, want.Name, want.Version, want.Session, want.Parent, want.Root, want.Priority, want.IdempotencyKey, want.By},
		[]any{got.ID, got.Kind, got.Name, got.Version, got.Session, got.Parent, got.Root, got.Priority, got.IdempotencyKey, got.By})
	assert.Equal(t, want.Traits, got.Traits)
	assert.Equal(t, want.Demands, got.Demands)
	assert.Equal(t, want.Labels, got.Labels)
	for i, times := range [][2]time.Time{{want.NotBefore, got.NotBefore}, {want.StartBy, got.StartBy}, {want.Deadline, got.Deadline}} {
		assert.True(t, times[0].Equal(times[1]), "time %d: %v, want %v", i, times[1], times[0])
	}
}

// testTexts stores, reads and lists runs whose texts a store may treat specially.
func testTexts(t *testing.T, s durable.Store) {
	odd := []string{
		"it's", `"quoted"`, "a;DROP TABLE runs;--", "%", "_", "*", "a b\tc\n", "../../etc", "Ünïcödé",
		"日本語", "🦑", //nolint:gosmopolitan // as many languages as possible
		"e\u0301", "\u00e9", "NULL", "0", "00", "1e3", "case", "CASE", " case", `back\slash`, "$1 ?1 :id @p",
	}
	for _, text := range odd {
		id := agent.RunID(text)
		l := beginAs(t, s, durable.Job{
			ID: id, Session: agent.SessionID(text), Kind: durable.Kind(text), Name: text, Version: text, Parent: id, Root: id, IdempotencyKey: text, By: text,
			Traits: durable.Traits{
				Turn: durable.Turn(text), ParentSession: agent.SessionID(text), RequestKey: text, Hook: text, Trace: text,
				RetryOf: id, PastHook: text, Because: text,
			},
			Labels: map[string]string{"text": strings.NewReplacer("\n", " ", "\t", " ").Replace(text)},
		}, text, hour)
		writeCommit(t, s, l, durable.Commit{
			Entries: []durable.Entry{{Seq: 1, Kind: durable.EntryKind(text), Key: text, At: testTime()}},
			Events:  []durable.Event{{Name: text, At: testTime()}},
			Update: durable.Update{Status: durable.StatusWaiting, Reason: agent.StopReason(text), Waits: []durable.Wait{
				{ID: text, Kind: durable.WaitKind(text), Subject: text, Tool: text, Asked: testTime(), Child: agent.RunID("c" + text), Host: text},
			}},
		})
		require.NoError(t, s.Signal(t.Context(), id, cancelSignal(text)))
		require.NoError(t, s.Signal(t.Context(), id, durable.Signal{Kind: durable.SignalContext, Text: text, By: text}))
		require.NoError(t, s.AddWaiver(t.Context(), durable.Waiver{ID: text, By: text, Expires: later(), Data: []byte(text)}))
		require.NoError(t, s.RevokeWaiver(t.Context(), text, text))
	}
	for _, text := range odd {
		id := agent.RunID(text)
		r := getRun(t, s, id)
		want := slices.Repeat([]string{text}, 20)
		assert.Equal(t, want, []string{
			string(r.ID), string(r.Session), string(r.Kind), r.Name, r.Version, string(r.Parent), string(r.Root), string(r.Reason),
			r.CancelReason, r.Owner, r.IdempotencyKey, r.By, string(r.Traits.Turn), string(r.Traits.ParentSession), r.Traits.RequestKey, r.Traits.Hook,
			string(r.Traits.RetryOf), r.Traits.PastHook, r.Traits.Because, r.Traits.Trace,
		}, "%q", text)
		sameEntries(t, []durable.Entry{{Seq: 1, Kind: durable.EntryKind(text), Key: text, At: testTime()}}, readJournal(t, s, id))
		assert.Equal(t, []string{text}, eventNames(t, s, id))
		assert.Equal(t, []string{"context " + text, "cancel request " + text}, readSignals(t, s, text)[id])
		q := readWaits(t, s, id)
		require.Len(t, q, 1, "%q", text)
		assert.Equal(t, []string{text, text, text, text, text, "c" + text, text},
			[]string{q[0].ID, string(q[0].Kind), q[0].Subject, q[0].Tool, q[0].Host, string(q[0].Child), string(q[0].Run)})
		partial := durable.Answer{Wait: text, Subject: text, More: true, By: text, Data: []byte(text)}
		require.NoError(t, s.Answer(t.Context(), id, durable.Answers(partial)), "%q", text)
		sameAnswer(t, partial, readWaits(t, s, id)[0].Partial[0])
		decides := durable.Answer{Wait: text, Subject: text, By: text}
		require.NoError(t, s.Answer(t.Context(), id, durable.Answers(decides)), "%q", text)
		sameAnswer(t, decides, *readWaits(t, s, id)[0].Answer)
		assert.Equal(t, []string{"answer " + text + " " + text, "answer " + text + " " + text}, recordNames(readRecords(t, s, durable.AuditFilter{Run: id})))
		assert.Len(t, readRecords(t, s, durable.AuditFilter{Subject: text}), 4)
		for _, f := range []durable.Filter{
			{Name: text}, {Kind: r.Kind}, {Session: agent.SessionID(text)}, {Parent: id}, {Turn: r.Traits.Turn}, {ParentSession: r.Session}, {RequestKey: text},
			{RetryOf: id},
		} {
			assert.Equal(t, []agent.RunID{id}, listIDs(t, s, f), "filter %+v", f)
		}
		assert.Contains(t, listIDs(t, s, durable.Filter{Label: durable.Label{Name: "text", Value: r.Labels["text"]}}), id)
	}
}
