package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// ReadArgs are the arguments of Read.
type ReadArgs struct {
	Path   string `json:"path" jsonschema:"the file, relative to the root"`
	Offset int    `json:"offset,omitempty" jsonschema:"the first line to show, counted from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to show at most"`
}

// Excerpt is the part of a file that Read returns.
type Excerpt struct {
	// Path is the file, relative to the root.
	Path string
	// Text holds the lines, without the CR of CRLF, and with � for bytes that are not UTF-8.
	Text string
	// First and Last are the numbers of the first and last line in Text, counted from 1. Both are 0 if the file is
	// empty.
	First, Last int
	// More reports that lines follow.
	More bool
	// Cut reports that Text has only a part of the last line.
	Cut bool
	// Lines is the file's number of lines, or -1 if the file is too big to count them.
	Lines int
	// Size is the file size in bytes.
	Size int64
	// Hash is the file's hash. It is empty if the file is too big to be edited.
	Hash string
	// CRLF is the number of lines that end in CRLF. Strange is the number of bytes in the lines that are shown as �.
	CRLF, Strange int
	// Unended reports that Text has the file's last line, and that this line has no line end.
	Unended bool
}

// Read reads a file, or some of its lines.
func (t *Tree) Read(ctx context.Context, in ReadArgs) (Excerpt, error) {
	const op = "read"
	name, err := t.fileName(op, in.Path)
	if err != nil {
		return Excerpt{}, err
	}
	if in.Offset < 0 || in.Limit < 0 {
		return Excerpt{}, problem(op, in.Path, "offset and limit count lines: they must be 1 or more, or omitted")
	}
	f, info, err := openIn(t.root, name, os.O_RDONLY, 0)
	if err != nil {
		return Excerpt{}, t.suggestName(ctx, systemError(op, in.Path, err), name)
	}
	defer f.Close()
	e := reading{Excerpt{Path: name, First: max(1, in.Offset), Size: info.Size()}}
	err = e.readLines(io.LimitReader(until{ctx, f}, e.Size), in.Limit, t.config.MaxReadBytes, e.Size <= int64(t.config.MaxWriteBytes))
	switch {
	case ctx.Err() != nil:
		return Excerpt{}, fmt.Errorf("read %q: %w", in.Path, context.Cause(ctx))
	case err != nil:
		return Excerpt{}, systemError(op, in.Path, err)
	}
	return e.Excerpt, nil
}

// reading is an excerpt that is being read.
type reading struct{ Excerpt }

// readLines reads as many lines as fit. If whole is set, it also reads the rest of the file, to count its lines and to
// hash it.
func (e *reading) readLines(from io.Reader, limit, most int, whole bool) error {
	sum := sha256.New()
	if whole {
		from = io.TeeReader(from, sum)
	}
	r := bufio.NewReaderSize(from, 64<<10)
	if head, _ := r.Peek(8000); isBinary(head) {
		return problem("", "", "it is a binary file of %s that begins with %q: it cannot be shown as text",
			countNoun(e.Size, "byte"), head[:min(12, len(head))])
	}
	var text strings.Builder
	number := 0 // number of the last line read
	for full := false; whole || !e.More; {
		keep := lo.Ternary(full || number+1 < e.First, 0, most-text.Len())
		line, size, err := readLine(r, keep+1) // one byte more shows whether the line is longer
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if size == 0 {
			break
		}
		number++
		switch {
		case number < e.First:
		case full || limit > 0 && number-e.First >= limit || e.Last > 0 && size > keep:
			full, e.More = true, true
		default:
			e.add(&text, line, keep)
			e.Last, full = number, e.Cut
		}
	}
	e.Text = text.String()
	return e.finish(number, whole, sum)
}

// isBinary reports whether a file with this head is binary.
func isBinary(head []byte) bool {
	return bytes.IndexByte(head, 0) >= 0 || countStrange(head) > len(head)/3+utf8.UTFMax
}

// add adds at most keep bytes of a line to the text.
func (e *reading) add(text *strings.Builder, line []byte, keep int) {
	long := len(line) > keep
	line, ended := bytes.CutSuffix(line, []byte("\n"))
	if long {
		line, ended = line[:min(len(line), keep)], false
	}
	if ended {
		if bare, cr := bytes.CutSuffix(line, []byte("\r")); cr {
			line, e.CRLF = bare, e.CRLF+1
		}
	}
	if long {
		for i := 1; i <= min(len(line), utf8.UTFMax); i++ { // do not split a rune
			if tail := line[len(line)-i:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRune(tail) {
					line = line[:len(line)-i]
				}
				break
			}
		}
	}
	for _, r := range string(line) { // range yields utf8.RuneError for a byte that is not UTF-8
		if r == 0 {
			r = utf8.RuneError
		}
		text.WriteRune(r)
	}
	e.Strange += countStrange(line)
	if ended {
		text.WriteByte('\n')
	}
	e.Cut, e.Unended = long, !ended && !long
}

// countStrange counts the bytes that are not UTF-8.
func countStrange(line []byte) (n int) {
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		if r == 0 || r == utf8.RuneError && size == 1 {
			n++
		}
		line = line[size:]
	}
	return n
}

func (e *reading) finish(lines int, whole bool, sum hash.Hash) error {
	e.Lines = -1
	if whole {
		e.Lines, e.Hash = lines, shortHash(sum.Sum(nil))
	}
	if e.Last == 0 && (lines > 0 || e.First > 1) {
		return problem("", "", "it has only %s: there is no line %d", countNoun(lines, "line"), e.First)
	}
	if e.Last == 0 {
		e.First = 0
	}
	return nil
}

// readLine reads a line of any length with its line end, and keeps its first bytes.
func readLine(r *bufio.Reader, most int) (line []byte, size int, err error) {
	for {
		part, err := r.ReadSlice('\n')
		size += len(part)
		line = append(line, part[:min(len(part), max(0, most-len(line)))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

// shortHash returns a hash prefix that is long enough to detect a change.
func shortHash(sum []byte) string { return hex.EncodeToString(sum[:8]) }

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return shortHash(sum[:])
}

// Content returns the text, followed by a note on which part of the file it is.
func (e Excerpt) Content() agent.Content {
	var notes []string
	say := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	name := showPath(e.Path)
	switch {
	case e.Last == 0:
		say("%s: an empty file", name)
	case e.First == 1 && !e.More && !e.Cut:
		say("%s: %s, %s", name, countNoun(e.Last, "line"), countNoun(e.Size, "byte"))
	case e.Lines < 0:
		say("%s: lines %d to %d, of a file of %s", name, e.First, e.Last, countNoun(e.Size, "byte"))
	default:
		say("%s: lines %d to %d of %d, %s", name, e.First, e.Last, e.Lines, countNoun(e.Size, "byte"))
	}
	if e.Cut {
		say("line %d is cut: use grep to find parts of it", e.Last)
	}
	if e.More {
		say("read on with offset %d", e.Last+1)
	}
	if e.CRLF > 0 {
		say("%s in CRLF, shown without CR", countNoun(e.CRLF, "line end"))
	}
	if e.Strange > 0 {
		say("%s not text and shown as �", countNoun(e.Strange, "byte"))
	}
	if e.Unended {
		say("no line end after the last line")
	}
	if e.Hash != "" {
		say("hash %s", e.Hash)
	}
	return withNotes(e.Text, notes...)
}
