package sqlite_test

import (
	"database/sql"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// fill adds waiting runs, each with a wait and three entries, in one statement a
// table: through the store it would take minutes.
func fill(t testing.TB, path string, n int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	const numbers = `WITH RECURSIVE all_n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM all_n WHERE i < ?1) `
	for _, query := range []string{
		numbers + `INSERT INTO runs (id, session, kind, name, parent, root, queue, status, steps, entries, created, updated, owner, epoch)
			SELECT 'run' || i, 's' || i, 'agent', 'a', '', 'run' || i, 0, 'waiting', 3, 3, i, i, '', 1 FROM all_n`,
		numbers + `INSERT INTO waits (run, run_id, place, id, kind, subject, tool, asked, child, host, token, data, checker, ends, who)
			SELECT num, id, 0, 'c', 'approval', 'hash', 'bash', i, '', '', unhex(format('%064x', i)), randomblob(300), '', 0, '' FROM all_n JOIN runs ON id = 'run' || i`,
		numbers + `INSERT INTO tokens (token, run, wait, subject) SELECT unhex(format('%064x', i)), num, 'c', 'hash' FROM all_n JOIN runs ON id = 'run' || i`,
		numbers + `INSERT INTO entries (run, seq, kind, key, at, data)
			SELECT num, seq, 'reply', '', i, randomblob(500) FROM all_n JOIN runs ON id = 'run' || i
			JOIN (SELECT 1 AS seq UNION ALL SELECT 2 UNION ALL SELECT 3)`,
	} {
		_, err := db.ExecContext(t.Context(), query, n)
		require.NoError(t, err, "%s", query)
	}
}

// tokenOf returns the token hash of a run that fill made.
func tokenOf(i uint64) (hash [32]byte) {
	binary.BigEndian.PutUint64(hash[24:], i)
	return hash
}
