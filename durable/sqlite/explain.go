package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// answer is an error that the database is not to blame for.
type answer struct{ error }

// outcome returns the error of a call that used the view.
func (v *view) outcome(err error) error {
	if err != nil && v.failed == nil {
		return answer{err}
	}
	return err
}

// explain adds the store's path, the operation and advice to an error of the database.
func (d *db) explain(ctx context.Context, doing string, err error) error {
	if a, ok := err.(answer); ok { //nolint:errorlint // it is never wrapped
		return a.error
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("sqlite store %s: %s: %w", d.path, doing, context.Cause(ctx))
	}
	var advice string
	switch code(err) {
	case codes.SQLITE_FULL:
		advice = "the disk is full, nothing was written: free some space and try again: "
	case codes.SQLITE_READONLY:
		advice = "no write access: let this user write the file, its -wal and -shm files and their folder: "
	case codes.SQLITE_BUSY:
		advice = fmt.Sprintf("another process has kept it locked for %v: check which process has the file open: ", d.wait)
	case codes.SQLITE_CORRUPT:
		advice = "the file is damaged: restore a backup: "
	case codes.SQLITE_NOTADB:
		advice = "the file is not a SQLite database: use another file: "
	case codes.SQLITE_IOERR, codes.SQLITE_CANTOPEN:
		advice = "the file cannot be read or written: check its disk: "
	}
	return fmt.Errorf("sqlite store %s: %s: %s%w", d.path, doing, advice, err)
}

// code returns the primary result code of SQLite; zero for an error that is not from SQLite.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool { return code(err) == codes.SQLITE_BUSY }

// isTaken reports whether a row was not stored because its ID, or the name of a document, is taken.
func isTaken(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == codes.SQLITE_CONSTRAINT && (strings.Contains(e.Error(), ": runs.id ") || strings.Contains(e.Error(), ": documents."))
}
