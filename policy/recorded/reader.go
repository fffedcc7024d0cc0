package recorded

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"os"
	"syscall"

	"github.com/grapnel-go/grapnel/drivers/replay"
)

// defaultMaxValue is how long one JSON value of a file may be, in bytes, when a Reader does not say otherwise.
const defaultMaxValue = 64 << 20

// Reader reads the runs of one file, one after the other. Set its fields before the first run is read. A Reader is for
// one goroutine at a time.
type Reader struct {
	// Name is what errors and runs call the file. Open sets it to the path.
	Name string
	// Format is the form of the file; empty means to find out.
	Format Format
	// MaxValue is how long a line, or an element of the list that a file is, may be, in bytes. Zero means
	// 64 MiB. A longer one ends the reading.
	MaxValue int

	source io.Reader
	closer io.Closer // nil when the source is not ours to close
}

// Open opens a file. The caller closes it.
func Open(path string) (*Reader, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	return &Reader{Name: path, source: file, closer: file}, nil
}

// NewReader returns a Reader of what r holds, which is not closed with it.
func NewReader(name string, r io.Reader) *Reader { return &Reader{Name: name, source: r} }

// Close closes the file of a Reader that Open returned.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// form makes runs of the values of a file.
type form interface {
	// add takes one value in, and gives the runs that are done with it.
	add(v value) ([]*Run, error)
	// end gives the runs that were still under way when the file ended, and what is wrong with any.
	end() ([]*Run, []error)
}

// Runs iterates over the runs, in the order in which they end. Each turn of the loop has a run or an error, never
// both; the error is a *replay.LineError. After an error that is about one run the loop may go on. The file is read as
// the loop goes, and once.
func (r *Reader) Runs() iter.Seq2[*Run, error] {
	return func(yield func(*Run, error) bool) {
		values := &splitter{limit: cmp.Or(r.MaxValue, defaultMaxValue)}
		var in form
		for v, err := range values.values(r.source) {
			if err != nil {
				if !yield(nil, r.wrong(v.line, err)) {
					return
				}
				continue
			}
			if in == nil {
				format, err := r.formatOf(v)
				if err != nil {
					yield(nil, r.wrong(v.line, err))
					return
				}
				in = r.form(format)
			}
			runs, err := in.add(v)
			if !r.give(yield, v.line, runs, err) {
				return
			}
		}
		if in != nil {
			runs, wrong := in.end()
			r.give(yield, 0, runs, wrong...)
		}
	}
}

// give yields runs, and then what is wrong on a line, if anything is. It reports whether the loop goes on.
func (r *Reader) give(yield func(*Run, error) bool, line int, runs []*Run, wrong ...error) bool {
	for _, run := range runs {
		if !yield(run, nil) {
			return false
		}
	}
	for _, err := range wrong {
		if err != nil && !yield(nil, r.wrong(line, err)) {
			return false
		}
	}
	return true
}

func (r *Reader) formatOf(v value) (Format, error) {
	if r.Format != "" {
		return FormatNamed(string(r.Format))
	}
	return detect(v)
}

func (r *Reader) form(f Format) form {
	at := place{r.Name, f}
	switch f {
	case Replay:
		return ownForm{at}
	case ClaudeCode:
		return newClaudeCode(at)
	case Events:
		return newEvents(at)
	case Audit:
		return newAudit(at)
	case OTLP:
		return newOTLP(at)
	}
	return &chatForm{place: at}
}

// wrong says where something is wrong. An error that knows its line better keeps it.
func (r *Reader) wrong(line int, err error) error {
	if at, ok := err.(*replay.LineError); ok { //nolint:errorlint // it is made here, and never wrapped
		at.Name = r.Name
		return at
	}
	return &replay.LineError{Name: r.Name, Line: line, Err: err}
}

// atLine says on which line something is wrong.
func atLine(line int, err error) error { return &replay.LineError{Line: line, Err: err} }

// place is the file that runs are of.
type place struct {
	file   string
	format Format
}

// run returns a new run that begins at a line.
func (p place) run(line int, record replay.Record) *Run {
	if record.ID == "" {
		record.ID = fmt.Sprintf("%s:%d", p.file, line)
	}
	return &Run{Record: record, Format: p.format, File: p.file, Line: line}
}
