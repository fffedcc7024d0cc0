package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // for the statements of the migration

	"github.com/pressly/goose/v3"
)

var (
	//go:embed migrations/phases/up.sql
	phasesUp string
	//go:embed migrations/phases/down.sql
	phasesDown string
)

// phasesMigration returns migration 5, which adds phases of runs, runs that start after others, and documents.
func phasesMigration() *goose.Migration {
	up := func(ctx context.Context, t *sql.Tx) error {
		_, err := t.ExecContext(ctx, phasesUp)
		return err
	}
	return goose.NewGoMigration(5, &goose.GoFunc{RunTx: up}, &goose.GoFunc{RunTx: revertPhases})
}

// revertPhases executes down.sql, unless there are runs or documents that the older version cannot hold.
func revertPhases(ctx context.Context, t *sql.Tx) error {
	err := refuseRuns(ctx, t,
		obstacle{
			`phase <> '' AND status IN ` + live,
			"version 4 knows no phases, and %d runs have one%s: let them go on, cancel or delete them first",
		},
		obstacle{
			`status IN ` + live + ` AND n IN (SELECT run FROM waits WHERE id = 'after' AND hash = 'after' AND kind = 'child' AND answered IS NULL)`,
			"version 4 cannot start a run after another, and %d runs wait for one%s: let them start, cancel or delete them first",
		})
	if err == nil {
		err = refuseRows(ctx, t, `SELECT kind || ' ' || name FROM documents WHERE newest = 1 ORDER BY kind, name`,
			"version 4 has no documents, and there are %d%s: delete them first")
	}
	if err != nil {
		return err
	}
	_, err = t.ExecContext(ctx, phasesDown)
	return err
}
