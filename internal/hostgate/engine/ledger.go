package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
)

// DefaultState returns the folder for ledgers.
func DefaultState() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "grapnel", "gate"), nil
	}
	if runtime.GOOS == "windows" {
		dir, err := os.UserCacheDir()
		return filepath.Join(dir, "grapnel", "gate"), err
	}
	dir, err := os.UserHomeDir()
	return filepath.Join(dir, ".local", "state", "grapnel", "gate"), err
}

// openState returns the folder for ledgers, which only its owner can use.
func (c Config) openState() (string, error) {
	dir := c.State
	if dir == "" {
		var err error
		if dir, err = DefaultState(); err != nil {
			return "", fmt.Errorf("finding the folder for its state: %w: set --state", err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("opening its state: %w", err)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", fmt.Errorf("opening its state: %w", err)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("opening its state: other users can open %s: run chmod 700", dir)
	}
	return dir, nil
}

// keyOf returns the key in a folder. The first process makes it.
func keyOf(dir string) ([]byte, error) {
	path := filepath.Join(dir, "key")
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(path); err == nil || errors.Is(err, fs.ErrExist) {
			key, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading its key: %w", err)
	}
	return key, nil
}

// makeKey writes a key, whole or not at all. It fails if another process was first.
func makeKey(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), "key.*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	key := make([]byte, agent.SealKeyLength)
	_, _ = rand.Read(key) // never fails
	_, err = file.Write(key)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Link(file.Name(), path)
}

// ledger is the file of one session: a line with this object, and the guard's ledger.
type ledger struct {
	saved string
	// Offset is how much of the transcript is in it. Tools has the tools of the transcript's calls without a result.
	Transcript string            `json:"transcript,omitempty"`
	Offset     int64             `json:"offset,omitempty"`
	Tools      map[string]string `json:"tools,omitempty"`
}

// inSession calls do with the event's session. Other processes of the session wait until it has returned and the session is saved.
func (x *decider) inSession(ctx context.Context, do func(s *guard.Session) error) error {
	dir, err := x.openState()
	if err != nil {
		return err
	}
	key, err := keyOf(dir)
	if err != nil {
		return err
	}
	config := guard.Config{Name: "gate", Approver: x, Key: key}
	if x.rules != nil {
		config.Rules = x.rules
	}
	g, err := guard.New(config)
	if err != nil {
		return err
	}
	defer func() { _ = g.Drain(ctx) }() // the deadline ends it
	e := x.event
	id := string(e.Host) + "/" + e.Session
	s := g.Session(ctx, id)
	if e.Session == "" { // nothing to find it by
		s.MissCalls()
		return do(s)
	}
	sum := sha256.Sum256([]byte(id))
	path := filepath.Join(dir, hex.EncodeToString(sum[:16]))
	unlock, err := lockFile(ctx, path+".lock")
	if err != nil {
		return fmt.Errorf("waiting for the session's other calls: %w", err)
	}
	defer unlock()
	var l ledger
	switch raw, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
		removeOld(dir, time.Now())
	case err != nil:
		return fmt.Errorf("reading the session's ledger: %w", err)
	default:
		about, saved, _ := bytes.Cut(raw, []byte{'\n'})
		if err := json.Unmarshal(about, &l); err != nil {
			return fmt.Errorf("reading the session's ledger %s: %w", path, err)
		}
		if err := s.Restore(ctx, string(saved)); err != nil {
			return err
		}
	}
	if err := x.syncTranscript(ctx, s, &l); err != nil {
		return err
	}
	failed := do(s)
	if l.saved, err = s.Save(); err == nil {
		err = l.save(path)
	}
	return errors.Join(failed, err)
}

// save replaces the file. A process that is killed meanwhile leaves the old one.
func (l *ledger) save(path string) error {
	about, err := json.Marshal(l)
	temporary := path + ".new"
	if err == nil {
		err = os.WriteFile(temporary, slices.Concat(about, []byte{'\n'}, []byte(l.saved)), 0o600)
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return fmt.Errorf("writing the session's ledger: %w", err)
	}
	return nil
}

// ledgerLife is how long a ledger is kept after its session's last event.
const ledgerLife = 30 * 24 * time.Hour

// removeOld removes old files, as far as it can.
func removeOld(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && entry.Name() != "key" && now.Sub(info.ModTime()) > ledgerLife {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}

// lockInterval is how long a process waits before it tries again to lock a session.
const lockInterval = 2 * time.Millisecond

// lockFile waits for a lock that ends with the process.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		locked, err := tryLock(file)
		switch {
		case err != nil:
			return nil, errors.Join(err, file.Close())
		case locked:
			return func() { _ = file.Close() }, nil
		}
		select {
		case <-time.After(lockInterval):
		case <-ctx.Done():
			return nil, cmp.Or(errors.Join(context.Cause(ctx), file.Close()), ctx.Err())
		}
	}
}
