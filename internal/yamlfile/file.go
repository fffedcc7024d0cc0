package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v4"
)

// Limits for files.
const (
	// MaxBytes is the maximum size of a file.
	MaxBytes = 1 << 20
	maxDepth = 50
)

// File is a file's tree and the problems found so far. It is not safe for concurrent use.
type File struct {
	// Advise, unless nil, returns advice for an unknown key. A value whose key has advice may be a secret and is
	// never shown.
	Advise func(key string) string

	name     string
	isJSON   bool
	lines    []string
	root     *yaml.Node
	problems []Problem
	told     map[mark]bool
	wrong    int         // the number of problems, including repeated ones
	hidden   map[int]int // by line, the column from which on the text may be a secret
}

// mark identifies a problem.
type mark struct {
	Position
	text string
}

// Read returns the content of the file at a path, up to a little more than MaxBytes. It does not wait for pipes: a
// pipe without a writer is an error.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if info, err := f.Stat(); len(text) == 0 && err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return nil, fmt.Errorf("reading %s: it is a pipe without a writer", path)
	}
	return text, nil
}

// Parse parses a file's content. Problems refer to it by name. A name that ends in .json means JSON, any other name
// YAML. The File collects the errors: see Err.
func Parse(name string, text []byte) *File {
	f := &File{name: name, told: map[mark]bool{}, hidden: map[int]int{}}
	if len(text) > MaxBytes {
		f.At(Position{}).Wrong("the file is larger than a megabyte")
		return f
	}
	parse, lineEnd := f.parseYAML, yamlLineEnd
	if strings.EqualFold(filepath.Ext(name), ".json") {
		parse, lineEnd, f.isJSON = f.parseJSON, jsonLineEnd, true
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	f.lines = lineEnd.Split(string(text), -1)
	if root := parse(text); root != nil && f.refuse(root, 0) {
		f.root = root
	}
	return f
}

// Again returns the parsed file for another reader. Each reader's problems are separate.
func (f *File) Again() *File {
	again := *f
	again.problems, again.told, again.hidden = slices.Clone(f.problems), maps.Clone(f.told), maps.Clone(f.hidden)
	return &again
}

// Line ends of each format.
var (
	yamlLineEnd = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]")
	jsonLineEnd = regexp.MustCompile("\n")
)

// Name returns the name by which problems refer to the file.
func (f *File) Name() string { return f.name }

// Root returns the file's top-level value. It returns false if the file is empty or could not be parsed; in both
// cases Err returns an error.
func (f *File) Root() (Node, bool) { return Node{f, f.root}, f.root != nil }

// At returns a place in the file.
func (f *File) At(p Position) Place { return Place{f, p, 0} }

// Err returns all problems found so far as an *Error, or nil.
func (f *File) Err() error { return Join(f) }

// Join returns all problems of several files as an *Error, file by file, or nil.
func Join(files ...*File) error {
	var all []Problem
	for _, f := range files {
		all = append(all, f.sortedProblems()...)
	}
	if len(all) == 0 {
		return nil
	}
	return &Error{all}
}

// sortedProblems returns the problems in file order, without text that may be a secret.
func (f *File) sortedProblems() []Problem {
	out := slices.Clone(f.problems)
	for i, p := range out {
		if from, hidden := f.hidden[p.Line]; hidden {
			runes := []rune(p.Source)
			out[i].Source = string(runes[:min(from-1, len(runes))]) + "…"
		}
	}
	return sortProblems(out)
}

func (f *File) line(n int) string {
	if n < 1 || n > len(f.lines) {
		return ""
	}
	return strings.TrimSuffix(f.lines[n-1], "\r")
}

// Place is a position in a file. The zero Place is for values that do not come from a file. Keep a Place to report a
// problem later.
type Place struct {
	file *File
	Position
	width int // the number of affected characters
}

// File returns the file's name; it is empty for the zero Place.
func (p Place) File() string {
	if p.file == nil {
		return ""
	}
	return p.file.name
}

// String returns the file, line and column.
func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File(), p.Line, p.Column) }

// Wide returns the place with the given number of affected characters.
func (p Place) Wide(characters int) Place {
	p.width = characters
	return p
}

// Wrong adds a problem at the place to the file, unless the file already has it.
func (p Place) Wrong(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	found := p.problem(err)
	found.Cause = errors.Unwrap(err)
	p.file.wrong++
	if m := (mark{p.Position, found.Text}); !p.file.told[m] {
		p.file.told[m] = true
		p.file.problems = append(p.file.problems, found)
	}
}

// Error returns an *Error with one problem at the place, which wraps err, without adding the problem to the file. For
// the zero Place it returns err.
func (p Place) Error(err error) error {
	if p.file == nil || err == nil {
		return err
	}
	found := p.problem(err)
	found.Cause = err
	if from, hidden := p.file.hidden[p.Line]; hidden {
		runes := []rune(found.Source)
		found.Source = string(runes[:min(from-1, len(runes))]) + "…"
	}
	return &Error{[]Problem{found}}
}

func (p Place) problem(err error) Problem {
	return Problem{File: p.file.name, Position: p.Position, Text: err.Error(), Source: p.file.line(p.Line), Width: p.width}
}
