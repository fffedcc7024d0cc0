package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	_ "embed" // for the schema
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

//go:embed schema.sql
var schema string

// ours is the application ID in the header of the file, "Grap". It distinguishes our databases from databases of other programs.
const ours = 0x47726170

// schemaID is the user version in the header of the file: a digest of the schema without its comments and white space.
var schemaID = func() int {
	statements := strings.Fields(regexp.MustCompile(`--.*`).ReplaceAllString(schema, ""))
	sum := sha256.Sum256([]byte(strings.Join(statements, " ")))
	return int(binary.BigEndian.Uint32(sum[:]) >> 1) // the header has a signed number
}()

var (
	errOtherProgram = errors.New("the file is a database of another program: use another file")
	errOtherSchema  = errors.New("the file has the schema of another version of grapnel, and is left as it is: " +
		`export its runs with the grapnel that wrote it ("grapnel runs export ID"), and use a new file`)
)

// createSchema creates the schema in an empty file, and refuses a file with another schema.
func createSchema(ctx context.Context, db *sql.DB) error {
	t, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.Rollback() }() // does nothing after a commit
	var program, id, things int
	err = t.QueryRowContext(ctx, `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`).Scan(&program, &id, &things)
	switch {
	case err != nil:
		return err
	case program == ours && id == schemaID:
		return t.Rollback()
	case program == ours:
		return errOtherSchema
	case program != 0 || things != 0:
		return errOtherProgram
	}
	if _, err := t.ExecContext(ctx, fmt.Sprintf("%s PRAGMA application_id = %d; PRAGMA user_version = %d", schema, ours, schemaID)); err != nil {
		return err
	}
	return t.Commit()
}

// useLog turns on the write-ahead log. The file keeps the setting.
func useLog(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file system does not support a write-ahead log (journal mode %s): put the file on a local disk", mode)
	}
	return nil
}
