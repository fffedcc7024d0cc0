package files

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/samber/lo"
)

const (
	maxContext = 20        // lines around a match
	maxColumn  = 400       // bytes shown of a line
	maxSearch  = 256 << 20 // bytes that one call searches
	maxPattern = 1000      // bytes of a pattern
	longLine   = 1 << 10   // a longer line, in bytes, can be interrupted by ctx
)

// search is the state of one grep call.
type search struct {
	tree          *Tree
	expression    *regexp.Regexp
	glob          string
	around        int
	most          int // maximum number of matches
	bytes         int // size of the matches
	left          int // bytes still to be searched
	skippedBinary int
	skippedBig    int
	found         Matches
}

func (t *Tree) search(in GrepArgs) (*search, error) {
	switch {
	case in.Pattern == "":
		return nil, problem("", "", "the pattern is empty")
	case len(in.Pattern) > maxPattern:
		return nil, problem("", "", "the pattern is longer than %d bytes: use several simpler ones", maxPattern)
	}
	expression, err := regexp.Compile(lo.Ternary(in.IgnoreCase, "(?i)", "") + in.Pattern)
	switch {
	case err != nil:
		return nil, problem("", "", "invalid regular expression (RE2 syntax): %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	case in.Context < 0 || in.MaxMatches < 0:
		return nil, problem("", "", "context and max_matches are not negative")
	}
	if in.Glob != "" {
		if err := checkPattern(in.Glob); err != nil {
			return nil, err
		}
	}
	most := t.config.MaxMatches
	if in.MaxMatches > 0 {
		most = min(most, in.MaxMatches)
	}
	return &search{
		tree: t, expression: expression, glob: in.Glob, around: min(in.Context, maxContext),
		most: most, bytes: t.config.MaxReadBytes, left: maxSearch,
	}, nil
}

func (s *search) wanted(name string) bool {
	if s.glob == "" {
		return true
	}
	return doublestar.MatchUnvalidated(s.glob, lo.Ternary(strings.Contains(s.glob, "/"), name, path.Base(name)))
}

// file searches one file.
func (s *search) file(ctx context.Context, name string) error {
	f, info, err := openIn(s.tree.root, name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() > int64(s.tree.config.MaxWriteBytes) {
		s.skippedBig++
		return nil
	}
	all, err := io.ReadAll(io.LimitReader(until{ctx, f}, info.Size()))
	if err != nil {
		return err
	}
	if isBinary(all[:min(len(all), 8000)]) {
		s.skippedBinary++
		return nil
	}
	s.found.Files++
	s.left -= len(all)
	return s.lines(ctx, name, strings.Split(strings.TrimSuffix(string(all), "\n"), "\n"))
}

func (s *search) lines(ctx context.Context, name string, lines []string) error {
	told := -1 // the last line in the answer
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
		at := s.find(ctx, lines[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if at == nil {
			continue
		}
		if len(s.found.Matches) == s.most || s.bytes <= 0 {
			s.found.More++
			continue
		}
		m := Match{Path: name, Line: i + 1, Text: windowAround(lines[i], at[0])}
		for j := max(told+1, i-s.around); j < i; j++ {
			m.Before = append(m.Before, windowAround(lines[j], 0))
		}
		told = i
		for j := i + 1; j <= min(i+s.around, len(lines)-1) && s.find(ctx, strings.TrimSuffix(lines[j], "\r")) == nil; j++ {
			m.After = append(m.After, windowAround(strings.TrimSuffix(lines[j], "\r"), 0))
			told = j
		}
		s.bytes -= len(m.text())
		s.found.Matches = append(s.found.Matches, m)
	}
	return nil
}

// find returns the match's position in a line; nil if there is none. An expression can take microseconds for each byte,
// so the search in a long line stops when ctx is done.
func (s *search) find(ctx context.Context, line string) []int {
	if len(line) <= longLine {
		return s.expression.FindStringIndex(line)
	}
	return s.expression.FindReaderIndex(&runes{ctx: ctx, r: strings.NewReader(line)})
}

// runes reads a line's runes until ctx is done.
type runes struct {
	ctx  context.Context //nolint:containedctx // used for the search in one line
	r    *strings.Reader
	read int
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.read++; r.read%64 == 0 && r.ctx.Err() != nil {
		return 0, 0, r.ctx.Err()
	}
	return r.r.ReadRune()
}

// windowAround returns the part of a line to show: the whole line or, if it is long, the part around a position.
func windowAround(line string, at int) string {
	from := max(0, min(at-maxColumn/4, len(line)-maxColumn))
	to := min(len(line), from+maxColumn)
	for from > 0 && from < len(line) && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to++
	}
	text := strings.ToValidUTF8(strings.ReplaceAll(line[from:to], "\x00", "�"), "�")
	return lo.Ternary(from > 0, "…", "") + text + lo.Ternary(to < len(line), "…", "")
}

func (s *search) notes() []string {
	var notes []string
	if s.left < 0 {
		notes = append(notes, fmt.Sprintf("stopped after searching %d MiB: use a path or a glob", maxSearch>>20))
	}
	if s.skippedBig > 0 {
		notes = append(notes, fmt.Sprintf("%s of more than %d bytes not searched", countNoun(s.skippedBig, "file"), s.tree.config.MaxWriteBytes))
	}
	if s.skippedBinary > 0 {
		notes = append(notes, countNoun(s.skippedBinary, "binary file")+" not searched")
	}
	return notes
}
