package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/pressly/goose/v3"

	"github.com/grapnel-go/grapnel/durable"
)

// A conversion is a migration whose file needs help from Go: up runs before the first part of the file and down before the second.
type conversion struct {
	version  int64
	file     string
	up, down func(context.Context, *sql.Tx) error
}

// conversions are the migrations with Go code.
var conversions = []conversion{
	// SQL cannot compute the keys of queues.
	{version: 3, file: "00003_engine.sql", up: insertNeeds, down: checkRevert},
	{version: 4, file: "00004_waits.sql", down: checkWaits},
	{version: 5, file: "00005_phases.sql", down: checkPhases},
}

// migration returns the migration that executes the two parts of its file.
func (c conversion) migration(sources fs.FS) (*goose.Migration, error) {
	file, err := fs.ReadFile(sources, c.file)
	if err != nil {
		return nil, err
	}
	up, down, _ := strings.Cut(string(file), "-- +goose Down\n")
	return goose.NewGoMigration(c.version, runAfter(c.up, up), runAfter(c.down, down)), nil
}

// runAfter returns a step that calls first, unless it is nil, and then executes statements.
func runAfter(first func(context.Context, *sql.Tx) error, statements string) *goose.GoFunc {
	return &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		if first != nil {
			if err := first(ctx, tx); err != nil {
				return err
			}
		}
		return execute(ctx, tx, statements)
	}}
}

// execute executes several statements.
func execute(ctx context.Context, tx *sql.Tx, statements string) error {
	_, err := tx.ExecContext(ctx, statements)
	return err
}

// insertNeeds creates the table needs with the key of each agent.
func insertNeeds(ctx context.Context, tx *sql.Tx) error {
	if err := execute(ctx, tx, `CREATE TABLE needs (name text COLLATE "C", key bytea)`); err != nil {
		return err
	}
	names, err := agentNames(ctx, tx)
	if err != nil {
		return err
	}
	for _, stored := range names {
		var name text
		if err := name.ScanText(pgtype.Text{String: stored, Valid: true}); err != nil {
			return err
		}
		key := durable.Needs{Kind: durable.KindAgent, Name: string(name)}.Key()
		if _, err := tx.ExecContext(ctx, `INSERT INTO needs (name, key) VALUES ($1, $2)`, stored, key[:]); err != nil {
			return err
		}
	}
	return nil
}

// agentNames returns the stored names of all agents.
func agentNames(ctx context.Context, tx *sql.Tx) (names []string, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT DISTINCT agent FROM runs`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// checkRevert returns an error if there are runs that version 2 cannot store.
func checkRevert(ctx context.Context, tx *sql.Tx) error {
	return refuseRuns(ctx, tx,
		obstacle{`kind <> 'agent'`, "version 2 cannot store runs that are not runs of agents, and there are %d%s: delete them first"},
		obstacle{
			`ended IS NULL AND attempts = 0`,
			"version 2 cannot store runs that have not started, and there are %d%s: let them start or delete them first",
		},
		obstacle{
			`ended IS NULL AND (paused OR deadline IS NOT NULL OR signals > handled
				OR num IN (SELECT run FROM payloads WHERE substring(input FROM 1 FOR 4) = '\x00676c31'))`,
			"version 2 knows no pauses, limits and deadlines of jobs, and no added context, and %d runs have them%s: " +
				"let them end, cancel or delete them first",
		})
}

// checkWaits returns an error if runs have waits or answers that version 3 does not know.
func checkWaits(ctx context.Context, tx *sql.Tx) error {
	return refuseRuns(ctx, tx,
		obstacle{
			`num IN (SELECT run FROM waits WHERE kind NOT IN ('approval', 'doubt', 'child', ''))`,
			"version 3 knows only approvals, doubts and children, and %d runs wait for something else%s: let them go on, cancel or delete them first",
		},
		obstacle{
			`any_wait AND num IN (SELECT run FROM waits)`,
			"version 3 cannot store runs that wait for one of several things, and there are %d%s: let them go on, cancel or delete them first",
		},
		obstacle{
			`num IN (SELECT run FROM waits WHERE partial <> '')`,
			"version 3 has no answers that do not decide, and %d runs have such answers%s: let them go on, cancel or delete them first",
		})
}

// checkPhases returns an error if there are runs or documents that version 4 does not know.
func checkPhases(ctx context.Context, tx *sql.Tx) error {
	err := refuseRuns(ctx, tx,
		obstacle{
			`ended IS NULL AND phase <> ''`,
			"version 4 knows no phases, and %d runs have one%s: let them go on, cancel or delete them first",
		},
		obstacle{
			`ended IS NULL AND num IN (SELECT run FROM waits WHERE id = 'after' AND hash = 'after' AND kind = 'child' AND answered IS NULL)`,
			"version 4 cannot start a run after another, and %d runs wait for one%s: let them start, cancel or delete them first",
		})
	if err != nil {
		return err
	}
	return refuseRows(ctx, tx, `SELECT row_number() OVER (ORDER BY kind, name) AS num, kind || ' ' || encode(name, 'escape') AS id FROM documents WHERE newest`,
		"version 4 has no documents, and there are %d%s: delete them first")
}

// obstacle are runs that an older version cannot store: a condition on them, and the error, with their number and names.
type obstacle struct{ where, says string }

// namedRuns is how many runs or documents the error of an obstacle names.
const namedRuns = 3

// refuseRuns returns the error of the first obstacle for which there are runs.
func refuseRuns(ctx context.Context, tx *sql.Tx, obstacles ...obstacle) error {
	for _, o := range obstacles {
		if err := refuseRows(ctx, tx, `SELECT num, id FROM runs WHERE `+o.where, o.says); err != nil {
			return err
		}
	}
	return nil
}

// refuseRows returns an error with the number and the first names of the rows of a query, which have a num and an id; nil if it
// has none.
func refuseRows(ctx context.Context, tx *sql.Tx, query, says string) error {
	var n int
	var names string
	err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(string_agg(id, ', ' ORDER BY num) FILTER (WHERE place <= $1), '')
		FROM (SELECT num, id, row_number() OVER (ORDER BY num) AS place FROM (`+query+`) q) r`, namedRuns).Scan(&n, &names)
	if err != nil {
		return err
	}
	if n > namedRuns {
		names += ", …"
	}
	if n > 0 {
		return fmt.Errorf(says, n, " ("+names+")")
	}
	return nil
}
