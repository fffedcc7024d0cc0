package sqlite

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/grapnel-go/grapnel/durable"
)

// explain adds the store's path, the operation and advice to an error. It does not change the errors that the contract of
// a store defines.
func (s *Store) explain(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil, isAnswer(err):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("sqlite store %s: %s: %w", s.path, doing, context.Cause(ctx))
	}
	var advice string
	switch code(err) {
	case codes.SQLITE_FULL:
		advice = "the disk is full, nothing was written: free some space and try again: "
	case codes.SQLITE_READONLY:
		advice = "no write access: let this user write the file, its -wal and -shm files and their folder: "
	case codes.SQLITE_BUSY:
		advice = fmt.Sprintf("another process has kept it locked for %v: check which process has the file open: ", s.wait)
	case codes.SQLITE_CORRUPT:
		advice = "the file is damaged: restore a backup: "
	case codes.SQLITE_NOTADB:
		advice = "the file is not a SQLite database: use another file: "
	case codes.SQLITE_IOERR, codes.SQLITE_CANTOPEN:
		advice = "the file cannot be read or written: check its disk: "
	}
	return fmt.Errorf("sqlite store %s: %s: %s%w", s.path, doing, advice, err)
}

// isAnswer reports whether an error is a defined answer of a working store, not a failure.
func isAnswer(err error) bool {
	for _, answer := range []error{
		durable.ErrNotFound, durable.ErrExists, durable.ErrEnded, durable.ErrStale, durable.ErrAnswered,
		durable.ErrConflict,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return errors.As(err, new(*durable.HeldError)) || errors.As(err, new(*durable.SeqError))
}

// code returns the primary result code of SQLite; zero for an error that is not from SQLite.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool { return code(err) == codes.SQLITE_BUSY }
