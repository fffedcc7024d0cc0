package durabletest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
)

// recording tests the audit log.
var recording = map[string]part{
	"none": func(t *testing.T, s durable.Store) {
		assert.Empty(t, readRecords(t, s, durable.AuditFilter{}))
	},
	"an answer": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		partial, decides := newAnswer("d"), newAnswer("d")
		partial.More, partial.By, partial.Data = true, "ann", []byte("yes\x00")
		decides.Ends, decides.By, decides.Data = true, "bob", []byte("no")
		answerAll(t, s, "r", partial)
		answerAll(t, s, "r", decides)
		w := readWaits(t, s, "r")[1]
		all := readRecords(t, s, durable.AuditFilter{})
		require.Len(t, all, 2)
		for i, want := range []durable.Answer{*w.Answer, w.Partial[0]} {
			r := all[i]
			assert.Equal(t, []any{durable.AuditAnswer, w.Run, "bash", want.By}, []any{r.Kind, r.Run, r.Subject, r.By})
			assert.WithinDuration(t, getRun(t, s, "r").Created, r.At, time.Minute, "the store says when")
			require.NotNil(t, r.Answer)
			assert.True(t, r.At.Equal(r.Answer.At))
			sameAnswer(t, want, *r.Answer)
		}
	},
	"the subject of a wait without a tool": func(t *testing.T, s durable.Store) {
		w := newWait("c")
		w.Tool = ""
		suspendRun(t, s, "r", w)
		answerRun(t, s, "r", "c")
		assert.Equal(t, "subject of c", readRecords(t, s, durable.AuditFilter{})[0].Subject)
	},
	"only what was done": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(1, newWait("c"), newDecided("d")))
		changesNothing(t, s, func() {
			refusesAnswers(t, s, durable.ErrNotFound, newAnswer("c"), newAnswer("x"))
			require.ErrorIs(t, s.Answer(t.Context(), "r", func([]durable.Wait, time.Time) ([]durable.Answer, error) { return nil, errTooMany }), errTooMany)
			require.ErrorIs(t, s.RevokeWaiver(t.Context(), "w", "ops"), durable.ErrNotFound)
		})
		assert.Empty(t, readRecords(t, s, durable.AuditFilter{}))
	},
	"answers in a commit": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		record := func(call, by, data string) durable.AuditRecord {
			a := newAnswer(call)
			a.By, a.Data, a.Ends = by, []byte(data), by == "bob"
			return durable.AuditRecord{At: testTime(), Kind: durable.AuditAnswer, Subject: "bash", By: by, Answer: &a}
		}
		given := []durable.AuditRecord{record("c", "ann", "yes\x00"), record("d", "bob", "no")}
		writeCommit(t, s, l, durable.Commit{Entries: newEntries(1, 1), Records: given})
		changesNothing(t, s, func() {
			require.Error(t, s.Commit(t.Context(), l, durable.Commit{Entries: newEntries(4, 4), Records: given}), "not the next entry")
		})
		lost := l
		lost.Epoch--
		refusesCommit(t, s, durable.ErrStale, lost, durable.Commit{Records: given})
		refusesCommit(t, s, durable.ErrExists, l, durable.Commit{Jobs: []durable.Job{newJob("r")}, Records: given})
		all := readRecords(t, s, durable.AuditFilter{Run: "r"})
		require.Len(t, all, 2, "only those of the commit that succeeded")
		for i, want := range []durable.AuditRecord{given[1], given[0]} {
			got := all[i]
			assert.Equal(t, []any{durable.AuditAnswer, l.Run, "bash", want.By}, []any{got.Kind, got.Run, got.Subject, got.By})
			assert.True(t, testTime().Equal(got.At), "the time of the writer: %v", got.At)
			require.NotNil(t, got.Answer)
			sameAnswer(t, *want.Answer, *got.Answer)
			assert.True(t, got.At.Equal(got.Answer.At), "the answer has the time, too: %v", got.Answer.At)
		}
		assert.Empty(t, readWaits(t, s, "r"))
		end := durable.Commit{Update: endUpdate(), Records: []durable.AuditRecord{record("e", "cid", "yes")}}
		writeCommit(t, s, l, end)
		repeats(t, s, l, end)
		assert.Equal(t, []string{"answer bash cid", "answer bash bob", "answer bash ann"}, recordNames(readRecords(t, s, durable.AuditFilter{})))
		require.NoError(t, s.Delete(t.Context(), "r"))
		for _, r := range readRecords(t, s, durable.AuditFilter{}) {
			assert.Empty(t, r.Answer.Data)
		}
	},
	"waivers": func(t *testing.T, s durable.Store) {
		require.NoError(t, s.AddWaiver(t.Context(), newWaiver("w")))
		require.ErrorIs(t, s.AddWaiver(t.Context(), newWaiver("w")), durable.ErrExists)
		for range 2 {
			require.NoError(t, s.RevokeWaiver(t.Context(), "w", "bob"))
		}
		all := readRecords(t, s, durable.AuditFilter{})
		assert.Equal(t, []string{"waiver_revoked w bob", "waiver w ann"}, recordNames(all))
		for _, r := range all {
			assert.Nil(t, r.Answer)
			assert.Empty(t, r.Run)
			assert.WithinDuration(t, time.Now(), r.At, hour, "the store says when")
		}
	},
	"filters": func(t *testing.T, s durable.Store) {
		c, d := newWait("c"), newWait("d")
		d.Tool = "w"
		suspendRun(t, s, "a", c, d)
		suspendRun(t, s, "b", c)
		answerRun(t, s, "a", "c", "d")
		require.NoError(t, s.AddWaiver(t.Context(), newWaiver("w")))
		answerRun(t, s, "b", "c")
		require.NoError(t, s.RevokeWaiver(t.Context(), "w", "bob"))
		all := readRecords(t, s, durable.AuditFilter{})
		require.Len(t, all, 5)
		for _, f := range []struct {
			filter durable.AuditFilter
			want   []string
		}{
			{durable.AuditFilter{}, []string{"waiver_revoked w bob", "answer bash ", "waiver w ann", "answer w ", "answer bash "}},
			{durable.AuditFilter{Kind: durable.AuditAnswer}, []string{"answer bash ", "answer w ", "answer bash "}},
			{durable.AuditFilter{Kind: durable.AuditWaiver}, []string{"waiver w ann"}},
			{durable.AuditFilter{Run: "a"}, []string{"answer w ", "answer bash "}},
			{durable.AuditFilter{Run: unknownRun}, []string{}},
			{durable.AuditFilter{Subject: "w"}, []string{"waiver_revoked w bob", "waiver w ann", "answer w "}},
			{durable.AuditFilter{Subject: "w", Kind: durable.AuditAnswer}, []string{"answer w "}},
			{durable.AuditFilter{Subject: "bash", Run: "a", Kind: durable.AuditAnswer}, []string{"answer bash "}},
			{durable.AuditFilter{Limit: 2}, []string{"waiver_revoked w bob", "answer bash "}},
			{durable.AuditFilter{Before: all[1].Seq, Limit: 2}, []string{"waiver w ann", "answer w "}},
			{durable.AuditFilter{Before: all[2].Seq, Kind: durable.AuditAnswer}, []string{"answer w ", "answer bash "}},
			{durable.AuditFilter{Before: all[4].Seq}, []string{}},
		} {
			assert.Equal(t, f.want, recordNames(readRecords(t, s, f.filter)), "%+v", f.filter)
		}
	},
	"a default limit": func(t *testing.T, s durable.Store) {
		const n = durable.DefaultLimit + 1
		var waits []durable.Wait
		var answers []durable.Answer
		for i := range n {
			waits, answers = append(waits, newWait(strconv.Itoa(i))), append(answers, newAnswer(strconv.Itoa(i)))
		}
		suspendRun(t, s, "r", waits...)
		answerAll(t, s, "r", answers...)
		page := readRecords(t, s, durable.AuditFilter{})
		assert.Len(t, page, durable.DefaultLimit)
		rest := readRecords(t, s, durable.AuditFilter{Before: page[len(page)-1].Seq})
		require.Len(t, rest, 1)
		assert.Equal(t, "0", rest[0].Answer.Wait, "in the order of the answers")
	},
	"without data when the run is deleted": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		suspendRun(t, s, "other", newWait("c"))
		answerRun(t, s, "r", "c")
		answerRun(t, s, "other", "c")
		before := readRecords(t, s, durable.AuditFilter{})
		require.NoError(t, s.Delete(t.Context(), "r"))
		after := readRecords(t, s, durable.AuditFilter{})
		assert.Equal(t, before[0], after[0], "that of the other run")
		require.NotNil(t, after[1].Answer)
		assert.Empty(t, after[1].Answer.Data)
		before[1].Answer.Data, after[1].Answer.Data = nil, nil
		assert.Equal(t, before[1], after[1])
	},
	"without data when the run is pruned": func(t *testing.T, s durable.Store) {
		l := askRun(t, s, "r", newWait("c"))
		answerRun(t, s, "r", "c")
		endRun(t, s, l)
		assert.Equal(t, "yes", string(readRecords(t, s, durable.AuditFilter{})[0].Answer.Data), "the end of the run keeps it")
		require.NoError(t, second(s.Prune(t.Context(), later())))
		all := readRecords(t, s, durable.AuditFilter{Run: "r"})
		require.Len(t, all, 1)
		assert.Empty(t, all[0].Answer.Data)
		assert.Equal(t, "c", all[0].Answer.Wait)
	},
}

