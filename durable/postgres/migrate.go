package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// MigrateDown takes the schema one step back, for a version of this module that is
// one step older. It does not touch data that the older version knows. No process
// should be using the store meanwhile.
func MigrateDown(ctx context.Context, url string, o Options) error {
	config, err := o.parse(url)
	if err != nil {
		return err
	}
	return migrate(ctx, config.ConnConfig, o.schema(), func(p *goose.Provider) error {
		_, err := p.Down(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return errors.New("it is at its first version: there is nothing before it")
		}
		return err
	})
}

func migrateUp(ctx context.Context, config *pgx.ConnConfig, schema string) error {
	return migrate(ctx, config, schema, func(p *goose.Provider) error {
		_, err := p.Up(ctx)
		if err != nil {
			return err
		}
		there, known, err := p.GetVersions(ctx)
		if err == nil && there > known {
			err = fmt.Errorf("it has version %d and this program knows versions up to %d: use a newer program, "+
				"or take the schema back with the one that brought it forward", there, known)
		}
		return err
	})
}

// migrate hands out a provider while no other process has one for this schema, which it
// makes first. Others wait in the database. Its statements may take as long as they need.
func migrate(ctx context.Context, config *pgx.ConnConfig, schema string, f func(*goose.Provider) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("migrate schema %q: %w", schema, err)
		}
	}()
	config = config.Copy()
	config.RuntimeParams["statement_timeout"] = "0"
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	db := stdlib.OpenDB(*config)
	defer db.Close()
	turn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer turn.Close() // db.Close then ends the session, and with it the lock
	if _, err := turn.ExecContext(ctx, `SELECT pg_advisory_lock(hashtextextended('grapnel/' || $1, 0))`, schema); err != nil {
		return fmt.Errorf("wait for another process that migrates: %w", err)
	}
	var there bool
	err = turn.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, schema).Scan(&there)
	if err == nil && !there {
		_, err = turn.ExecContext(ctx, `CREATE SCHEMA `+pgx.Identifier{schema}.Sanitize())
	}
	if err != nil {
		return fmt.Errorf("make the schema: %w", err)
	}
	sources, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, sources, goose.WithTableName("migrations"),
		goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return f(p)
}
