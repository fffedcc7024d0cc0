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
	maxMatches = 200   // maximum number of matches listed for a line, without links
	maxEntries = 5_000 // maximum number of directory entries read for a line
)

// file is a file of a shell line, or a file on disk that one of the line's patterns matches.
type file struct {
	bash.File

	l    *Language
	more bool // more files match than are listed
}

// exists reports whether the file may exist: it is false only if the disk has no such file.
func (f *file) exists() bool {
	path, err := f.l.absolute(f.Path)
	if err != nil || !f.Known {
		return true
	}
	_, err = os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// search finds the files that a line's patterns match.
type search struct {
	l       *Language
	listed  int
	entries int
}

// found is a path that a prefix of the pattern matches.
type found struct {
	path   string
	linked bool // a wildcard matched a link on the path
}

// filesOf returns a line's files, each pattern followed by the files that it matches now. A file name says more than
// the pattern, and a link in a folder may lead elsewhere.
func (l *Language) filesOf(list []bash.File) []file {
	s := search{l: l}
	out := make([]file, 0, len(list))
	for _, f := range list {
		one := file{File: f, l: l}
		if f.Word.Kind != bash.Pattern || !f.Known {
			out = append(out, one)
			continue
		}
		at := len(out)
		out = append(out, one)
		matches, whole := s.matches(f.Path, f.Word.Text)
		if f.Word.Split {
			whole = whole && !slices.ContainsFunc(matches, func(m found) bool { return strings.ContainsAny(m.path, " \t\n\\'\"*?[") })
		}
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

// dirsOf returns a command's directories, each pattern followed by the folders that it matches now.
func (l *Language) dirsOf(dirs []string) []string {
	var all []string
	for _, dir := range dirs {
		all = append(all, dir)
		if strings.ContainsAny(dir, "*?") {
			s := search{l: l}
			matches, _ := s.matches(dir, "")
			for _, m := range matches[:min(len(matches), maxMatches)] {
				all = append(all, m.path)
			}
		}
	}
	return all
}

// matches returns the files on disk that a pattern matches. Shells differ in what they match, so it may return too many. If
// a wildcard matches a link, the remaining names are appended to it whether or not such a file exists. The bool is false
// if the search is too expensive or impossible, so that files may be missing.
//
//nolint:gocognit // flat: one case for each kind of name
func (s *search) matches(pattern string, word string) ([]found, bool) {
	pattern, err := s.l.absolute(pattern)
	if err != nil {
		return nil, true // the caller reports the error when it resolves the path
	}
	at, behind, whole := []found{{}}, []found(nil), true
	wild, below := false, false
	for name, rest, more := strings.Cut(pattern, "/"); name != "" || more; name, rest, more = strings.Cut(rest, "/") {
		var next []found
		switch {
		case name == "" || name == ".":
			continue
		case strings.Count(name, "(") != strings.Count(name, ")"):
			return nil, false // the end of the group is unknown
		case name == "**":
			next, below = at, true
			for _, dir := range at {
				whole = s.tree(dir, &next) && whole
			}
		case strings.ContainsAny(name, `*?[(\`):
			for _, dir := range at {
				whole = s.folder(dir, name, below, &next) && whole
			}
			if !wild && word != "" && strings.IndexByte("*?[(@+!-", word[0]) >= 0 {
				// A program may take such a file's name for an option.
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

// folder adds a folder's entries that match a name in the pattern. Names that begin with a dot match only a pattern
// with a leading dot; in some shells that includes "." and "..". With all, other patterns match them, too, as in find.
func (s *search) folder(dir found, name string, all bool, out *[]found) bool {
	entries, whole := s.read(dir.path)
	wide := widenPattern(name)
	hidden := strings.IndexByte("*?[", name[0]) < 0 || strings.ContainsRune(name, '(')
	matches := func(name string) bool {
		ok, err := matchGlob(strings.ToLower(name), wide)
		whole = whole && err == nil
		return ok && (hidden || name[0] != '.' || all && name != "..")
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

// widenPattern returns a lower-case pattern whose only wildcard is * and that matches everything that the name
// matches in any shell. Classes and characters depend on the shell and the locale.
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

// tree adds all entries below a folder. It lists links but does not follow them.
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

// read returns a folder's entries; none if the path is not a folder.
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
