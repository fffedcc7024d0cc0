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

const (
	engineVersion = 3
	engineFile    = "00003_engine.sql"
)

// engineMigration returns the migration to runs of every kind. It executes the two parts of its file, because SQL cannot
// compute the keys of queues.
func engineMigration(sources fs.FS) (*goose.Migration, error) {
	file, err := fs.ReadFile(sources, engineFile)
	if err != nil {
		return nil, err
	}
	up, down, _ := strings.Cut(string(file), "-- +goose Down\n")
	return goose.NewGoMigration(engineVersion,
		&goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			if err := insertNeeds(ctx, tx); err != nil {
				return err
			}
			return execute(ctx, tx, up)
		}},
		&goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			if err := checkRevert(ctx, tx); err != nil {
				return err
			}
			return execute(ctx, tx, down)
		}},
	), nil
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

// checkRevert returns an error if there are runs that the version before cannot store.
func checkRevert(ctx context.Context, tx *sql.Tx) error {
	var other, unstarted int
	err := tx.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE kind <> 'agent'),
		count(*) FILTER (WHERE kind = 'agent' AND ended IS NULL AND attempts = 0) FROM runs`).Scan(&other, &unstarted)
	switch {
	case err != nil:
		return err
	case other > 0:
		return fmt.Errorf("version %d cannot store runs that are not runs of agents, and there are %d: delete them first", engineVersion-1, other)
	case unstarted > 0:
		return fmt.Errorf("version %d cannot store runs that have not started, and there are %d: let them start or delete them first",
			engineVersion-1, unstarted)
	}
	return nil
}
