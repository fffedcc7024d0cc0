package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"
)

// Position is a place in a text. Both count from one, columns in characters. The zero
// Position is nowhere.
type Position struct{ Line, Column int }

// Problem is one mistake in a file.
type Problem struct {
	File string
	Position
	// Text says what is wrong and what would be right.
	Text string
	// Source is the line of the file, and Width how many of its characters from the
	// column on are meant.
	Source string
	Width  int
	// Cause is the error that the problem tells of; nil where there is none.
	Cause error
}

// String returns the place and the text on one line, then the line of the file with a mark
// below what is meant. It has nothing that would move a terminal's cursor.
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

// textAround returns as much of a line as is shown, the place in it among it, and where that is then.
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

// harmlessText returns a text without what would move a terminal's cursor.
func harmlessText(text string) string {
	return strings.Map(func(r rune) rune {
		return lo.Ternary(r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0, '·', r)
	}, text)
}

func countColumns(text string) int { return min(utf8.RuneCountInString(text), 80) }

// Error is all that is wrong with one file or several: never empty, each file's
// problems in the order of its text.
type Error struct{ Problems []Problem }

// Error returns every problem, one below the other.
func (e *Error) Error() string {
	return strings.Join(lo.Map(e.Problems, func(p Problem, _ int) string { return p.String() }), "\n")
}

// Unwrap returns the causes that problems have.
func (e *Error) Unwrap() []error {
	return lo.FilterMap(e.Problems, func(p Problem, _ int) (error, bool) { return p.Cause, p.Cause != nil })
}

// sortProblems returns the problems in the order of the file.
func sortProblems(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return problems
}
