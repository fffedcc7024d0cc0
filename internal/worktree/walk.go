package worktree

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Walk calls visit with each link, and each file that git does not ignore, below a directory. Names are relative to
// the directory, with slashes. Submodules and nested repositories have their own ignore files. Outside of
// repositories no file is ignored. Walk skips directories for which skip returns true, and stops when visit returns
// false. It also skips directories and files that it cannot read.
func Walk(dir string, skip func(name string) bool, visit func(name string, info fs.FileInfo) bool) {
	w := walker{skip: skip, visit: visit, user: readUserRules()}
	at := directory{dir: dir}
	if top, below, ok := repositoryAbove(dir); ok {
		at = w.enter(directory{dir: top})
		for _, name := range below {
			at = at.child(name, at.dir)
			at.rules = append(slices.Clip(at.rules), readRules(filepath.Join(at.dir, ignoreFile), at.inRepo))
		}
		at.dir, at.name = dir, ""
	}
	w.visitBelow(at)
}

const ignoreFile = ".gitignore"

type walker struct {
	skip  func(name string) bool
	visit func(name string, info fs.FileInfo) bool
	user  rules // the user's rules for all repositories
}

// directory is one on the walk's current path.
type directory struct {
	dir  string // the path of the directory
	name string // the path relative to the start; empty for the start
	repo *repository
	// inRepo is the path relative to the repository's top; empty for the top.
	inRepo string
	// rules are the rules of this directory and its parents in the repository, outermost first.
	rules []rules
	// ignored is set if the directory is ignored: only its tracked files count.
	ignored bool
}

// child returns a subdirectory. It does not read the subdirectory's ignore file.
func (at directory) child(name, dir string) directory {
	below := at
	below.dir, below.name, below.inRepo = filepath.Join(dir, name), path.Join(at.name, name), path.Join(at.inRepo, name)
	below.ignored = at.ignores(below.inRepo, true)
	return below
}

// ignores reports whether git ignores an untracked file or directory in at.
func (at directory) ignores(inRepo string, isDir bool) bool {
	if at.ignored || at.repo == nil {
		return at.ignored
	}
	for _, r := range slices.Backward(at.rules) {
		if ignored, matched := r.match(inRepo, isDir); matched {
			return ignored
		}
	}
	return false
}

// enter opens the repository whose top is at's directory. Without a repository, it returns at unchanged.
func (w *walker) enter(at directory) directory {
	r, exclude, ok := openRepository(at.dir)
	if ok {
		at.repo, at.inRepo, at.ignored, at.rules = r, "", false, []rules{w.user, exclude}
	}
	if at.repo != nil {
		at.rules = append(slices.Clip(at.rules), readRules(filepath.Join(at.dir, ignoreFile), at.inRepo))
	}
	return at
}

// visitBelow visits the files below a directory, and reports whether to continue the walk.
func (w *walker) visitBelow(at directory) bool {
	entries, _ := os.ReadDir(at.dir) // unreadable directories are skipped
	for _, e := range entries {
		name, inRepo := path.Join(at.name, e.Name()), path.Join(at.inRepo, e.Name())
		switch {
		case e.Name() == gitFolder:
		case e.IsDir():
			below := at.child(e.Name(), at.dir)
			if w.skip(name) || below.ignored && !at.repo.hasBelow(inRepo) {
				continue
			}
			if !w.visitBelow(w.enter(below)) {
				return false
			}
		case at.ignores(inRepo, false) && !at.repo.has(inRepo):
		default:
			if info, err := e.Info(); err == nil && !w.visit(name, info) {
				return false
			}
		}
	}
	return true
}

// repositoryAbove returns the top of the repository that contains a directory, and the names of the directories from
// there.
func repositoryAbove(dir string) (top string, below []string, ok bool) {
	dir, err := filepath.EvalSymlinks(dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", nil, false
	}
	for top = dir; ; top = filepath.Dir(top) {
		if _, isTop := gitDir(top); isTop {
			relative, err := filepath.Rel(top, dir)
			if err == nil && relative != "." {
				below = strings.Split(filepath.ToSlash(relative), "/")
			}
			return top, below, err == nil
		}
		if filepath.Dir(top) == top {
			return "", nil, false
		}
	}
}
