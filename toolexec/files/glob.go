package files

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// GlobArgs are the arguments of Glob.
type GlobArgs struct {
	Pattern string `json:"pattern" jsonschema:"what the path must match, such as **/*.go"`
	Path    string `json:"path,omitempty" jsonschema:"the directory to search, which the pattern is relative to; the root if left out"`
}

// Glob finds files, links and other entries, except directories, whose paths match a pattern.
func (t *Tree) Glob(ctx context.Context, in GlobArgs) (Listing, error) {
	const op = "glob"
	if err := checkPattern(in.Pattern); err != nil {
		return Listing{}, systemError(op, in.Pattern, err)
	}
	dir, err := t.name(op, in.Path)
	if err != nil {
		return Listing{}, err
	}
	// The search begins at the path's part without *, so that siblings are not read.
	base, rest := ".", path.Clean(in.Pattern)
	if !strings.Contains(rest, `\`) {
		base, rest = doublestar.SplitPattern(rest)
	}
	dir = path.Join(dir, base)
	levels := 0
	if !strings.Contains(rest, "**") {
		levels = strings.Count(rest, "/") + 1
	}
	found, err := t.find(ctx, op, dir, levels, func(name string, d fs.DirEntry) bool {
		return !d.IsDir() && doublestar.MatchUnvalidated(rest, relativeName(dir, name))
	})
	if e, ok := errors.AsType[*Error](err); ok {
		e.Path = in.Pattern
	}
	return found, err
}

// relativeName returns the path from a directory to a name below it.
func relativeName(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

// checkPattern refuses patterns that are malformed, that lead out of the path, or that have too many alternatives. Each
// alternative of one group is tried with each alternative of the next.
func checkPattern(pattern string) error {
	slashed := filepath.ToSlash(pattern)
	switch {
	case pattern == "":
		return problem("", "", "the pattern is empty; **/* finds every file")
	case strings.HasPrefix(slashed, "/") || filepath.IsAbs(pattern) || slices.Contains(strings.Split(slashed, "/"), ".."):
		return problem("", "", "a pattern must be relative to the searched path, and must not contain ..")
	case !doublestar.ValidatePattern(pattern):
		return problem("", "", "invalid pattern: a bracket or brace is not closed, or a backslash ends it; \\ escapes the next character")
	}
	choices := 1
	for group := range strings.SplitSeq(pattern, "{") {
		choices *= 1 + strings.Count(group, ",")
	}
	if len(pattern) > 1000 || choices > 1000 {
		return problem("", "", "the pattern is too long or has too many alternatives: use several simpler ones")
	}
	return nil
}
