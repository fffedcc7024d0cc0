package durable_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

var keyA, keyB = bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)

func openPlain(t testing.TB, path string) durable.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Sync: sqlite.SyncNormal})
	require.NoError(t, err)
	return s
}

func encrypt(t testing.TB, s durable.Store, e durable.Encryption) durable.Store {
	t.Helper()
	x, err := durable.Encrypt(s, e)
	require.NoError(t, err)
	return x
}

func TestEncryptedIsAStore(t *testing.T) {
	t.Parallel()
	durabletest.TestStore(t, func(t *testing.T) durable.Store {
		t.Helper()
		return encrypt(t, openPlain(t, filepath.Join(t.TempDir(), "runs.db")), durable.Encryption{Key: keyA})
	})
}

func TestEncryptedSurvives(t *testing.T) {
	durabletest.TestShared(t, func(t *testing.T) func(*testing.T) durable.Store {
		t.Helper()
		path := filepath.Join(t.TempDir(), "runs.db")
		return func(t *testing.T) durable.Store {
			t.Helper()
			return encrypt(t, openPlain(t, path), durable.Encryption{Key: keyA})
		}
	})
}

// tell writes a text into an entry, a question and an answer of a run, and an answer
// that comes with its question.
func tell(t *testing.T, s durable.Store, id agent.RunID, text string) durable.Lease {
	t.Helper()
	l, err := s.Begin(t.Context(), durable.Job{ID: id}, "one", time.Hour)
	require.NoError(t, err)
	given := &durable.Answer{Wait: "d", At: time.Now(), Data: []byte(text)}
	require.NoError(t, s.Commit(t.Context(), l, durable.Commit{
		Update: durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{
			{ID: "c", Subject: "call", Tool: "bash", TokenHash: [32]byte{1}, Data: []byte(text)},
			{ID: "d", Subject: "call", Tool: "bash", Data: []byte(text), Answer: given},
		}},
		Entries: []durable.Entry{{Seq: 1, Kind: "reply", Key: "k", Data: []byte(text)}, {Seq: 2, Kind: "reply", Key: "k", Data: []byte(text)}},
	}))
	require.NoError(t, s.Answer(t.Context(), id, durable.Answers(durable.Answer{Wait: "c", Data: []byte(text)})))
	return l
}

// heard returns all texts of a run that can be read.
func heard(ctx context.Context, s durable.Store, id agent.RunID) (texts []string, err error) {
	entries, err := s.Entries(ctx, id, 0)
	for _, e := range entries {
		texts = append(texts, string(e.Data))
	}
	if err != nil {
		return texts, err
	}
	questions, err := s.Waits(ctx, id)
	for _, q := range questions {
		texts = append(texts, string(q.Data), string(q.Answer.Data))
	}
	return texts, err
}

func TestSecretIsNowhereInTheFiles(t *testing.T) {
	const secret = "the launch code is 0000"
	found := func(t *testing.T, wrap func(durable.Store) durable.Store) (open, closed int) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "runs.db")
		s := wrap(openPlain(t, path))
		tell(t, s, "r", secret)
		count := func() (n int) {
			files, err := filepath.Glob(path + "*")
			require.NoError(t, err)
			for _, file := range files {
				data, err := os.ReadFile(file)
				require.NoError(t, err)
				n += bytes.Count(data, []byte(secret))
			}
			return n
		}
		open = count()
		require.NoError(t, s.Close())
		return open, count()
	}
	open, closed := found(t, func(s durable.Store) durable.Store { return s })
	assert.GreaterOrEqual(t, open, 6, "without encryption it is there: this test sees it")
	assert.GreaterOrEqual(t, closed, 6)
	open, closed = found(t, func(s durable.Store) durable.Store { return encrypt(t, s, durable.Encryption{Key: keyA}) })
	assert.Zero(t, open, "main file and -wal")
	assert.Zero(t, closed)
}

