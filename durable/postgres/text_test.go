package postgres_test

import (
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
		}
		want, err := want.Prepare()
		require.NoError(r, err)
		l, err := s.Begin(t.Context(), want, "one", time.Hour)
		require.NoError(r, err)
		e := durable.Entry{Seq: 1, Kind: durable.EntryKind(texts.Draw(r, "kind")), Key: texts.Draw(r, "key"), At: time.Unix(1, 0).UTC()}
		q := durable.Wait{Run: want.ID, Call: texts.Draw(r, "call"), Hash: texts.Draw(r, "hash"), Tool: texts.Draw(r, "tool"), Asked: e.At}
		u := durable.Update{Status: durable.StatusWaiting, Reason: agent.StopReason(texts.Draw(r, "reason")), Waits: []durable.Wait{q}}
		require.NoError(r, s.Commit(t.Context(), l, commit(u, e)))
		got := run(t, s, want.ID)
		assert.Equal(r, []any{want.Session, want.Name, want.Parent, want.Root, u.Reason}, []any{got.Session, got.Name, got.Parent, got.Root, got.Reason})
		assert.Equal(r, []durable.Entry{e}, journal(t, s, want.ID))
		asked, err := s.Waits(t.Context(), want.ID)
		require.NoError(r, err)
		assert.Equal(r, []durable.Wait{q}, asked)
		require.NoError(r, s.Answer(t.Context(), want.ID, durable.Answer{Call: q.Call, Hash: q.Hash}))
		if want.Name != "" {
			found, err := s.List(t.Context(), durable.Filter{Name: want.Name, Limit: 1})
			require.NoError(r, err)
			assert.Equal(r, []agent.RunID{want.ID}, ids(found), "the newest of that name")
		}
	})
}
