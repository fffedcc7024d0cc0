package durable_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
)

// putVersions stores versions 1, 2 and 4 of the document "a" with a deletion between 2 and 4, and one version of "b".
func putVersions(t *testing.T, s durable.Store) {
	t.Helper()
	put := func(name string, replaces int64, data string) {
		require.NoError(t, second(s.PutDocument(t.Context(), durable.Document{Kind: "k", Name: name, Version: replaces, By: "ann", Data: []byte(data)})))
	}
	put("a", 0, "secret 1")
	put("a", 1, "secret 2")
	require.NoError(t, s.DeleteDocument(t.Context(), "k", "a", 0))
	put("a", 0, "secret 3")
	put("a", 3, "secret 4")
	put("b", 0, "secret b")
}

func TestDocumentsAreEncrypted(t *testing.T) {
	path := tempFile(t)
	s := openEncrypted(t, path, durable.Encryption{Key: keyA})
	putVersions(t, s)
	l, err := s.Begin(t.Context(), durable.Job{ID: "r", Input: []byte("secret input")}, "one", time.Hour)
	require.NoError(t, err)
	require.NoError(t, s.Commit(t.Context(), l, durable.Commit{Update: durable.Update{Pass: &durable.Pass{Phase: "p", Input: []byte("secret pass")}}}))
	for version, want := range map[int64]string{0: "secret 4", 1: "secret 1", 2: "secret 2", 3: "secret 3", 4: "secret 4"} {
		d, err := s.Document(t.Context(), "k", "a", version)
		require.NoError(t, err)
		assert.Equal(t, want, string(d.Data))
	}
	all, err := s.ListDocuments(t.Context(), "k", "", 10)
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, "secret b", string(all[1].Data))

	plain := openPlain(t, path)
	for name, err := range map[string]error{
		"document": second(plain.Document(t.Context(), "k", "a", 0)), "list": second(plain.ListDocuments(t.Context(), "k", "", 1)),
		"put":   second(plain.PutDocument(t.Context(), durable.Document{Kind: "k", Name: "c"})),
		"input": second(plain.SubmittedInput(t.Context(), "r")),
	} {
		require.ErrorAs(t, err, new(*durable.DecryptError), name)
	}
	require.NoError(t, plain.DeleteDocument(t.Context(), "k", "b", 0), "it has no data")
	require.NoError(t, s.Close())
	files, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.False(t, bytes.Contains(data, []byte("secret")), file)
	}
}

// Data that was moved to another document or version is detected, except among versions that replaced none.
func TestTamperedDocumentsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		set, where string
		detected   bool
	}{
		"another document":                    {"data = (SELECT data FROM documents WHERE CAST(name AS text) = 'b')", "CAST(name AS text) = 'a' AND version = 1", true},
		"an earlier version":                  {"data = (SELECT data FROM documents WHERE CAST(name AS text) = 'a' AND version = 2)", "CAST(name AS text) = 'a' AND version = 4", true},
		"a first version":                     {"data = (SELECT data FROM documents WHERE CAST(name AS text) = 'a' AND version = 4)", "CAST(name AS text) = 'a' AND version = 1", true},
		"another kind":                        {"kind = 'other'", "CAST(name AS text) = 'a' AND version = 4", true},
		"another author":                      {"who = 'bob'", "CAST(name AS text) = 'a' AND version = 2", true},
		"plain data":                          {"data = x'00'", "CAST(name AS text) = 'a' AND version = 2", true},
		"the first version after a deletion":  {"data = (SELECT data FROM documents WHERE CAST(name AS text) = 'a' AND version = 1)", "CAST(name AS text) = 'a' AND version = 3", false},
		"the data of the version as it is":    {"data = (SELECT data FROM documents WHERE CAST(name AS text) = 'a' AND version = 2)", "CAST(name AS text) = 'a' AND version = 2", false},
		"a later version in place of a first": {"data = (SELECT data FROM documents WHERE CAST(name AS text) = 'a' AND version = 2)", "CAST(name AS text) = 'a' AND version = 3", true},
	} {
		t.Run(name, func(t *testing.T) {
			path := tempFile(t)
			s := openEncrypted(t, path, durable.Encryption{Key: keyA})
			putVersions(t, s)
			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			defer db.Close()
			var kind, doc string
			var version int64
			require.NoError(t, db.QueryRowContext(t.Context(), "UPDATE documents SET "+c.set+" WHERE "+c.where+" RETURNING kind, name, version").
				Scan(&kind, &doc, &version))
			_, err = s.Document(t.Context(), kind, doc, version)
			if !c.detected {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, new(*durable.DecryptError))
		})
	}
}