func TestKeysCanBeChanged(t *testing.T) {
	s := openPlain(t, filepath.Join(t.TempDir(), "runs.db"))
	defer s.Close()
	old := encrypt(t, s, durable.Encryption{Key: keyA})
	both := encrypt(t, s, durable.Encryption{Key: keyB, Old: [][]byte{keyA}})
	newer := encrypt(t, s, durable.Encryption{Key: keyB})
	tell(t, old, "old", "hello")
	tell(t, both, "new", "hello")

	for name, c := range map[string]struct {
		store durable.Store
		run   agent.RunID
		reads bool
	}{
		"old key, old run": {old, "old", true}, "old key, new run": {old, "new", false},
		"both, old run": {both, "old", true}, "both, new run": {both, "new", true},
		"new key, old run": {newer, "old", false}, "new key, new run": {newer, "new", true},
	} {
		texts, err := heard(t.Context(), c.store, c.run)
		if c.reads {
			require.NoError(t, err, name)
			assert.Equal(t, []string{"hello", "hello", "hello", "hello", "hello", "hello"}, texts, name)
			continue
		}
		require.ErrorAs(t, err, new(*durable.DecryptError), name)
		assert.Empty(t, texts, name)
		assert.Regexp(t, `^decrypting entry 1 of run "(old|new)": encrypted with key [0-9a-f]{16}, which is not configured: add that key$`, err.Error())
	}
}

func TestPlainDataIsRefusedUnlessAllowed(t *testing.T) {
	s := openPlain(t, filepath.Join(t.TempDir(), "runs.db"))
	defer s.Close()
	tell(t, s, "r", "hello")
	strict := encrypt(t, s, durable.Encryption{Key: keyA})
	_, err := strict.Entries(t.Context(), "r", 0)
	require.EqualError(t, err, `decrypting entry 1 of run "r": not encrypted: set AllowPlain if it was written before encryption was switched on`)
	_, err = strict.Waits(t.Context(), "r")
	require.ErrorContains(t, err, `decrypting wait "c" of run "r": not encrypted`)
	require.ErrorContains(t, err, `decrypting an answer to wait "c" of run "r": not encrypted`)
	_, err = strict.WaitByToken(t.Context(), [32]byte{1})
	require.ErrorContains(t, err, "not encrypted")

	lenient := encrypt(t, s, durable.Encryption{Key: keyA, AllowPlain: true})
	texts, err := heard(t.Context(), lenient, "r")
	require.NoError(t, err)
	assert.Len(t, texts, 6)
	tell(t, lenient, "new", "hello")
	texts, err = heard(t.Context(), strict, "new")
	require.NoError(t, err, "what it writes is encrypted")
	assert.Len(t, texts, 6)
}

