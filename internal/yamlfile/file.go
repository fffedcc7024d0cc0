package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v4"
)

// Limits of what is read.
const (
	// MaxBytes is how large a file may be.
	MaxBytes = 1 << 20
	maxDepth = 50
)

// File is the tree of a file and the problems found in it so far. It is not safe for
// use by several goroutines.
type File struct {
	// Advise, when it is set, says what to do instead to an author who wrote a key that is
	// not known; the value of a key with advice may be a secret and is not shown.
	Advise func(key string) string

	name     string
	lines    []string
	root     *yaml.Node
	problems []Problem
	told     map[mark]bool
	wrong    int         // how often something was wrong, what was told already included
	hidden   map[int]int // by line, from which column on it may be a secret
}

// mark tells two problems apart.
type mark struct {
	Position
	text string
}

// Read returns the text of the file at a path, not much more of it than Parse takes. A pipe is
// read, but not waited for: one without a writer is an error.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the path; the caller says what the file is
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

// Parse reads a text. The name is what problems call it; one that ends in .json is read
// as JSON, any other as YAML. What is wrong is in the File: see Err.
func Parse(name string, text []byte) *File {
	f := &File{name: name, told: map[mark]bool{}, hidden: map[int]int{}}
	if len(text) > MaxBytes {
		f.At(Position{}).Wrong("the file is larger than a megabyte")
		return f
	}
	parse, lineEnd := f.parseYAML, yamlLineEnd
	if strings.EqualFold(filepath.Ext(name), ".json") {
		parse, lineEnd = f.parseJSON, jsonLineEnd
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	f.lines = lineEnd.Split(string(text), -1)
	if root := parse(text); root != nil && f.refuse(root, 0) {
		f.root = root
	}
	return f
}

// What each format takes for the end of a line.
var (
	yamlLineEnd = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]")
	jsonLineEnd = regexp.MustCompile("\n")
)

// Name returns what problems call the file.
func (f *File) Name() string { return f.name }

// Root returns the value that the file is. It is false when there is none: the file is empty
// where nothing is wrong with it so far, and else could not be read.
func (f *File) Root() (Node, bool) { return Node{f, f.root}, f.root != nil }

// At returns a place in the file.
func (f *File) At(p Position) Place { return Place{f, p, 0} }

// Err returns everything that was found wrong so far, an *Error; nil when nothing was.
func (f *File) Err() error { return Join(f) }

// Join returns everything that was found wrong with several files, an *Error with the
// problems file by file; nil when nothing was.
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

// sortedProblems returns the problems in the order of the file, without what may be a secret.
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

// Place is where something stands in a file. The zero Place is nowhere: of something
// that did not come from a file. It is to be kept by who may find a problem later.
type Place struct {
	file *File
	Position
	width int // how many characters are meant
}

// File returns the name of the file; empty for nowhere.
func (p Place) File() string {
	if p.file == nil {
		return ""
	}
	return p.file.name
}

// String returns the file, line and column.
func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File(), p.Line, p.Column) }

// Wide returns the place with so many characters meant.
func (p Place) Wide(characters int) Place {
	p.width = characters
	return p
}

// Wrong adds a problem at the place to those of its file, once.
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

// Error returns an error at the place, an *Error of one problem that wraps it, and adds
// nothing to the file. It is the error itself when the place is nowhere.
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
