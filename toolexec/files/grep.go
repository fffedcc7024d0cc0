package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// GrepArgs are the arguments of Grep.
type GrepArgs struct {
	Pattern    string `json:"pattern" jsonschema:"the regular expression (RE2) that a line must match somewhere"`
	Path       string `json:"path,omitempty" jsonschema:"the file or directory to search; the root if left out"`
	Glob       string `json:"glob,omitempty" jsonschema:"search only files whose name, or path from the root if it has a slash, matches; such as *.go"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"letter case does not count"`
	Context    int    `json:"context,omitempty" jsonschema:"how many lines to show before and after each match, 20 at most"`
	MaxMatches int    `json:"max_matches,omitempty" jsonschema:"how many matching lines to show at most"`
}

// Match is a line that matched.
type Match struct {
	// Path is the file, relative to the root, and Line the line in it, counted from 1.
	Path string
	Line int
	// Text is the line. For a long line, it is the part around the match.
	Text string
	// Before and After are the requested lines around the match that do not belong to another match.
	Before, After []string
}

// Matches is the result of a search.
type Matches struct {
	// Matches are the matches that fit into an answer, in the order of paths and lines. More is the number of further
	// matches.
	Matches []Match
	More    int
	// Files is the number of files that were searched.
	Files int
	// Notes describe what was not searched.
	Notes []string
}

// Grep searches files line by line.
func (t *Tree) Grep(ctx context.Context, in GrepArgs) (Matches, error) {
	const op = "grep"
	name, err := t.name(op, in.Path)
	if err != nil {
		return Matches{}, err
	}
	s, err := t.search(in)
	if err != nil {
		return Matches{}, systemError(op, in.Pattern, err)
	}
	w := t.walk()
	if info, statErr := t.root.Stat(name); statErr == nil && !info.IsDir() {
		if err = s.file(ctx, name); s.skippedBinary+s.skippedBig > 0 {
			err = problem(op, in.Path, "it is binary, or larger than %d bytes: it is not searched", t.config.MaxWriteBytes)
		}
	} else {
		err = w.below(ctx, name, 0, func(name string, d fs.DirEntry) error {
			if !d.Type().IsRegular() || !s.wanted(name) {
				return nil
			}
			if err := s.file(ctx, name); err != nil && ctx.Err() == nil {
				w.unreadable++
			}
			return lo.Ternary(s.left < 0, errEnough, nil)
		})
	}
	if err != nil && !errors.Is(err, errEnough) {
		return Matches{}, t.searchError(ctx, op, in.Path, name, err)
	}
	s.found.Notes = append(s.notes(), w.notes()...)
	return s.found, nil
}

var errEnough = errors.New("enough was searched")

// text returns the match's lines, each with a prefix: path:line: for the matching line, path-line- for a line around
// it.
func (m Match) text() string {
	var b strings.Builder
	tell := func(line int, mark, text string) {
		fmt.Fprintf(&b, "%s%s%d%s%s\n", showPath(m.Path), mark, line, mark, lo.Ternary(text == "", "", " "+text))
	}
	for i, text := range m.Before {
		tell(m.Line-len(m.Before)+i, "-", text)
	}
	tell(m.Line, ":", m.Text)
	for i, text := range m.After {
		tell(m.Line+1+i, "-", text)
	}
	return b.String()
}

// Content returns the matching lines, and a note about missing matches.
func (m Matches) Content() agent.Content {
	var b strings.Builder
	for i, match := range m.Matches {
		if len(match.Before)+len(match.After) > 0 && i > 0 {
			b.WriteString("--\n")
		}
		b.WriteString(match.text())
	}
	notes := m.Notes
	switch {
	case m.More > 0:
		notes = append([]string{fmt.Sprintf("and %d more: use a path, glob or pattern that matches fewer", m.More)}, notes...)
	case len(m.Matches) == 0:
		notes = append([]string{"nothing found in " + countNoun(m.Files, "file")}, notes...)
	case len(notes) == 0:
		return agent.TextContent(strings.TrimSuffix(b.String(), "\n"))
	}
	return withNotes(b.String(), notes...)
}