func TestTamperedDataIsRefused(t *testing.T) {
	const changed = "changed or moved since it was written: do not trust this store, restore a backup"
	for name, c := range map[string]struct{ sql, says string }{
		"a bit of an entry":             {"UPDATE entries SET data = unhex(hex(substr(data, 1, 30)) || CASE hex(substr(data, 31, 1)) WHEN '00' THEN '01' ELSE '00' END || hex(substr(data, 32))) WHERE seq = 2", "entry 2 of run \"r\": " + changed},
		"an entry cut short":            {"UPDATE entries SET data = substr(data, 1, 30) WHERE seq = 2", "entry 2 of run \"r\": " + changed},
		"an entry cut very short":       {"UPDATE entries SET data = substr(data, 1, 8) WHERE seq = 2", "entry 2 of run \"r\": truncated"},
		"an empty entry":                {"UPDATE entries SET data = NULL WHERE seq = 2", "entry 2 of run \"r\": not encrypted"},
		"an entry for another":          {"UPDATE entries SET data = (SELECT data FROM entries WHERE seq = 1 AND run = 1) WHERE seq = 2", "entry 2 of run \"r\": " + changed},
		"an entry of another run":       {"UPDATE entries SET data = (SELECT data FROM entries e WHERE e.seq = entries.seq AND run = 2) WHERE run = 1", "entry 1 of run \"r\": " + changed},
		"another kind":                  {"UPDATE entries SET kind = 'call' WHERE seq = 2", "entry 2 of run \"r\": " + changed},
		"another key":                   {"UPDATE entries SET key = '' WHERE seq = 2", "entry 2 of run \"r\": " + changed},
		"kind and key shifted":          {"UPDATE entries SET kind = 'repl', key = 'yk' WHERE seq = 2", "entry 2 of run \"r\": " + changed},
		"a question of another call":    {"UPDATE waits SET data = (SELECT data FROM waits WHERE id = 'd' AND run = 1) WHERE id = 'c'", "wait \"c\" of run \"r\": " + changed},
		"a question about another call": {"UPDATE waits SET subject = 'other' WHERE id = 'c'", "wait \"c\" of run \"r\": " + changed},
		"an answer of another call":     {"UPDATE waits SET answer = (SELECT answer FROM waits WHERE id = 'd' AND run = 1) WHERE id = 'c'", "an answer to wait \"c\" of run \"r\": " + changed},
		"an answer from a question":     {"UPDATE waits SET answer = data WHERE id = 'c'", "an answer to wait \"c\" of run \"r\": " + changed},
		"an answer that ends the run":   {"UPDATE waits SET ends = 1 WHERE id = 'c'", "an answer to wait \"c\" of run \"r\": " + changed},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "runs.db")
			s := encrypt(t, openPlain(t, path), durable.Encryption{Key: keyA})
			defer s.Close()
			tell(t, s, "r", "approve")
			tell(t, s, "other", "approve")
			texts, err := heard(t.Context(), s, "r")
			require.NoError(t, err)
			require.Len(t, texts, 6)

			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			defer db.Close()
			result, err := db.ExecContext(t.Context(), c.sql)
			require.NoError(t, err)
			n, err := result.RowsAffected()
			require.NoError(t, err)
			require.Positive(t, n)
			_, err = heard(t.Context(), s, "r")
			require.ErrorAs(t, err, new(*durable.DecryptError))
			require.ErrorContains(t, err, "decrypting "+c.says)
		})
	}
}

func TestKeysThatAreNone(t *testing.T) {
	for name, e := range map[string]durable.Encryption{
		"none":      {},
		"short":     {Key: keyA[:16]},
		"long":      {Key: append(bytes.Clone(keyA), 1)},
		"short old": {Key: keyA, Old: [][]byte{keyB[:31]}},
	} {
		_, err := durable.Encrypt(nil, e)
		require.ErrorContains(t, err, "expected 32 random bytes", name)
		for _, key := range [][]byte{e.Key, keyA, keyB} {
			if len(key) > 0 {
				assert.NotContains(t, err.Error(), string(key), "an error shows no key")
			}
		}
	}
}

func ExampleEncrypt() {
	dir, err := os.MkdirTemp("", "grapnel")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	plain, err := sqlite.Open(ctx, filepath.Join(dir, "runs.db"), sqlite.Options{Sync: sqlite.SyncNormal})
	if err != nil {
		panic(err)
	}
	defer plain.Close()

	key := []byte("32 bytes, random ones in earnest") // crypto/rand makes them
	store, err := durable.Encrypt(plain, durable.Encryption{Key: key})
	if err != nil {
		panic(err)
	}
	lease, err := store.Begin(ctx, durable.Job{ID: "r1"}, "me", time.Minute)
	if err != nil {
		panic(err)
	}
	if err := store.Commit(ctx, lease, durable.Commit{Entries: []durable.Entry{{Seq: 1, Kind: "reply", Data: []byte("a secret")}}}); err != nil {
		panic(err)
	}

	read, err := store.Entries(ctx, "r1", 0)
	fmt.Printf("%s %v\n", read[0].Data, err)
	kept, err := plain.Entries(ctx, "r1", 0)
	fmt.Println(strings.Contains(string(kept[0].Data), "secret"), err)

	_, err = durable.Encrypt(plain, durable.Encryption{Key: []byte("too short")})
	fmt.Println(err)

	// Output:
	// a secret <nil>
	// false <nil>
	// encrypting a store: key 0 has 9 bytes: expected 32 random bytes
}

