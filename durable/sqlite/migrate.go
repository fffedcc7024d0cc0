package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ours is the application id in the header of the file, "Grap". It distinguishes our databases from those of other
// programs.
const ours = 0x47726170

// Migrate migrates the schema of a file as Open does, and returns its version.
func Migrate(ctx context.Context, path string) (version int64, err error) {
	return atRest(ctx, path, "migrating", func(db *sql.DB) error { return migrateSchema(ctx, db) })
}

// Rollback reverts the last migration of a file, for an older version of the program, and returns the resulting version.
// No process may have the file open. It loses no runs, because it refuses to revert the first version.
func Rollback(ctx context.Context, path string) (version int64, err error) {
	return atRest(ctx, path, "downgrading the schema", func(db *sql.DB) error {
		steps, version, _, err := schemaVersions(ctx, db)
		if err != nil {
			return err
		}
		if version <= 1 {
			return errors.New("the schema has its first version: there is no earlier one")
		}
		_, err = steps.Down(ctx)
		return err
	})
}

// atRest calls do with a database that no store of this process has open, and returns the version of its schema afterwards.
func atRest(ctx context.Context, path, doing string, do func(db *sql.DB) error) (version int64, err error) {
	s := &Store{path: path}
	defer func() { err = s.explain(ctx, doing, errors.Join(err, s.disconnect())) }()
	if _, err := prepareFile(path); err != nil {
		return 0, err
	}
	if s.writer, err = connect(path, "_txlock=immediate"); err != nil {
		return 0, err
	}
	s.writer.SetMaxOpenConns(1)
	if err := claimFile(ctx, s.writer); err != nil {
		return 0, err
	}
	if err := do(s.writer); err != nil {
		return 0, err
	}
	_, version, _, err = schemaVersions(ctx, s.writer)
	return version, err
}

// migrateSchema marks a file as ours and migrates it to the newest schema.
func migrateSchema(ctx context.Context, db *sql.DB) error {
	if err := claimFile(ctx, db); err != nil {
		return err
	}
	// Kept in the file; a no-op where it is so already.
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file system does not support a write-ahead log (journal mode %s): put the file on a local disk", mode)
	}
	for {
		steps, version, newest, err := schemaVersions(ctx, db)
		if err != nil || version == newest {
			return err
		}
		if version > newest {
			return fmt.Errorf("the file has schema version %d and this program supports %d: use the newer program, "+
				"or downgrade the schema with it", version, newest)
		}
		if _, err := steps.UpByOne(ctx); err == nil {
			continue
		} else if _, after, _, e := schemaVersions(ctx, db); e != nil || after == version {
			return err
		} // else another process was quicker
	}
}

// claimFile marks an empty file as ours, and refuses a database of another program.
func claimFile(ctx context.Context, db *sql.DB) error {
	t, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.Rollback() }() // does nothing after a commit
	var id, things int
	if err := t.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil || id == ours {
		return err
	}
	if err := t.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&things); err != nil {
		return err
	}
	if id != 0 || things != 0 {
		return errors.New("the file is a database of another program: use another file")
	}
	if _, err := t.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", ours)); err != nil {
		return err
	}
	return t.Commit()
}

// schemaVersions returns the version of the schema of a file, and the newest known version.
func schemaVersions(ctx context.Context, db *sql.DB) (steps *goose.Provider, version, newest int64, err error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, 0, 0, err
	}
	steps, err = goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(engineMigration(), waitsMigration(), phasesMigration()))
	if err != nil {
		return nil, 0, 0, err
	}
	version, newest, err = steps.GetVersions(ctx)
	return steps, version, newest, err
}
