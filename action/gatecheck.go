package action

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/internal/callback"
)

// look is a file's state at one check.
type look struct {
	Changed time.Time `json:"changed"`
	Size    int64     `json:"size"`
}

// fileCheck checks a file until it contains an answer. It accepts an answer only if two consecutive checks found the
// file unchanged, because a process may still be writing it.
type fileCheck struct {
	gate Gate
	path string
	// first is the file's initial state, which does not count as an answer. It is nil if the file did not exist or has
	// changed since.
	first *look
	last  *look // at the previous check
}

// newFileCheck looks at the file for the first time.
func (g Gate) newFileCheck(path string) (*fileCheck, error) {
	f := &fileCheck{gate: g, path: path}
	first, err := f.look()
	if !g.Existing {
		f.first = first
	}
	return f, err
}

// look returns nil if the file does not exist.
func (f *fileCheck) look() (*look, error) {
	kind := f.gate.Type()
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, newFault(kind, FaultStart, "checking %s: %w", f.path, err)
	case !info.Mode().IsRegular():
		return nil, newFault(kind, FaultStart, "checking %s: not a regular file", f.path)
	case info.Size() > DefaultMaxBytes:
		return nil, newFault(kind, FaultTooMuch, "%s has %d bytes: the limit for an answer is %d", f.path, info.Size(), DefaultMaxBytes)
	}
	return &look{info.ModTime(), info.Size()}, nil
}

// checkFile checks once. It returns nil when there is no answer yet.
func (f *fileCheck) checkFile() (*callback.Answer, error) {
	now, err := f.look()
	same := func(a *look) bool { return a != nil && a.Changed.Equal(now.Changed) && a.Size == now.Size }
	switch {
	case err != nil:
		return nil, err
	case now == nil:
		f.last, f.first = nil, nil
	case same(f.first):
	case same(f.last):
		text, err := os.ReadFile(f.path)
		if err != nil {
			return nil, newFault(f.gate.Type(), FaultStart, "%w", err)
		}
		return f.gate.read(f.path, string(text))
	default:
		f.last = now
	}
	return nil, nil
}

// read parses an answer from a file or a command. Empty text approves.
func (g Gate) read(from, text string) (*callback.Answer, error) {
	what, err := callback.Parse(cmp.Or(strings.TrimSpace(text), "approve"))
	if err != nil {
		return nil, newFault(g.Type(), FaultAnswer, "%s: %w", from, err)
	}
	return &what, nil
}

// program returns a command gate's program.
func (g Gate) program(dir string) program {
	return program{kind: g.Type(), argv: slices.Clone(g.Argv), dir: dir, timeout: g.maxWait()}
}

// checkCommand runs the command once. It returns nil when there is no answer yet.
func (g Gate) checkCommand(ctx context.Context, run program, r *Request) (*callback.Answer, error) {
	o, err := run.run(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case o.truncated:
		return nil, newFault(g.Type(), FaultTooMuch, "%s printed more than %d bytes, the limit for an answer", run.argv[0], DefaultMaxBytes)
	case o.code == 0:
		return g.read(run.argv[0], o.output)
	case o.code == 1:
		return nil, nil
	}
	return nil, withComplaint(newFault(g.Type(), FaultExit,
		"%s ended with exit code %d: expected 0 (answered) or 1 (not yet)", run.argv[0], o.code), o.complaint)
}
