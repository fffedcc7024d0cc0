package postgres_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// TestAnAnswerThatIsLost has the connection break when the database has done what it
// was asked, and before the caller hears of it: the same call again has the same outcome.
func TestAnAnswerThatIsLost(t *testing.T) {
	at, lose := lossy(t, parts.Postgres(t))
	s := openClosed(t, at, postgres.Options{Conns: 1})
	l := create(t, s, "r")

	for seq, u := range []durable.Update{
		{},
		{Status: durable.StatusRunning, Steps: 1},
		{Status: durable.StatusWaiting, Steps: 2, Waits: []durable.Wait{{ID: "c", Subject: "h"}}},
		{Status: durable.StatusCompleted, Steps: 3},
	} {
		e := entry(int64(seq + 1))
		lose()
		require.Error(t, s.Commit(t.Context(), l, commit(u, e)))
		before := everything(t, s)
		require.Equal(t, entries(1, e.Seq), journal(t, s, "r"), "it was done")
		require.NoError(t, s.Commit(t.Context(), l, commit(u, e)), "the same again, with update %v", u)
		require.NoError(t, s.Commit(t.Context(), l, commit(u, e)), "and again")
		assert.Equal(t, before, everything(t, s), "it was not done twice")

		other := e
		other.Data = []byte("other")
		require.Error(t, s.Commit(t.Context(), l, commit(u, other)), "another entry of the same number is no repetition")
		u.Steps++
		require.Error(t, s.Commit(t.Context(), l, commit(u, e)), "nor is another update")
	}

	lose()
	job := durable.Job{ID: "c", Name: "a"}
	require.Error(t, second(s.Begin(t.Context(), job, "one", time.Hour)))
	require.ErrorIs(t, second(s.Begin(t.Context(), job, "one", time.Hour)), durable.ErrExists)
	require.NoError(t, second(s.Acquire(t.Context(), "c", "one", time.Hour, durable.TakeFree)), "its owner acquires what it has made")
	lose()
	require.Error(t, second(s.Acquire(t.Context(), "c", "one", time.Hour, durable.TakeFree)))
	l, err := s.Acquire(t.Context(), "c", "one", time.Hour, durable.TakeFree)
	require.NoError(t, err)
	assert.Equal(t, int64(4), l.Epoch)

	// A Commit with everything: the same again adds nothing.
	all := durable.Commit{
		Entries: entries(1, 2), Events: []durable.Event{{Name: "e", At: time.Now()}}, HandledSignals: 1,
		Jobs: []durable.Job{{Name: "no id"}, {ID: "id"}, {IdempotencyKey: "key"}},
	}
	lose()
	require.Error(t, s.Commit(t.Context(), l, all))
	before := everything(t, s)
	require.NoError(t, s.Commit(t.Context(), l, all))
	assert.Equal(t, before, everything(t, s), "it was not done twice")
	all.Events[0].Name = "f"
	require.Error(t, s.Commit(t.Context(), l, all), "another Commit is no repetition")

	// A Commit without entries: the same again adds nothing.
	for what, c := range map[string]durable.Commit{
		"events":              {Events: []durable.Event{{Name: "alone", At: time.Now()}}},
		"events and a status": {Events: []durable.Event{{Name: "wait", At: time.Now()}}, Update: durable.Update{Status: durable.StatusWaiting, Steps: 7}},
		"events and jobs":     {Events: []durable.Event{{Name: "follow", At: time.Now()}}, Jobs: []durable.Job{{Name: "no id"}}},
		"jobs with an ID":     {Jobs: []durable.Job{{ID: "alone"}}},
		"jobs with a key":     {Jobs: []durable.Job{{IdempotencyKey: "alone"}}},
		"handled signals":     {HandledSignals: 1},
	} {
		lose()
		require.Error(t, s.Commit(t.Context(), l, c), what)
		before := everything(t, s)
		events, err := s.Events(t.Context(), l.Run, 0, 100)
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, s.Commit(t.Context(), l, c), what)
		}
		again, err := s.Events(t.Context(), l.Run, 0, 100)
		require.NoError(t, err)
		assert.Equal(t, events, again, "%s: added once", what)
		assert.Len(t, everything(t, s).all, len(before.all), "%s: submitted once", what)
		if len(c.Events) > 0 {
			c.Events[0].At = c.Events[0].At.Add(time.Microsecond)
			require.NoError(t, s.Commit(t.Context(), l, c), what)
			again, err = s.Events(t.Context(), l.Run, 0, 100)
			require.NoError(t, err)
			assert.Len(t, again, len(events)+1, "%s: a later event is another one", what)
		}
	}

	// An end without entries: the same again is no error.
	last := create(t, s, "ends")
	end := durable.Commit{Update: durable.Update{Status: durable.StatusCompleted, Result: []byte("result")}}
	lose()
	require.Error(t, s.Commit(t.Context(), last, end))
	before = everything(t, s)
	require.NoError(t, s.Commit(t.Context(), last, end))
	assert.Equal(t, before, everything(t, s))
	end.Update.Result = []byte("another")
	require.ErrorIs(t, s.Commit(t.Context(), last, end), durable.ErrStale)

	w := durable.Wait{ID: "gate", Kind: durable.WaitCommand, Subject: "h"}
	require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{w}})))
	lose()
	require.Error(t, second(s.ClaimChecks(t.Context(), "one", time.Hour, 1, []durable.WaitKind{w.Kind})))
	checks, err := s.ClaimChecks(t.Context(), "one", time.Hour, 1, []durable.WaitKind{w.Kind})
	require.NoError(t, err)
	assert.Len(t, checks, 1, "the owner has what it claimed")
	lose()
	require.Error(t, s.SetToken(t.Context(), "c", "gate", [32]byte{1}))
	require.ErrorIs(t, s.SetToken(t.Context(), "c", "gate", [32]byte{1}), durable.ErrExists)
	require.NoError(t, second(s.WaitByToken(t.Context(), [32]byte{1})), "WaitByToken tells that it was done")
	for n, a := range []durable.Answer{{Wait: "gate", More: true}, {Wait: "gate"}} {
		form := func(waits []durable.Wait, _ time.Time) ([]durable.Answer, error) {
			if len(waits[0].Answers()) > n {
				return nil, durable.ErrAnswered
			}
			return []durable.Answer{a}, nil
		}
		lose()
		require.Error(t, s.Answer(t.Context(), "c", form))
		require.ErrorIs(t, s.Answer(t.Context(), "c", form), durable.ErrAnswered)
	}
	waiver := durable.Waiver{ID: "w", Expires: time.Now().Add(time.Hour)}
	lose()
	require.Error(t, s.AddWaiver(t.Context(), waiver))
	require.ErrorIs(t, s.AddWaiver(t.Context(), waiver), durable.ErrExists)
	lose()
	require.Error(t, s.RevokeWaiver(t.Context(), "w", "ann"))
	require.NoError(t, s.RevokeWaiver(t.Context(), "w", "ann"))
	records, err := s.AuditRecords(t.Context(), durable.AuditFilter{})
	require.NoError(t, err)
	assert.Equal(t, []durable.AuditKind{durable.AuditWaiverRevoked, durable.AuditWaiver, durable.AuditAnswer, durable.AuditAnswer},
		lo.Map(records, func(r durable.AuditRecord, _ int) durable.AuditKind { return r.Kind }), "each was recorded once")

	keyed := durable.Job{IdempotencyKey: "submitted"}
	lose()
	require.Error(t, second(s.Submit(t.Context(), keyed)))
	count := len(everything(t, s).all)
	runs, err := s.Submit(t.Context(), keyed)
	require.NoError(t, err)
	assert.Equal(t, "submitted", runs[0].IdempotencyKey)
	assert.Len(t, everything(t, s).all, count)
}

