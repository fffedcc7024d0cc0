package condition

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/policy/bash"
)

const (
	maxMatches = 200   // that are listed for a line; links do not count
	maxEntries = 5_000 // of folders that are looked through for a line
)

// file is a file of a shell line, or one that a pattern of the line matches on the disk.
type file struct {
	bash.File

	more bool // more files match than are listed
}

// search looks for what the patterns of a line match.
type search struct {
	l       *Language
	listed  int
	entries int
}

// found is a path on the way to what a pattern matches.
type found struct {
	path   string
	linked bool // a wildcard matched a link on the way
}

// filesOf returns the files of a line, each pattern followed by what it matches now. A link in a folder leads elsewhere, and a
// name says more than the pattern that stands for it.
func (l *Language) filesOf(list []bash.File) []file {
	s := search{l: l}
	out := make([]file, 0, len(list))
	for _, f := range list {
		one := file{File: f}
		if f.Word.Kind != bash.Pattern || !f.Known {
			out = append(out, one)
			continue
		}
		at := len(out)
		out = append(out, one)
		matches, whole := s.matches(f.Path, f.Word.Text)
		if !whole {
			out[at].Known, out[at].more = false, true
		}
		for _, m := range matches {
			switch {
			case m.linked:
			case s.listed >= maxMatches:
				out[at].more = true
				continue
			default:
				s.listed++
			}
			one.Path = m.path
			out = append(out, one)
		}
	}
	return out
}

// matches returns what a pattern matches on the disk, or rather more: shells differ in what matches. Where a wildcard matches
// a link, what the rest of the pattern names behind it is among it, whether it is there or not. It is not the whole if
// that is too much to look through, or cannot be.
//
//nolint:gocognit // flat: one case for each kind of name
func (s *search) matches(pattern string, word string) ([]found, bool) {
	pattern, err := s.l.absolute(pattern)
	if err != nil {
		return nil, true // the caller that asks where the path leads is told
	}
	at, behind, whole := []found{{}}, []found(nil), true
	wild := false
	for name, rest, more := strings.Cut(pattern, "/"); name != "" || more; name, rest, more = strings.Cut(rest, "/") {
		var next []found
		switch {
		case name == "" || name == ".":
			continue
		case strings.Count(name, "(") != strings.Count(name, ")"):
			return nil, false // who knows where it ends
		case name == "**":
			next = at
			for _, dir := range at {
				whole = s.tree(dir, &next) && whole
			}
		case strings.ContainsAny(name, `*?[(\`):
			for _, dir := range at {
				whole = s.folder(dir, name, &next) && whole
			}
			if !wild && word != "" && strings.IndexByte("*?[(@+!-", word[0]) >= 0 {
				// A program may take the name of such a file for an option.
				whole = whole && !slices.ContainsFunc(next, func(f found) bool { return strings.HasPrefix(baseOf(f.path), "-") })
			}
		case !wild:
			at[0].path += "/" + name
			continue
		default:
			for _, dir := range at {
				dir.path += "/" + name
				if info, err := os.Lstat(dir.path); err == nil {
					dir.linked = dir.linked || info.Mode()&fs.ModeSymlink != 0
					next = append(next, dir)
				}
			}
		}
		at, wild = next, true
		for _, f := range next {
			if f.linked && rest != "" {
				behind = append(behind, found{f.path + "/" + rest, true})
			}
		}
		if len(behind) > maxEntries {
			return nil, false
		}
	}
	if !wild {
		return nil, true
	}
	return lo.UniqBy(append(at, behind...), func(f found) string { return f.path }), whole
}

func baseOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// folder adds what a name of a pattern matches in a folder. Names that begin with a dot are only matched by a dot, "." and
// ".." in some shells.
func (s *search) folder(dir found, name string, out *[]found) bool {
	entries, whole := s.read(dir.path)
	wide := widenPattern(name)
	hidden := strings.IndexByte("*?[", name[0]) < 0 || strings.ContainsRune(name, '(')
	matches := func(name string) bool {
		ok, err := matchGlob(strings.ToLower(name), wide)
		whole = whole && err == nil
		return ok && (hidden || name[0] != '.')
	}
	for _, e := range entries {
		if matches(e.Name()) {
			*out = append(*out, found{dir.path + "/" + e.Name(), dir.linked || e.Type()&fs.ModeSymlink != 0})
		}
	}
	if matches("..") {
		*out = append(*out, found{dir.path + "/..", true})
	}
	return whole
}

// widenPattern returns a name of a pattern with no wildcard but * in it, that matches all that the name does in any shell, in lower
// case. What a class is, and what a character, is a matter of shell and locale.
func widenPattern(name string) string {
	for _, pair := range []string{"()", "[]"} {
		open, shut := strings.IndexByte(name, pair[0]), strings.LastIndexByte(name, pair[1])
		if open < 0 || shut < open {
			continue
		}
		if pair[0] == '(' { // ?(a|b)
			open = max(open-1, 0)
		}
		return widenPattern(name[:open]) + "*" + widenPattern(name[shut+1:])
	}
	return strings.ToLower(strings.NewReplacer("?", "*", "[", "*", `\`, "*").Replace(name))
}

// tree adds all that is below a folder. Links are in it, and not followed.
func (s *search) tree(dir found, out *[]found) bool {
	entries, whole := s.read(dir.path)
	for _, e := range entries {
		below := found{dir.path + "/" + e.Name(), dir.linked || e.Type()&fs.ModeSymlink != 0}
		*out = append(*out, below)
		if e.IsDir() {
			whole = s.tree(below, out) && whole
		}
	}
	return whole
}

// read returns what is in a folder. What is none has nothing in it.
func (s *search) read(dir string) ([]fs.DirEntry, bool) {
	if s.entries > maxEntries {
		return nil, false
	}
	dir += "/"
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	defer folder.Close()
	entries, err := folder.ReadDir(maxEntries - s.entries + 1)
	s.entries += len(entries)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, s.entries <= maxEntries && (err == nil || errors.Is(err, io.EOF))
}