// Without a key, encrypted data is an error that names its key, and plain data is read as it is.
func TestRequirePlain(t *testing.T) {
	inner := openStore(t)
	encrypted, err := durable.Encrypt(inner, durable.Encryption{Key: make([]byte, 32)})
	require.NoError(t, err)
	secret, err := encrypted.Submit(t.Context(), durable.Job{Input: []byte("secret")})
	require.NoError(t, err)
	plain := durable.RequirePlain(inner)
	_, err = plain.Input(t.Context(), secret[0].ID)
	refused, ok := errors.AsType[*durable.DecryptError](err)
	require.True(t, ok, "%v", err)
	assert.NotEmpty(t, refused.Key)
	assert.Contains(t, refused.Error(), "encrypted with key "+refused.Key)

	open, err := inner.Submit(t.Context(), durable.Job{Input: []byte("open")})
	require.NoError(t, err)
	for _, s := range []durable.Store{inner, plain} {
		input, err := s.Input(t.Context(), open[0].ID)
		require.NoError(t, err)
		assert.Equal(t, "open", string(input))
	}
}

// Without a key, plain data is not written beside encrypted data, by whatever method.
func TestPlainDataIsNotWrittenBesideEncryptedData(t *testing.T) {
	inner := openStore(t)
	for range 2 {
		_, err := durable.RequirePlain(inner).Submit(t.Context(), durable.Job{ID: "before"})
		if err == nil {
			continue // the store has no data yet
		}
		require.ErrorIs(t, err, durable.ErrExists)
	}
	encrypted, err := durable.Encrypt(inner, durable.Encryption{Key: make([]byte, 32)})
	require.NoError(t, err)
	lease, err := encrypted.Begin(t.Context(), durable.Job{ID: "r"}, "one", time.Hour)
	require.NoError(t, err)
	id, err := inner.KeyID(t.Context())
	require.NoError(t, err)
	plain := durable.RequirePlain(inner)
	for name, err := range map[string]error{
		"submit":   second(plain.Submit(t.Context(), durable.Job{})),
		"begin":    second(plain.Begin(t.Context(), durable.Job{}, "one", time.Hour)),
		"commit":   plain.Commit(t.Context(), lease, durable.Commit{Entries: []durable.Entry{{Seq: 1}}}),
		"context":  plain.Signal(t.Context(), "r", durable.Signal{Kind: durable.SignalContext, Text: "open"}),
		"answer":   plain.Answer(t.Context(), "r", durable.Answers(durable.Answer{})),
		"waiver":   plain.AddWaiver(t.Context(), durable.Waiver{ID: "w"}),
		"document": second(plain.PutDocument(t.Context(), durable.Document{Kind: "k", Name: "d"})),
	} {
		refused, ok := errors.AsType[*durable.DecryptError](err)
		if assert.True(t, ok, "%s: %v", name, err) {
			assert.Equal(t, id, refused.Key, name)
		}
	}
	require.NoError(t, plain.Signal(t.Context(), "r", durable.Signal{Kind: durable.SignalCancel}), "it has no data")

	// Another key takes the place of the first.
	other, err := durable.Encrypt(inner, durable.Encryption{Key: bytes.Repeat([]byte{1}, 32), Old: [][]byte{make([]byte, 32)}})
	require.NoError(t, err)
	_, err = other.Submit(t.Context(), durable.Job{})
	require.NoError(t, err)
	now, err := inner.KeyID(t.Context())
	require.NoError(t, err)
	assert.NotEqual(t, id, now)
}

func second[T any](_ T, err error) error { return err }

// A text that happens to be base64 is not taken for an encrypted one.
func TestPlainContextThatLooksEncoded(t *testing.T) {
	store := openStore(t)
	run := submitClerk(t, store, nil)
	_, err := store.Acquire(t.Context(), run.ID, "one", time.Hour, durable.TakeFree)
	require.NoError(t, err)
	require.NoError(t, store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalContext, Text: "stop"}))
	signals, err := durable.RequirePlain(store).Signals(t.Context(), "one")
	require.NoError(t, err)
	require.Len(t, signals, 1)
	assert.Equal(t, "stop", signals[0].Text)
}

// A store that requires plain data is a store like any other.
func TestRequirePlainIsAStore(t *testing.T) {
	t.Parallel()
	durabletest.TestStore(t, func(t *testing.T) durable.Store {
		t.Helper()
		return durable.RequirePlain(openPlain(t, filepath.Join(t.TempDir(), "runs.db")))
	})
}
