package audit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/hooks"
)

// Options configures a Log: what it writes, and how it handles a failed write. The zero value holds the defaults.
type Options struct {
	// Name is the prefix of the hooks' names. Empty means "audit".
	Name string
	// Content also writes arguments, results and reasons as text.
	Content bool
	// Clean, unless nil, returns a text without the parts that must not be written, such as secrets. It must be safe for
	// concurrent use.
	Clean func(text string) string
	// Key is the key for the hashes. Without it, a reader cannot test guesses against a hash. The log does not store
	// it.
	Key []byte
	// Failure is the policy when a line cannot be written: hooks.Closed (the default), hooks.Abort or hooks.Open.
	Failure hooks.FailurePolicy
	// Sync waits after each line until it is on disk, if the writer supports it, as a file does.
	Sync bool
}

// Log writes audit entries as JSON lines. Create one with New or Open. It is safe for concurrent use.
type Log struct {
	options Options
	id      string

	mu     sync.Mutex
	to     io.Writer
	closes io.Closer
	lines  uint64
	torn   bool // the last write ended within a line
	err    error
}

// New returns a log that writes to w, one line per Write. Other code must not write to w at the same time, unless w is
// a file opened for appending.
func New(w io.Writer, o Options) *Log {
	if o.Name == "" {
		o.Name = "audit"
	}
	if o.Failure == (hooks.FailurePolicy{}) {
		o.Failure = hooks.Closed
	}
	o.Key = append([]byte(nil), o.Key...)
	return &Log{options: o, id: rand.Text(), to: w}
}

// Open returns a log that appends to a file. It creates a missing file with access for its owner only, and returns an
// error for a file that others may read or write. Close the log when the agents are done.
func Open(path string, o Options) (*Log, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	info, err := file.Stat()
	if err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%s can be accessed by other users (%v): run chmod 600 on it", path, info.Mode().Perm())
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", errors.Join(err, file.Close()))
	}
	l := New(file, o)
	l.closes, l.torn = file, info.Mode().IsRegular() && endsTorn(path, info.Size())
	return l, nil
}

// endsTorn reports whether a file's last line has no line end, because its writer died or the disk was full. It returns
// false for a file that cannot be read.
func endsTorn(path string, size int64) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var last [1]byte
	_, err = file.ReadAt(last[:], size-1)
	return err == nil && last[0] != '\n' // for an empty file, reading the last byte is an error
}

// Close closes the file that Open opened. Later writes fail.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closes == nil {
		return nil
	}
	return l.closes.Close()
}

// Err returns the first failure to write a line, or nil. After a failure the log has a gap.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// write numbers an entry, writes it as a line, and keeps the first failure.
func (l *Log) write(e Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines++
	e.Log, e.Number, e.Time = l.id, l.lines, time.Now().UTC()
	err := l.put(e)
	if err != nil {
		err = fmt.Errorf("writing the audit log: %w", err)
		if l.err == nil {
			l.err = err
		}
	}
	return err
}

// put writes a line in one Write.
func (l *Log) put(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.to.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if n > 0 {
		l.torn = n < len(line)
	}
	if file, ok := l.to.(interface{ Sync() error }); ok && err == nil && l.options.Sync {
		err = file.Sync()
	}
	return err
}

// hash returns a text's hash, in hexadecimal digits.
func (l *Log) hash(text string) string {
	if len(l.options.Key) == 0 {
		sum := sha256.Sum256([]byte(text))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	mac := hmac.New(sha256.New, l.options.Key)
	mac.Write([]byte(text))
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}

// texts returns the cleaned and shortened texts, or nil without Options.Content.
func (l *Log) texts(t Texts) *Texts {
	if !l.options.Content {
		return nil
	}
	for _, text := range []*string{&t.Arguments, &t.Asked, &t.Result, &t.Reason} {
		if l.options.Clean != nil {
			*text = l.options.Clean(*text)
		}
		*text = truncateText(*text, maxText)
	}
	if t == (Texts{}) {
		return nil
	}
	return &t
}

// truncateText returns at most the first most bytes of a text.
func truncateText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
