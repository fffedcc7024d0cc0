package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // for the statements of the migration
	"fmt"

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

// revertWaits executes down.sql, unless there are waits that the older version cannot hold.
func revertWaits(ctx context.Context, t *sql.Tx) error {
	var runs int
	err := t.QueryRowContext(ctx, `SELECT count(DISTINCT run) FROM waits WHERE kind NOT IN ('approval', 'doubt', 'child')`).Scan(&runs)
	if err == nil && runs > 0 {
		err = fmt.Errorf("version 3 knows waits for people and for children only, and %d runs wait for something else: "+
			"let them go on, cancel or delete them first", runs)
	}
	if err != nil {
		return err
	}
	_, err = t.ExecContext(ctx, waitsDown)
	return err
}
