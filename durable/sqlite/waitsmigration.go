package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // for the statements of the migration
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"
)

var (
	//go:embed migrations/waits/up.sql
	waitsUp string
	//go:embed migrations/waits/down.sql
	waitsDown string
)

// waitsMigration returns migration 4, which turns questions into waits of every kind.
func waitsMigration() *goose.Migration {
	up := func(ctx context.Context, t *sql.Tx) error {
		_, err := t.ExecContext(ctx, waitsUp)
		return err
	}
	return goose.NewGoMigration(4, &goose.GoFunc{RunTx: up}, &goose.GoFunc{RunTx: revertWaits})
}

// revertWaits executes down.sql, unless there are waits or answers that the older version cannot hold.
func revertWaits(ctx context.Context, t *sql.Tx) error {
	err := refuseRuns(ctx, t,
		obstacle{
			`n IN (SELECT run FROM waits WHERE kind NOT IN ('approval', 'doubt', 'child'))`,
			"version 3 knows waits for people and for children only, and %d runs wait for something else%s: let them go on, cancel or delete them first",
		},
		obstacle{
			`any_wait AND n IN (SELECT run FROM waits)`,
			"version 3 knows no runs that wait for one of several things, and %d runs do%s: let them go on, cancel or delete them first",
		},
		obstacle{
			`n IN (SELECT run FROM waits WHERE partial <> '')`,
			"version 3 has no answers that do not decide, and %d runs have such answers%s: let them go on, cancel or delete them first",
		})
	if err != nil {
		return err
	}
	_, err = t.ExecContext(ctx, waitsDown)
	return err
}

// obstacle are runs that an older version cannot hold: a condition on them, and the error, with their number and names.
type obstacle struct{ where, says string }

// namedRuns is how many runs or documents the error of an obstacle names.
const namedRuns = 3

// refuseRuns returns the error of the first obstacle for which there are runs.
func refuseRuns(ctx context.Context, t *sql.Tx, obstacles ...obstacle) error {
	for _, o := range obstacles {
		if err := refuseRows(ctx, t, `SELECT id FROM runs WHERE `+o.where+` ORDER BY n`, o.says); err != nil {
			return err
		}
	}
	return nil
}

// refuseRows returns an error with the number and the first of the names that a query finds; nil if it finds none.
func refuseRows(ctx context.Context, t *sql.Tx, query, says string) error {
	n, names := 0, ""
	rows, err := t.QueryContext(ctx, query)
	err = scanRows(rows, err, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		switch n++; {
		case n == namedRuns+1:
			names += ", …"
		case n <= namedRuns:
			names += ", " + name
		}
		return err
	})
	if err == nil && n > 0 {
		err = fmt.Errorf(says, n, " ("+strings.TrimPrefix(names, ", ")+")")
	}
	return err
}
