package engine_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// The life of a run: it is submitted and claimed, commits an entry ten times, and completes.
const lifeCommits = 10

var (
	lifeInput  = bytes.Repeat([]byte("i"), 1000)
	lifeData   = bytes.Repeat([]byte("x"), 500)
	lifeResult = bytes.Repeat([]byte("r"), 100)
	lifeNeeds  = durable.Needs{Kind: durable.KindAgent, Name: "clerk"}
)

// The least statements for such a life, by name: measureLife says which of them form a transaction.
var (
	lifeSQLite = map[string]string{
		"queue": `INSERT INTO queues (key, kind, name, demands) VALUES ($1, 'agent', 'clerk', '')`,
		"submit": `INSERT INTO runs (id, session, kind, name, parent, root, queue, status, created, updated, ready, offer_seq, owner, epoch)
			VALUES ($1, 's', 'agent', 'clerk', '', $1, 1, 'ready', $2, $2, $2, 1, '', 0) RETURNING num`,
		"input": `INSERT INTO payloads (run, input) SELECT num, $2 FROM runs WHERE id = $1`,
		"claim": `UPDATE runs SET status = 'running', owner = 'two', epoch = epoch + 1, attempts = attempts + 1, leased = $1, updated = $1,
			expires = $2, ready = NULL WHERE num = (SELECT num FROM runs INDEXED BY runs_ready WHERE queue = 1 AND status = 'ready'
			ORDER BY priority DESC, ready LIMIT 1) RETURNING num`,
		"step":   `UPDATE runs SET entries = $2, steps = $2, updated = $3 WHERE num = $1 AND owner = 'two' AND epoch = 1`,
		"end":    `UPDATE runs SET status = 'completed', reason = 'completed', updated = $2, owner = '', leased = NULL, expires = NULL WHERE num = $1`,
		"result": `UPDATE payloads SET result = $2 WHERE run = $1`,
	}
	lifePostgres = map[string]string{
		"queue": `INSERT INTO queues (key, kind, name, demands) VALUES ($1, 'agent', 'clerk', '')`,
		"submit": `INSERT INTO runs (id, session, kind, name, parent, root, queue, status, reason, steps, created, updated, ready, offer_seq, owner, epoch)
			VALUES ($1, 's', 'agent', 'clerk', '', $1, 1, 'ready', '', 0, $2, $2, $2, 1, '', 0) RETURNING num`,
		"input":  `INSERT INTO payloads (run, input) SELECT num, $2 FROM runs WHERE id = $1`,
		"notify": `SELECT pg_notify('bare', '')`,
		"claim": `UPDATE runs SET status = 'running', owner = 'two', epoch = epoch + 1, attempts = attempts + 1, updated = $1, expires = $2, ready = NULL
			WHERE num = (SELECT num FROM runs WHERE queue = 1 AND status = 'ready' ORDER BY priority DESC, ready, num LIMIT 1 FOR UPDATE SKIP LOCKED)
			RETURNING num`,
		"step":   `UPDATE runs SET entries = $2, steps = $2, updated = $3 WHERE num = $1 AND owner = 'two' AND epoch = 1`,
		"end":    `UPDATE runs SET status = 'completed', reason = 'completed', updated = $2, ended = $2, owner = '', expires = NULL WHERE num = $1`,
		"result": `UPDATE payloads SET result = $2 WHERE run = $1`,
	}
)

const insertEntry = `INSERT INTO entries (run, seq, kind, key, at, data) VALUES ($1, $2, $3, $4, $5, $6)`

// measureLife compares the life of a run with bare SQL that writes the same rows in as many transactions.
func measureLife(m *measuring) {
	ours, theirs := m.backend.open(m.T), m.backend.open(m.T).bare
	key, words, lives := lifeNeeds.Key(), theirs.words().life, 0
	transact := func(all ...statement) { require.NoError(m, theirs.transact(m.Context(), all...)) }
	transact(statement{query: words["queue"], args: []any{key[:]}})
	c := compare(m.rounds, m.lives,
		side{"store", func() time.Duration { return timed(func() { liveOnce(m, ours.Store) }) }},
		side{"bare", func() time.Duration {
			lives++
			id := fmt.Sprint("r", lives)
			return timed(func() {
				now, hour := theirs.at(time.Now()), theirs.at(time.Now().Add(time.Hour))
				var n int64
				submit := []statement{{words["submit"], []any{id, now}, &n}, {query: words["input"], args: []any{id, lifeInput}}}
				if words["notify"] != "" {
					submit = append(submit, statement{query: words["notify"]})
				}
				transact(submit...)
				transact(statement{words["claim"], []any{now, hour}, &n})
				for seq := int64(1); seq <= lifeCommits; seq++ {
					now := theirs.at(time.Now())
					transact(statement{query: insertEntry, args: []any{n, seq, "note", "", now, lifeData}}, statement{query: words["step"], args: []any{n, seq, now}})
				}
				transact(statement{query: words["end"], args: []any{n, theirs.at(time.Now())}}, statement{query: words["result"], args: []any{n, lifeResult}})
			})
		}})
	goal := map[string]float64{sqliteFull.key: 0.7, sqliteNormal.key: 0.4}[m.backend.key]
	if goal == 0 {
		goal = 0.6
	}
	m.report.rounds(m, "life", c)
	speed := c.ratio("bare", "store")
	m.row("a life ÷ bare SQL", "≥ "+percent(goal), speed >= goal,
		"**%s**: %s, bare %s", percent(speed), milliseconds(c.median("store")), milliseconds(c.median("bare")))
}

func liveOnce(m *measuring, s durable.Store) {
	m.Helper()
	ctx := m.Context()
	_, err := s.Submit(ctx, durable.Job{Name: lifeNeeds.Name, Session: "s", Input: lifeInput})
	require.NoError(m, err)
	runs, err := s.Claim(ctx, "one", time.Hour, 1, lifeNeeds.Key())
	require.NoError(m, err)
	require.Len(m, runs, 1)
	l := runs[0].Lease()
	for seq := 1; seq <= lifeCommits; seq++ {
		require.NoError(m, s.Commit(ctx, l, durable.Commit{
			Update:  durable.Update{Status: durable.StatusRunning, Steps: seq},
			Entries: []durable.Entry{{Seq: int64(seq), Kind: "note", At: time.Now(), Data: lifeData}},
		}))
	}
	require.NoError(m, s.Commit(ctx, l, durable.Commit{
		Update: durable.Update{Status: durable.StatusCompleted, Reason: agent.StopCompleted, Steps: lifeCommits, Result: lifeResult},
	}))
}
