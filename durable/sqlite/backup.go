package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Backup writes all that the store holds to a new file, as it is at one moment,
// while runs go on. The file is a store of its own: Restore puts it in the place of another
// one. It is an error when the file is there already.
func (s *Store) Backup(ctx context.Context, path string) error {
	return s.db.look(ctx, "writing a backup to "+path, func(v *view) (err error) {
		defer func() { err = v.fail(err) }()
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, ownerOnly)
		if err != nil {
			return err
		}
		defer func() {
			if err = errors.Join(err, f.Close()); err != nil {
				err = errors.Join(err, os.Remove(path))
			}
		}()
		if err := s.db.copyTo(ctx, path); err != nil {
			return err
		}
		return f.Sync() // SQLite leaves that to the caller who wants the copy
	})
}

// copyTo copies everything to an empty file, over a connection of its own: one for
// queries alone refuses to, and the writer has other work.
func (d *db) copyTo(ctx context.Context, path string) (err error) {
	path, err = filepath.Abs(path) // a name alone could be taken for a URI
	if err != nil {
		return err
	}
	own, err := connect(d.path, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	_, err = own.ExecContext(ctx, "VACUUM INTO ?", path)
	return err
}

// errOpen is returned for a store that a process has open.
var errOpen = errors.New("a process has the store open: stop all of them first")

// Restore puts a copy of a backup in the place of the store at path, if there is one. No process may have that open. It returns
// the file under which the old store is kept; empty if there was none. The backup is read as a whole before anything changes, and it
// is an error if it is no store of this version.
func Restore(ctx context.Context, backup, path string) (kept string, err error) {
	doing := fmt.Sprintf("restoring %s from %s", path, backup)
	now := time.Now().UTC().Format("20060102T150405.000000000")
	fresh := path + ".restored-" + now
	if err := copyStore(ctx, backup, fresh); err != nil {
		return "", fmt.Errorf("%s: %w", doing, errors.Join(err, removeFile(fresh)))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", doing, errors.Join(err, removeFile(fresh)))
		}
	}()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", os.Rename(fresh, path)
	}
	if err := closeLog(ctx, path); err != nil {
		return "", err
	}
	kept = path + ".before-" + now
	if err := os.Link(path, kept); err != nil { // so that there is a store at path at any moment
		return "", err
	}
	if err := os.Rename(fresh, path); err != nil {
		return "", errors.Join(err, os.Remove(kept))
	}
	return kept, nil
}

// removeFile removes a file, if there is one.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// copyStore copies a store to a new file, as it is at one moment.
func copyStore(ctx context.Context, from, to string) (err error) {
	info, err := os.Stat(from)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() == 0:
		return errors.New("the backup is no file with a store")
	}
	db, err := connect(from, "mode=ro")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var program, id int
	err = db.QueryRowContext(ctx, "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version").Scan(&program, &id)
	switch {
	case err != nil:
		return err
	case program != ours:
		return errOtherProgram
	case id != schemaID:
		return errOtherSchema
	}
	f, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, ownerOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return err
	}
	return f.Sync()
}

// closeLog writes what is in the write-ahead log of a store to its file, and removes the log. It fails while a process has the store open.
func closeLog(ctx context.Context, path string) (err error) {
	db, err := connect(path, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var program int
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&program); err != nil {
		return err
	}
	if program != ours {
		return errOtherProgram
	}
	var mode string
	err = db.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode)
	if err != nil && !isBusy(err) {
		return err
	}
	if err != nil || mode != "delete" {
		return errOpen
	}
	return nil
}
