package yamlfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"
)

// Position is a line and a column in a text, counted from one; columns count characters. The zero Position means no
// position.
type Position struct{ Line, Column int }

// Problem is one mistake in a file.
type Problem struct {
	File string
	Position
	// Text says what is wrong and what is expected.
	Text string
	// Source is the affected line, and Width the number of affected characters, from the column on.
	Source string
	Width  int
	// Cause is the underlying error, or nil.
	Cause error
}

// String returns the place and the text on one line, then the affected line with a mark below the affected
// characters. It contains no control characters.
func (p Problem) String() string {
	if p.Line == 0 {
		return harmlessText(fmt.Sprintf("%s: %s", p.File, p.Text))
	}
	head := harmlessText(fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text))
	if p.Source == "" {
		return head
	}
	line, at := textAround([]rune(harmlessText(p.Source)), p.Column-1)
	before := line[:min(at, len(line))]
	meant := line[len(before):min(len(before)+max(p.Width, 1), len(line))]
	indent := strings.Map(func(r rune) rune { return lo.Ternary(r == '\t', '\t', ' ') }, string(before))
	return fmt.Sprintf("%s\n  %4d | %s\n       | %s%s", head, p.Line, string(line), indent, strings.Repeat("^", max(countColumns(string(meant)), 1)))
}

// textAround returns the part of a line around a position that fits on a screen, and the position in that part.
func textAround(line []rune, at int) ([]rune, int) {
	const most = 160
	if from := min(at, len(line)) - most/2; len(line) > most && at > most*3/4 {
		line, at = append([]rune("…"), line[from:]...), at-from+1
	}
	if len(line) > most {
		line = append(slices.Clip(line[:most]), '…')
	}
	return line, at
}

// harmlessText returns text without characters that would move a terminal's cursor.
func harmlessText(text string) string {
	return strings.Map(func(r rune) rune {
		return lo.Ternary(r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0, '·', r)
	}, text)
}

func countColumns(text string) int { return min(utf8.RuneCountInString(text), 80) }

// Error holds all problems of one or more files. It is never empty. Each file's problems are in text order.
type Error struct{ Problems []Problem }

// Error returns the problems, one below the other.
func (e *Error) Error() string {
	return strings.Join(lo.Map(e.Problems, func(p Problem, _ int) string { return p.String() }), "\n")
}

// Unwrap returns the causes of the problems.
func (e *Error) Unwrap() []error {
	return lo.FilterMap(e.Problems, func(p Problem, _ int) (error, bool) { return p.Cause, p.Cause != nil })
}

// Problems returns the problems of every *Error in err, which may join several errors, and its other errors.
func Problems(err error) (all []Problem, other []error) {
	if inFile, ok := err.(*Error); ok { //nolint:errorlint // err may be one of several joined errors
		return inFile.Problems, nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			problems, more := Problems(one)
			all, other = append(all, problems...), append(other, more...)
		}
		return all, other
	}
	if inFile, ok := errors.AsType[*Error](err); ok {
		return inFile.Problems, nil
	}
	if err != nil {
		other = []error{err}
	}
	return nil, other
}

// sortProblems sorts the problems by file position.
func sortProblems(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return problems
}
