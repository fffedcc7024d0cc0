package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// defaultMaxLine is the default of Reader.MaxLine.
const defaultMaxLine = 16 << 20

// A Reader reads a recording's runs, one after the other. It never holds more than one line in memory. Set its fields
// before the first run is read. Only one goroutine may use a Reader at a time.
type Reader struct {
	// Name is the recording's name in errors. Open sets it to the path.
	Name string

	// MaxLine is the maximum length of a line in bytes, uncompressed and without its line end. Zero means 16
	// MiB. A longer line ends the reading with an error.
	MaxLine int

	source io.Reader
	closer io.Closer // nil when the caller closes the source
	lines  lines
	ended  bool
}

// Open opens the recording in a file. The caller closes it.
func Open(path string) (*Reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	return &Reader{Name: path, source: file, closer: file}, nil
}

// NewReader returns a Reader for the recording in r, plain or gzip. It reads from r only when the first run is
// requested. Closing the Reader does not close r.
func NewReader(r io.Reader) *Reader { return &Reader{Name: "recording", source: r} }

// Load reads a whole recording, and stops at the first error.
func Load(path string) ([]*Record, error) {
	r, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var records []*Record
	for record, err := range r.Records() {
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// Close closes the file of a Reader that Open returned. Reading fails afterwards.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// Records iterates over the runs, in the recording's order. Each iteration yields a record or an error, never both. The
// error is a *LineError.
//
// After a malformed line the loop may return, or continue with the next line. When the source itself fails (a read
// error, a damaged archive, a line that is too long), that error is the last iteration. Blank lines are skipped, and a
// recording without lines has no runs.
//
// Records reads the recording while the loop runs. A second loop continues where the first one stopped.
func (r *Reader) Records() iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for !r.ended {
			text, err := r.lines.nextLine(r.source, cmp.Or(r.MaxLine, defaultMaxLine))
			if atEnd(err) {
				r.ended = true
				return
			}
			if err != nil { // any error ends the source
				r.ended = true
				yield(nil, &LineError{Name: r.Name, Line: r.lines.number, Err: err})
				return
			}
			record, err := decodeRecord(text)
			if err != nil {
				record, err = nil, &LineError{Name: r.Name, Line: r.lines.number, Err: err}
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

// decodeRecord reads one line.
func decodeRecord(text []byte) (*Record, error) {
	record := new(Record)
	if err := strictjson.Unmarshal(text, record); err != nil {
		return nil, err
	}
	switch {
	case record.ID == "":
		return nil, notARunError(`no "id": a recorded run has a name`)
	case record.Messages == nil:
		return nil, notARunError(fmt.Sprintf(`run %q has no "messages": an empty list is written as []`, record.ID))
	}
	return record, nil
}

// ErrNotARun is the cause when a line is a JSON object but not a recorded run, because it has no id or no messages. The
// file is probably not a recording.
var ErrNotARun = errors.New("not a recorded run")

// notARunError explains why an object is not a run.
type notARunError string

func (e notARunError) Error() string { return string(e) }

// Is reports whether target is ErrNotARun.
func (e notARunError) Is(target error) bool { return target == ErrNotARun }

// LineError is an error in a recording, with its place.
type LineError struct {
	Name string // the recording
	Line int    // counted from one; zero when the error is not about a line
	Err  error  // the cause, with its place in the line if known
}

// Error returns the recording, the line and the cause.
func (e *LineError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("read recording %q: %s", e.Name, e.Err)
	}
	return fmt.Sprintf("read recording %q: line %d: %s", e.Name, e.Line, e.Err)
}

// Unwrap returns Err.
func (e *LineError) Unwrap() error { return e.Err }