// waiving tests waivers.
var waiving = map[string]part{
	"none": func(t *testing.T, s durable.Store) {
		assert.Empty(t, readWaivers(t, s, true))
	},
	"are kept": func(t *testing.T, s durable.Store) {
		want := newWaiver("w")
		require.NoError(t, s.AddWaiver(t.Context(), want))
		other := newWaiver("w")
		other.By, other.Data = "bob", []byte("other")
		require.ErrorIs(t, s.AddWaiver(t.Context(), other), durable.ErrExists)
		for _, all := range []bool{true, false} {
			got := readWaivers(t, s, all)
			require.Len(t, got, 1)
			assert.Equal(t, []any{want.ID, want.By, string(want.Data), ""}, []any{got[0].ID, got[0].By, string(got[0].Data), got[0].RevokedBy})
			assert.True(t, want.Created.Equal(got[0].Created), "created %v", got[0].Created)
			assert.True(t, want.Expires.Equal(got[0].Expires), "expires %v", got[0].Expires)
			assert.True(t, got[0].Revoked.IsZero())
		}
	},
	"in force": func(t *testing.T, s durable.Store) {
		for i, id := range []string{"c", "b", "a", "d"} {
			w := newWaiver(id)
			w.Created = w.Created.Add(time.Duration(i/2) * time.Hour)
			if id == "a" {
				w.Expires = longAgo()
			}
			require.NoError(t, s.AddWaiver(t.Context(), w))
		}
		require.NoError(t, s.RevokeWaiver(t.Context(), "c", "bob"))
		assert.Equal(t, []string{"b", "d"}, waiverIDs(readWaivers(t, s, false)))
		assert.Equal(t, []string{"b", "c", "a", "d"}, waiverIDs(readWaivers(t, s, true)), "oldest first, those of one time by ID")
	},
	"are revoked once": func(t *testing.T, s durable.Store) {
		require.NoError(t, s.AddWaiver(t.Context(), newWaiver("w")))
		require.NoError(t, s.AddWaiver(t.Context(), newWaiver("x")))
		require.NoError(t, s.RevokeWaiver(t.Context(), "w", "bob"))
		before := readWaivers(t, s, true)
		assert.Equal(t, "bob", before[0].RevokedBy)
		assert.WithinDuration(t, time.Now(), before[0].Revoked, hour)
		assert.True(t, before[1].Revoked.IsZero())
		require.NoError(t, s.RevokeWaiver(t.Context(), "w", "cid"))
		assert.Equal(t, before, readWaivers(t, s, true))
		require.ErrorIs(t, s.RevokeWaiver(t.Context(), "unknown", "bob"), durable.ErrNotFound)
		require.ErrorIs(t, s.AddWaiver(t.Context(), newWaiver("w")), durable.ErrExists, "a revoked one keeps its ID")
	},
}

func newWaiver(id string) durable.Waiver {
	return durable.Waiver{ID: id, By: "ann", Created: testTime(), Expires: later(), Data: []byte("what\x00")}
}

func waiverIDs(waivers []durable.Waiver) []string {
	return lo.Map(waivers, func(w durable.Waiver, _ int) string { return w.ID })
}

func readWaivers(t *testing.T, s durable.Store, all bool) []durable.Waiver {
	return must(s.Waivers(t.Context(), all))(t)
}

func readRecords(t *testing.T, s durable.Store, f durable.AuditFilter) []durable.AuditRecord {
	t.Helper()
	records := must(s.AuditRecords(t.Context(), f))(t)
	for i := range records {
		require.Positive(t, records[i].Seq)
		if i > 0 {
			require.Less(t, records[i].Seq, records[i-1].Seq, "newest first")
		}
	}
	return records
}

// recordNames returns the kinds, subjects and names of records.
func recordNames(records []durable.AuditRecord) []string {
	return lo.Map(records, func(r durable.AuditRecord, _ int) string { return fmt.Sprintf("%s %s %s", r.Kind, r.Subject, r.By) })
}
