package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Backup writes all that the store holds to a new file, as it is at one moment,
// while runs go on. The file is a store of its own: to go back to it, put it in the
// place of the old one while no process has that open, without the files that end in
// -wal and -shm. It is an error when the file is there already.
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
