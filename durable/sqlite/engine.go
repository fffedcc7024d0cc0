package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // for the statements of the migration

	"github.com/pressly/goose/v3"

	"github.com/grapnel-go/grapnel/durable"
)

var (
	//go:embed migrations/engine/up.sql
	engineUp string
	//go:embed migrations/engine/down.sql
	engineDown string
)

// engineMigration returns migration 3, which turns runs of agents into runs of every kind.
func engineMigration() *goose.Migration {
	return goose.NewGoMigration(3, &goose.GoFunc{RunTx: migrateEngine}, &goose.GoFunc{RunTx: revertEngine})
}

// migrateEngine executes up.sql and gives each run a queue. SQL cannot compute the key of a queue.
func migrateEngine(ctx context.Context, t *sql.Tx) error {
	if _, err := t.ExecContext(ctx, engineUp); err != nil {
		return err
	}
	var names []string
	rows, err := t.QueryContext(ctx, `SELECT DISTINCT name FROM runs INDEXED BY runs_by_name`)
	err = scanRows(rows, err, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	})
	for _, name := range names {
		if err != nil {
			break
		}
		key := durable.Needs{Kind: durable.KindAgent, Name: name}.Key()
		if _, err = t.ExecContext(ctx, insertQueue, key[:], durable.KindAgent, name, ""); err == nil {
			_, err = t.ExecContext(ctx, `UPDATE runs SET queue = (SELECT id FROM queues WHERE key = ?1) WHERE name = ?2`, key[:], name)
		}
	}
	return err
}

// revertEngine executes down.sql, unless there are runs that the older version cannot hold.
func revertEngine(ctx context.Context, t *sql.Tx) error {
	err := refuseRuns(ctx, t,
		obstacle{`kind <> 'agent'`, "version 2 holds runs of agents only, and %d runs are of another kind%s: delete them first"},
		obstacle{
			`attempts = 0 AND status IN ` + live,
			"version 2 holds no runs that have not started, and %d runs have not%s: cancel or delete them first",
		},
		obstacle{
			`status IN ` + live + ` AND (paused <> 0 OR deadline IS NOT NULL OR signals > handled
				OR n IN (SELECT run FROM payloads WHERE substr(input, 1, 4) = x'00676c31'))`,
			"version 2 knows no pauses, limits and deadlines of jobs, and no added context, and %d runs have them%s: " +
				"let them end, cancel or delete them first",
		})
	if err != nil {
		return err
	}
	_, err = t.ExecContext(ctx, engineDown)
	return err
}
