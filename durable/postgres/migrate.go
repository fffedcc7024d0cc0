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
	"github.com/samber/lo"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate creates or migrates the schema as Open does, and returns its version. Run it with a role that may create
// tables, so that the program itself can use one that may only write rows.
func Migrate(ctx context.Context, url string, o Options) (version int64, err error) {
	config, err := o.parse(url)
	if err != nil {
		return 0, err
	}
	return o.withProvider(ctx, config.ConnConfig, migrateUp)
}

// Rollback reverts the last migration, for an older version of the program, and returns the resulting version. No process
// may be using the store. It loses no runs, because it refuses to revert the first version.
func Rollback(ctx context.Context, url string, o Options) (version int64, err error) {
	config, err := o.parse(url)
	if err != nil {
		return 0, err
	}
	return o.withProvider(ctx, config.ConnConfig, migrateDown)
}

func migrateUp(ctx context.Context, p *goose.Provider) error {
	there, known, err := p.GetVersions(ctx)
	if err == nil && there > known {
		err = fmt.Errorf("the schema has version %d and this program supports versions up to %d: use a newer program, "+
			"or downgrade the schema with that program first", there, known)
	}
	if err == nil && there < known {
		_, err = p.Up(ctx)
	}
	return err
}

func migrateDown(ctx context.Context, p *goose.Provider) error {
	there, known, err := p.GetVersions(ctx)
	switch {
	case err != nil:
		return err
	case there > known:
		return fmt.Errorf("the schema has version %d and this program supports versions up to %d: downgrade with the program that created it", there, known)
	case there <= 1:
		return errors.New("the schema has its first version: there is no earlier one")
	}
	_, err = p.Down(ctx)
	return err
}

// withProvider creates a migration provider and calls f with it while no other process has one for this schema. Other
// processes wait in the database. The provider's statements have no time limit.
func (o Options) withProvider(
	ctx context.Context, config *pgx.ConnConfig, f func(context.Context, *goose.Provider) error,
) (version int64, err error) {
	schema := o.schema()
	defer func() {
		if err != nil {
			err = fmt.Errorf("migrate schema %q: %w", schema, err)
		}
	}()
	config = config.Copy()
	config.AfterConnect = o.session(0)
	db := stdlib.OpenDB(*config)
	defer db.Close()
	turn, err := db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer turn.Close() // db.Close then ends the session and releases the lock
	if _, err := turn.ExecContext(ctx, `SELECT pg_advisory_lock(hashtextextended('grapnel/' || $1, 0))`, schema); err != nil {
		return 0, fmt.Errorf("wait for another process that migrates: %w", err)
	}
	var there bool
	err = turn.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, schema).Scan(&there)
	if err == nil && !there {
		_, err = turn.ExecContext(ctx, `CREATE SCHEMA `+pgx.Identifier{schema}.Sanitize())
	}
	if err != nil {
		return 0, fmt.Errorf("make the schema: %w", err)
	}
	sources, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	var converted []*goose.Migration
	for _, c := range conversions {
		m, err := c.migration(sources)
		if err != nil {
			return 0, err
		}
		converted = append(converted, m)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, sources, goose.WithTableName("migrations"),
		goose.WithExcludeNames(lo.Map(conversions, func(c conversion, _ int) string { return c.file })), goose.WithGoMigrations(converted...),
		goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, err
	}
	if err := f(ctx, p); err != nil {
		return 0, err
	}
	return p.GetDBVersion(ctx)
}
