package recorded

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// value is one JSON value in a file.
type value struct {
	text []byte // valid until the next value is read
	line int    // the line where the value begins, from one
	// element is set for an element of a list that is a whole file or line. last marks the end of such a list and has
	// no text.
	element, last bool
}

// splitter splits a file into values: its lines or, if a value spans several lines, consecutive values. It splits a
// list into its elements, so that the list is never in memory as a whole. After an error in a line, it continues with
// the next line.
type splitter struct {
	limit  int
	source *bufio.Reader
	line   int
	text   []byte
}

var errLong = errors.New("a value is too long: raise Reader.MaxValue")

func (s *splitter) values(source io.Reader) iter.Seq2[value, error] {
	return func(yield func(value, error) bool) {
		first, err := s.openSource(source)
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			yield(value{}, err)
			return
		}
		if first != '[' && s.byLine() {
			s.lines(yield)
			return
		}
		s.stream(yield)
	}
}

// openSource decompresses the source if needed and returns the first byte that is not white space.
func (s *splitter) openSource(source io.Reader) (byte, error) {
	s.source, s.line = bufio.NewReaderSize(source, 64<<10), 1
	if magic, err := s.source.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		unpacked, err := gzip.NewReader(s.source)
		if err != nil {
			return 0, fmt.Errorf("unpack: %w", noEOF(err))
		}
		s.source = bufio.NewReaderSize(packed{unpacked}, 64<<10)
	}
	if mark, err := s.source.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = s.source.Discard(3)
	}
	return s.skip()
}

// skip moves to the next byte that is not white space, without consuming it.
func (s *splitter) skip() (byte, error) {
	for {
		b, err := s.source.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case b == '\n':
			s.line++
		case b != ' ' && b != '\t' && b != '\r':
			return b, s.source.UnreadByte()
		}
	}
}

// byLine judges by the first two lines whether each line is a separate value.
func (s *splitter) byLine() bool {
	head, _ := s.source.Peek(s.source.Size())
	first, rest, found := bytes.Cut(head, []byte("\n"))
	if first = bytes.TrimSpace(first); !found || json.Valid(first) {
		return found || json.Valid(first) || len(head) == s.source.Size() // the line is longer than the buffer
	}
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	return !bytes.HasSuffix(first, []byte("{")) && !bytes.HasSuffix(first, []byte("[")) &&
		!bytes.HasSuffix(first, []byte(",")) && json.Valid(bytes.TrimSpace(second)) && bytes.HasPrefix(bytes.TrimSpace(second), []byte("{"))
}

// lines yields the non-blank lines.
func (s *splitter) lines(yield func(value, error) bool) {
	for ended := false; !ended; s.line++ {
		s.text = s.text[:0]
		for {
			piece, err := s.source.ReadSlice('\n')
			if s.text = append(s.text, piece...); len(s.text) > s.limit {
				yield(value{line: s.line}, errLong)
				return
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && err != io.EOF { // an io.Reader returns io.EOF unwrapped
				yield(value{line: s.line}, err)
				return
			}
			ended = err != nil
			break
		}
		if text := bytes.TrimSpace(s.text); len(text) > 0 && !yield(value{text: text, line: s.line}, nil) {
			return
		}
	}
}

// stream yields values that span lines, and the elements of lists.
func (s *splitter) stream(yield func(value, error) bool) {
	inList := false
	for {
		b, err := s.skip()
		if err == io.EOF { //nolint:errorlint // see lines
			if inList {
				yield(value{line: s.line}, fmt.Errorf("the list does not end: %w", io.ErrUnexpectedEOF))
			}
			return
		}
		if err != nil {
			yield(value{line: s.line}, err)
			return
		}
		switch {
		case b == '[' && !inList, b == ',' && inList:
			inList = true
			_, _ = s.source.ReadByte()
			continue
		case b == ']' && inList:
			inList = false
			_, _ = s.source.ReadByte()
			if !yield(value{line: s.line, last: true}, nil) {
				return
			}
			continue
		case b != '{':
			yield(value{line: s.line}, fmt.Errorf("expected an object, got %q", b))
			return
		}
		line := s.line
		if err := s.object(); err != nil {
			yield(value{line: line}, err)
			return
		}
		if !yield(value{text: s.text, line: line, element: inList}, nil) {
			return
		}
	}
}

// object reads from an opening brace to the matching closing brace.
func (s *splitter) object() error {
	s.text = s.text[:0]
	depth, inText, escaped := 0, false, false
	for {
		b, err := s.source.ReadByte()
		if err != nil {
			return fmt.Errorf("an object does not end: %w", noEOF(err))
		}
		if s.text = append(s.text, b); len(s.text) > s.limit {
			return errLong
		}
		switch {
		case b == '\n':
			s.line++
			escaped = false
		case escaped:
			escaped = false
		case inText:
			escaped, inText = b == '\\', b != '"'
		case b == '"':
			inText = true
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			if depth--; depth == 0 {
				return nil
			}
		}
	}
}

// packed marks errors that occur while decompressing.
type packed struct{ archive *gzip.Reader }

func (p packed) Read(b []byte) (int, error) {
	n, err := p.archive.Read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // see lines
		err = fmt.Errorf("unpack: %w", err)
	}
	return n, err
}

// noEOF turns io.EOF into io.ErrUnexpectedEOF, so that truncated input does not look like a regular end.
func noEOF(err error) error {
	if err == io.EOF { //nolint:errorlint // see lines
		return io.ErrUnexpectedEOF
	}
	return err
}
