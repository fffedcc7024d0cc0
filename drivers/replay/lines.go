package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// lines splits a source, plain or gzip, into lines. The zero value is ready to use.
type lines struct {
	number int // the number of the last line, counted from one

	buffered *bufio.Reader // nil before the first line
	text     []byte        // the last line; the next call reuses the buffer
}

// nextLine returns the next line that is not blank, without its line end. The line is valid until the next call. At the
// end of the source the error is io.EOF. After an error, no more lines can be read. If the source fails in the middle
// of a line, the partial line is dropped.
func (l *lines) nextLine(source io.Reader, limit int) ([]byte, error) {
	if l.buffered == nil {
		if err := l.openSource(source); err != nil {
			return nil, err
		}
	}
	for {
		l.number++
		err := l.readLine(limit)
		if err != nil && !atEnd(err) {
			return nil, err
		}
		if text := bytes.Trim(l.text, " \t\r\n"); len(text) > 0 {
			return text, nil // at the end of the source, the next call returns io.EOF
		}
		if err != nil {
			return nil, err
		}
	}
}

// openSource checks the first bytes. A gzip archive begins with 1f 8b, and a JSON text never does.
func (l *lines) openSource(source io.Reader) error {
	l.buffered = bufio.NewReaderSize(source, 64<<10)
	magic, err := l.buffered.Peek(2)
	if err != nil && !atEnd(err) {
		return err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return nil
	}
	unpacked, err := gzip.NewReader(l.buffered)
	if err != nil {
		return fmt.Errorf("unpack: %w", noEOF(err))
	}
	l.buffered = bufio.NewReaderSize(packed{unpacked}, 64<<10)
	return nil
}

// readLine reads one line into l.text, including its line end.
func (l *lines) readLine(limit int) error {
	l.text = l.text[:0]
	for {
		piece, err := l.buffered.ReadSlice('\n')
		l.text = append(l.text, piece...)
		if len(withoutEnd(l.text)) > limit {
			return fmt.Errorf("longer than %d bytes: set Reader.MaxLine if it is meant to be", limit)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func withoutEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// packed marks errors that happen while unpacking. A plain io.EOF is an archive's proper end.
type packed struct{ archive *gzip.Reader }

func (p packed) Read(b []byte) (int, error) {
	n, err := p.archive.Read(b)
	if err != nil && !atEnd(err) {
		err = fmt.Errorf("unpack: %w", err)
	}
	return n, err
}

// noEOF replaces the io.EOF of an archive that ends inside its header, so that it does not look like the recording's
// end.
func noEOF(err error) error {
	if atEnd(err) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// atEnd reports whether a source is at its proper end. An error that wraps io.EOF is a failure.
func atEnd(err error) bool {
	return err == io.EOF //nolint:errorlint // an io.Reader returns io.EOF unwrapped
}
