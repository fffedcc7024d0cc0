package durabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var creating = map[string]part{
	"a run is there, running and leased": func(t *testing.T, s durable.Store) {
		l, err := s.Create(t.Context(), durable.Run{
			ID: "r", Session: "s", Agent: "a", Parent: "p", Root: "top",
		}, "one", hour)
		require.NoError(t, err)
		assert.Equal(t, []any{agent.RunID("r"), "one", int64(1)}, []any{l.Run, l.Owner, l.Epoch}, "lease")

		r := getRun(t, s, "r")
		assert.Equal(t, []any{agent.RunID("r"), agent.SessionID("s"), "a", agent.RunID("p"), agent.RunID("top")},
			[]any{r.ID, r.Session, r.Agent, r.Parent, r.Root})
		assert.Equal(t, agent.StatusRunning, r.Status)
		assert.Equal(t, "one", r.Owner)
		assert.Equal(t, int64(1), r.Epoch)
		assert.True(t, l.Expires.Equal(r.Expires), "the lease says %v, the run %v", l.Expires, r.Expires)
		assert.WithinDuration(t, r.Created.Add(hour), r.Expires, time.Minute)
		assert.False(t, r.Created.IsZero(), "created")
		assert.Zero(t, r.Entries)
		assert.Zero(t, r.Deadline)
		assert.Empty(t, r.CancelReason)
	},
	"what the store sets is not taken from the caller": func(t *testing.T, s durable.Store) {
		long := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		createAs(t, s, durable.Run{
			ID: "r", Status: agent.StatusDone, Entries: 7, Created: long, Updated: long, Deadline: long,
			CancelReason: "no", Owner: "else", Epoch: 9, Expires: long,
		}, "one", hour)
		r := getRun(t, s, "r")
		assert.Equal(t, []any{agent.StatusRunning, int64(0), "", "one", int64(1)},
			[]any{r.Status, r.Entries, r.CancelReason, r.Owner, r.Epoch})
		assert.NotEqual(t, 1999, r.Created.Year())
		assert.NotEqual(t, 1999, r.Expires.Year())
		assert.True(t, r.Deadline.IsZero(), "deadline")
	},
	"an id is taken once": func(t *testing.T, s durable.Store) {
		createRun(t, s, "r")
		_, err := s.Create(t.Context(), durable.Run{ID: "r", Agent: "other"}, "two", hour)
		require.ErrorIs(t, err, durable.ErrExists)
		r := getRun(t, s, "r")
		assert.Equal(t, []any{"tester", "one", int64(1)}, []any{r.Agent, r.Owner, r.Epoch}, "the first run is as it was")
	},
	"an id stays taken when the run has ended": func(t *testing.T, s durable.Store) {
		writeUpdate(t, s, createRun(t, s, "r"), endUpdate())
		_, err := s.Create(t.Context(), durable.Run{ID: "r"}, "two", hour)
		require.ErrorIs(t, err, durable.ErrExists)
	},
	"a run that is not there is not found": func(t *testing.T, s durable.Store) {
		ctx, l := t.Context(), durable.Lease{Run: unknownRun, Owner: "one", Epoch: 1}
		for name, err := range map[string]error{
			"claim":     second(s.Claim(ctx, unknownRun, "one", hour, durable.TakeFree)),
			"take over": second(s.Claim(ctx, unknownRun, "one", hour, durable.TakeOver)),
			"renew":     second(s.Renew(ctx, l, hour)),
			"release":   s.Release(ctx, l),
			"append":    s.Append(ctx, l, durable.Update{}, newEntry(1)),
			"entries":   second(s.Entries(ctx, unknownRun, 0)),
			"run":       second(s.Run(ctx, unknownRun)),
			"questions": second(s.Questions(ctx, unknownRun)),
			"answer":    s.Answer(ctx, unknownRun, newAnswer("c")),
			"cancel":    s.Cancel(ctx, unknownRun, "why"),
			"delete":    s.Delete(ctx, unknownRun),
		} {
			assert.ErrorIs(t, err, durable.ErrNotFound, name)
		}
		runs, err := s.List(ctx, durable.Filter{})
		require.NoError(t, err)
		assert.Empty(t, runs)
	},
	"ids and texts are any text": func(t *testing.T, s durable.Store) {
		odd := []string{
			"it's", `"quoted"`, "a;DROP TABLE runs;--", "%", "_", "*", "a b\tc\n", "../../etc", "Ünïcödé",
			"日本語", "🦑", //nolint:gosmopolitan // as many languages as possible
			"e\u0301", "\u00e9", "NULL", "0", "00", "1e3", "case", "CASE", " case", `back\slash`, "$1 ?1 :id @p",
		}
		for _, text := range odd {
			id := agent.RunID(text)
			l := createAs(t, s, durable.Run{
				ID: id, Session: agent.SessionID(text), Agent: text, Parent: id, Root: id,
			}, text, hour)
			e := durable.Entry{Seq: 1, Kind: durable.EntryKind(text), Key: text, At: testTime()}
			q := durable.Question{Call: text, Hash: text, Tool: text, Asked: testTime(), Child: agent.RunID("c" + text)}
			writeUpdate(t, s, l, durable.Update{Status: agent.StatusParked, Reason: agent.StopReason(text), Questions: []durable.Question{q}}, e)
			require.NoError(t, s.Cancel(t.Context(), id, text))
		}
		for _, text := range odd {
			id := agent.RunID(text)
			r := getRun(t, s, id)
			assert.Equal(t, []string{text, text, text, text, text, text, text, text}, []string{
				string(r.ID), string(r.Session), r.Agent, string(r.Parent), string(r.Root), string(r.Reason), r.CancelReason, r.Owner,
			}, "%q", text)
			sameEntries(t, []durable.Entry{{Seq: 1, Kind: durable.EntryKind(text), Key: text, At: testTime()}}, readJournal(t, s, id))
			q := readQuestions(t, s, id)
			require.Len(t, q, 1, "%q", text)
			assert.Equal(t, []string{text, text, text, "c" + text, text},
				[]string{q[0].Call, q[0].Hash, q[0].Tool, string(q[0].Child), string(q[0].Run)})
			require.NoError(t, s.Answer(t.Context(), id, durable.Answer{Call: text, Hash: text}), "%q", text)
			for _, f := range []durable.Filter{{Agent: text}, {Session: agent.SessionID(text)}, {Parent: id}} {
				runs, err := s.List(t.Context(), f)
				require.NoError(t, err)
				assert.Equal(t, []agent.RunID{id}, runIDs(runs), "filter %+v", f)
			}
		}
	},
	"a context that is over changes nothing": func(t *testing.T, s durable.Store) {
		l := createRun(t, s, "r")
		parkRun(t, s, "p", newQuestion("c"))
		ctx := newCancelledContext(t)
		for name, err := range map[string]error{
			"create":            second(s.Create(ctx, durable.Run{ID: "new"}, "one", hour)),
			"claim":             second(s.Claim(ctx, "r", "two", hour, durable.TakeOver)),
			"renew":             second(s.Renew(ctx, l, hour)),
			"release":           s.Release(ctx, l),
			"append":            s.Append(ctx, l, durable.Update{Status: agent.StatusParked}, newEntry(1)),
			"entries":           second(s.Entries(ctx, "r", 0)),
			"run":               second(s.Run(ctx, "r")),
			"list":              second(s.List(ctx, durable.Filter{})),
			"due":               second(s.Due(ctx, 1)),
			"questions":         second(s.Questions(ctx, "p")),
			"question by token": second(s.QuestionByToken(ctx, [32]byte{1})),
			"answer":            s.Answer(ctx, "p", newAnswer("c")),
			"cancel":            s.Cancel(ctx, "r", "why"),
			"delete":            s.Delete(ctx, "p"),
			"prune":             second(s.Prune(ctx, time.Now().Add(hour))),
			"deny tools":        second(s.DenyTools(ctx)),
			"set deny tools":    s.SetDenyTools(ctx, durable.Switch{On: true}),
		} {
			assert.ErrorIs(t, err, ctx.Err(), name)
		}

		r := getRun(t, s, "r")
		assert.Equal(t, []any{agent.StatusRunning, int64(0), "", "one", int64(1)},
			[]any{r.Status, r.Entries, r.CancelReason, r.Owner, r.Epoch})
		assert.Nil(t, readQuestions(t, s, "p")[0].Answer)
		_, err := s.Run(t.Context(), "new")
		require.ErrorIs(t, err, durable.ErrNotFound)
		sw, err := s.DenyTools(t.Context())
		require.NoError(t, err)
		assert.False(t, sw.On)
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
	},
}

// second returns the error of a call that returns something else as well.
func second[T any](_ T, err error) error { return err }
