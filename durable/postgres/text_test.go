package postgres_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// TestTextsAreAnyBytes writes texts that PostgreSQL takes and ones that it does not.
func TestTextsAreAnyBytes(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	texts := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "\x00", "a\x00b", "\xff", `\x`, `\x00`, `\\x`, `\xzz`, "é", "\ufffd", "'", `"`}),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 12), func(b []byte) string { return string(b) }),
	)
	rapid.Check(t, func(r *rapid.T) {
		want := durable.Job{
			ID: agent.NewRunID() + agent.RunID(texts.Draw(r, "id")), Session: agent.SessionID(texts.Draw(r, "session")),
			Name: texts.Draw(r, "name"), Parent: agent.RunID(texts.Draw(r, "parent")), Root: agent.RunID(texts.Draw(r, "root")),
			By: texts.Draw(r, "submitter"),
		}
		want, err := want.Prepare()
		require.NoError(r, err)
		l, err := s.Begin(t.Context(), want, "one", time.Hour)
		require.NoError(r, err)
		e := durable.Entry{Seq: 1, Kind: durable.EntryKind(texts.Draw(r, "kind")), Key: texts.Draw(r, "key"), At: time.Unix(1, 0).UTC()}
		w := durable.Wait{
			Run: want.ID, ID: texts.Draw(r, "wait"), Kind: durable.WaitKind(texts.Draw(r, "wait kind")), Subject: texts.Draw(r, "hash"),
			Tool: texts.Draw(r, "tool"), Host: texts.Draw(r, "host"), Asked: e.At,
		}
		u := durable.Update{Status: durable.StatusWaiting, Reason: agent.StopReason(texts.Draw(r, "reason")), Waits: []durable.Wait{w}}
		require.NoError(r, s.Commit(t.Context(), l, commit(u, e)))
		got := run(t, s, want.ID)
		assert.Equal(r, []any{want.Session, want.Name, want.Parent, want.Root, want.By, u.Reason}, []any{got.Session, got.Name, got.Parent, got.Root, got.By, got.Reason})
		assert.Equal(r, []durable.Entry{e}, journal(t, s, want.ID))
		asked, err := s.Waits(t.Context(), want.ID)
		require.NoError(r, err)
		assert.Equal(r, []durable.Wait{w}, asked)
		first := durable.Answer{Wait: w.ID, More: true, By: texts.Draw(r, "by")}
		last := durable.Answer{Wait: w.ID, By: texts.Draw(r, "by")}
		require.NoError(r, s.Answer(t.Context(), want.ID, durable.Answers(first, last)))
		asked, err = s.Waits(t.Context(), want.ID)
		require.NoError(r, err)
		assert.Equal(r, []string{first.By, last.By}, []string{asked[0].Partial[0].By, asked[0].Answer.By})
		records, err := s.AuditRecords(t.Context(), durable.AuditFilter{Run: want.ID, Subject: cmp.Or(w.Tool, w.Subject)})
		require.NoError(r, err)
		require.Len(r, records, 2)
		assert.Equal(r, []string{last.By, w.ID, w.Subject}, []string{records[0].By, records[0].Answer.Wait, records[0].Answer.Subject})
		if want.Name != "" {
			found, err := s.List(t.Context(), durable.Filter{Name: want.Name, Limit: 1})
			require.NoError(r, err)
			assert.Equal(r, []agent.RunID{want.ID}, ids(found), "the newest of that name")
		}
	})
}