// lossy returns the URL of a database behind a socket of its own. After lose, the next
// answer that says that something was written is thrown away, and its connection ends.
func lossy(t *testing.T, database string) (at string, lose func()) {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	behind := filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")
	dir, err := os.MkdirTemp("", "grapnel-lossy-") //nolint:usetesting // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, ".s.PGSQL.5432"))
	require.NoError(t, err)

	var (
		armed atomic.Bool
		group sync.WaitGroup
	)
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(t.Context(), "unix", behind)
			if !assert.NoError(t, err) {
				return
			}
			group.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
			group.Go(func() { answer(client, server, &armed) })
		}
	})
	t.Cleanup(func() {
		assert.NoError(t, listener.Close())
		group.Wait()
	})
	u.RawQuery = url.Values{"host": {dir}}.Encode()
	return u.String(), func() { armed.Store(true) }
}

// answer passes on what a server says, until what it has written is to be lost.
func answer(client, server net.Conn, armed *atomic.Bool) {
	defer client.Close()
	defer server.Close()
	var (
		ready = []byte{'Z', 0, 0, 0, 5, 'I'} // the server is done with what it was asked
		said  []byte                         // since it was the last time
	)
	for b := make([]byte, 1<<20); ; {
		n, err := server.Read(b)
		if err != nil {
			return
		}
		if said = append(said, b[:n]...); bytes.HasSuffix(said, ready) {
			const isTime = "D\x00\x00\x00\x12\x00\x01\x00\x00\x00\x08" // a row with eight bytes
			wrote := bytes.Contains(said, []byte("UPDATE 1\x00")) || bytes.Contains(said, []byte("INSERT 0 1\x00")) ||
				bytes.Contains(said, []byte("SELECT 1\x00")) && !bytes.Contains(said, []byte(isTime)) // of a query that writes
			if wrote && armed.CompareAndSwap(true, false) {
				return
			}
			said = nil
		}
		if _, err := client.Write(b[:n]); err != nil {
			return
		}
	}
}
