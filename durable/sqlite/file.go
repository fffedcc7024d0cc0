package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver
)

// owner is the mode of a file that its owner alone reads and writes. SQLite gives it
// to the files beside, too.
const ownerOnly = 0o600

// prepareFile creates the file if needed and checks that it is writable.
func prepareFile(path string) (fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, ownerOnly)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no such folder %s: create it first", filepath.Dir(path))
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("this user must be able to read and write the file and to create files in its folder: %w", err)
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	return info, errors.Join(err, f.Close())
}

// connect opens a pool of connections; settings are added to the common settings.
func connect(path, settings string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "_busy_timeout=200" +
		"&_foreign_keys=1" +
		"&_dqs=0" + // double quotes contain a name, never a string
		"&_pragma=secure_delete(1)" + // deleted data is overwritten
		"&_pragma=journal_size_limit(67108864)" + // the -wal file shrinks again after a large write
		"&" + settings}
	return sql.Open("sqlite", dsn.String())
}
