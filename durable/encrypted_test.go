package durable_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

var keyA, keyB = bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)

func openFile(t testing.TB, path string, e *durable.Encryption) durable.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Sync: sqlite.SyncNormal, Encryption: e})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func openPlain(t testing.TB, path string) durable.Store { t.Helper(); return openFile(t, path, nil) }

func openEncrypted(t testing.TB, path string, e durable.Encryption) durable.Store {
	t.Helper()
	return openFile(t, path, &e)
}

// tempFile returns the path of a file that is not there.
func tempFile(t testing.TB) string { t.Helper(); return filepath.Join(t.TempDir(), "runs.db") }

// keyOf returns the ID of the key that a store was encrypted with.
func keyOf(t testing.TB, path string) string {
	t.Helper()
	refused, ok := errors.AsType[*durable.DecryptError](second(openPlain(t, path).Submit(t.Context(), durable.Job{})))
	require.True(t, ok)
	return refused.Key
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
	found := func(t *testing.T, e *durable.Encryption) (open, closed int) {
		t.Helper()
		path := tempFile(t)
		s := openFile(t, path, e)
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
	open, closed := found(t, nil)
	assert.GreaterOrEqual(t, open, 6, "without encryption it is there: this test sees it")
	assert.GreaterOrEqual(t, closed, 6)
	open, closed = found(t, &durable.Encryption{Key: keyA})
	assert.Zero(t, open, "main file and -wal")
	assert.Zero(t, closed)
}

func TestKeysCanBeChanged(t *testing.T) {
	path := tempFile(t)
	old := openEncrypted(t, path, durable.Encryption{Key: keyA})
	both := openEncrypted(t, path, durable.Encryption{Key: keyB, Old: [][]byte{keyA}})
	newer := openEncrypted(t, path, durable.Encryption{Key: keyB})
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
	path := tempFile(t)
	tell(t, openPlain(t, path), "r", "hello")
	strict := openEncrypted(t, path, durable.Encryption{Key: keyA})
	_, err := strict.Entries(t.Context(), "r", 0)
	require.EqualError(t, err, `decrypting entry 1 of run "r": not encrypted: set AllowPlain if it was written before encryption was switched on`)
	waits, err := strict.Waits(t.Context(), "r")
	require.ErrorContains(t, err, `decrypting wait "c" of run "r": not encrypted`)
	require.ErrorContains(t, err, `decrypting an answer to wait "c" of run "r": not encrypted`)
	require.Len(t, waits, 2, "what is not encrypted")
	assert.Equal(t, []any{"d", []byte(nil), []byte(nil)}, []any{waits[1].ID, waits[1].Data, waits[1].Answer.Data})
	_, err = strict.WaitByToken(t.Context(), [32]byte{1})
	require.ErrorContains(t, err, "not encrypted")

	lenient := openEncrypted(t, path, durable.Encryption{Key: keyA, AllowPlain: true})
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
			path := tempFile(t)
			s := openEncrypted(t, path, durable.Encryption{Key: keyA})
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
		_, err := sqlite.Open(t.Context(), tempFile(t), sqlite.Options{Encryption: &e})
		require.ErrorContains(t, err, "expected 32 random bytes", name)
		for _, key := range [][]byte{e.Key, keyA, keyB} {
			if len(key) > 0 {
				assert.NotContains(t, err.Error(), string(key), "an error shows no key")
			}
		}
	}
}

func ExampleEncryption() {
	dir, err := os.MkdirTemp("", "grapnel")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	path := filepath.Join(dir, "runs.db")
	key := []byte("32 bytes, random ones in earnest") // crypto/rand makes them
	store, err := sqlite.Open(ctx, path, sqlite.Options{Encryption: &durable.Encryption{Key: key}})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	lease, err := store.Begin(ctx, durable.Job{ID: "r1"}, "me", time.Minute)
	if err != nil {
		panic(err)
	}
	if err := store.Commit(ctx, lease, durable.Commit{Entries: []durable.Entry{{Seq: 1, Kind: "reply", Data: []byte("a secret")}}}); err != nil {
		panic(err)
	}

	read, err := store.Entries(ctx, "r1", 0)
	fmt.Printf("%s %v\n", read[0].Data, err)

	plain, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		panic(err)
	}
	defer plain.Close()
	_, err = plain.Entries(ctx, "r1", 0)
	fmt.Println(err)

	_, err = sqlite.Open(ctx, path, sqlite.Options{Encryption: &durable.Encryption{Key: []byte("too short")}})
	fmt.Println(err)

	// Output:
	// a secret <nil>
	// decrypting entry 1 of run "r1": encrypted with key b90faf3b60c0b906, which is not configured: add that key
	// encrypting a store: key 0 has 9 bytes: expected 32 random bytes
}

// Without a key, encrypted data is an error that names its key, and plain data is read as it is.
func TestDataWithoutAKey(t *testing.T) {
	path := tempFile(t)
	plain := openPlain(t, path)
	require.NoError(t, second(plain.Submit(t.Context(), durable.Job{ID: "open", Input: []byte("open")})))
	encrypted := openEncrypted(t, path, durable.Encryption{Key: keyA})
	require.NoError(t, second(encrypted.Submit(t.Context(), durable.Job{ID: "secret", Input: []byte("secret")})))
	_, err := plain.Input(t.Context(), "secret")
	refused, ok := errors.AsType[*durable.DecryptError](err)
	require.True(t, ok, "%v", err)
	assert.NotEmpty(t, refused.Key)
	assert.Contains(t, refused.Error(), "encrypted with key "+refused.Key)
	input, err := plain.Input(t.Context(), "open")
	require.NoError(t, err)
	assert.Equal(t, "open", string(input))
}

// Without a key, plain data is not written beside encrypted data, by whatever method.
func TestPlainDataIsNotWrittenBesideEncryptedData(t *testing.T) {
	path := tempFile(t)
	require.NoError(t, second(openPlain(t, path).Submit(t.Context(), durable.Job{ID: "before"})), "the store has no encrypted data yet")
	encrypted := openEncrypted(t, path, durable.Encryption{Key: keyA})
	lease, err := encrypted.Begin(t.Context(), durable.Job{ID: "r"}, "one", time.Hour)
	require.NoError(t, err)
	id := keyOf(t, path)
	plain := openPlain(t, path)
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
	other := openEncrypted(t, path, durable.Encryption{Key: keyB, Old: [][]byte{keyA}})
	require.NoError(t, second(other.Submit(t.Context(), durable.Job{})))
	assert.NotEqual(t, id, keyOf(t, path))
}

func second[T any](_ T, err error) error { return err }

// A text that happens to be base64 is not taken for an encrypted one.
func TestPlainContextThatLooksEncoded(t *testing.T) {
	store := openStore(t)
	run := submitClerk(t, store, nil)
	_, err := store.Acquire(t.Context(), run.ID, "one", time.Hour, durable.TakeFree)
	require.NoError(t, err)
	require.NoError(t, store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalContext, Text: "stop"}))
	signals, err := store.Signals(t.Context(), "one")
	require.NoError(t, err)
	require.Len(t, signals, 1)
	assert.Equal(t, "stop", signals[0].Text)
}
