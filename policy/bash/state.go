package bash

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// value describes a variable's known value.
type value struct {
	text     string   // with a mark for each unknown part
	pattern  string   // text is this pattern or matches it; empty if unknown
	split    bool     // blanks in the names that match the pattern may have changed the text
	list     []string // the elements of an array
	array    bool
	exported bool
	odd      bool // readonly, integer, a reference …: an assignment does not simply set it
	number   bool // the variable is a number or empty, whatever text says
	integer  bool // bash evaluates each assigned value as arithmetic
	assoc    bool // an associative array, whose indexes are not evaluated
}

// function holds the declarations of a function name.
type function struct {
	bodies []*syntax.FuncDecl // if there are several, any of them may be in effect
	from   []source
	maybe  bool // the function may also be undeclared
}

// state describes the shell at one moment. Copying a state is cheap: its maps are copied only before a change.
type state struct {
	vars     map[string]value
	funcs    map[string]function
	aliases  map[string]string
	shared   bool // another state shares the maps
	home     string
	dirs     []string // the possible working directories; nil means unknown
	cdOK     []string // the working directories if the previous cd succeeded
	cdFail   []string
	params   []Word // $1 …
	noParams bool   // $1 … are unknown
	noFields bool   // IFS does not have its default value
	locals   map[string]value
	posix    bool // the shell may lack features of bash
	lastPipe bool
}

// fork returns a copy of the state, for a subshell or a branch. Both copies share their maps until one of them calls
// own.
func (s *state) fork() *state {
	s.shared = true
	f := *s
	f.cdOK, f.cdFail = nil, nil
	return &f
}

// own copies the state's maps if another state shares them. Every change to a map calls it first.
func (s *state) own() {
	if s.shared {
		s.vars, s.funcs, s.aliases, s.shared = maps.Clone(s.vars), maps.Clone(s.funcs), maps.Clone(s.aliases), false
	}
}

// size returns the cost of a copy.
func (s *state) size() int {
	if !s.shared {
		return 0
	}
	return len(s.vars) + len(s.funcs) + len(s.aliases)
}

// set assigns to a variable. The variable keeps its attributes (declare -i). A variable that assignment does not
// simply set, such as a readonly one, becomes unknown.
func (s *state) set(name string, v value) {
	s.own()
	if s.vars == nil {
		s.vars = map[string]value{}
	}
	old, found := s.vars[name]
	v.exported = v.exported || old.exported
	v.integer, v.assoc = v.integer || old.integer, v.assoc || old.assoc
	if old.odd || v.odd || isDynamic(name) {
		number := v.isNumber() && (!found || !old.odd || old.isNumber())
		v = value{text: unknown, odd: old.odd || v.odd, exported: v.exported, number: number || v.integer, integer: v.integer, assoc: v.assoc}
	}
	switch name {
	case "IFS":
		s.noFields = v.text != " \t\n"
	case "CDPATH":
		s.dirs = nil
	case "POSIXLY_CORRECT":
		s.posix = true
	}
	s.vars[name] = v
}

// isDynamic reports whether bash itself sets the variable.
func isDynamic(name string) bool {
	switch name {
	case "UID", "EUID", "PPID", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "GROUPS", "DIRSTACK", "FUNCNAME", "HISTCMD",
		"PIPESTATUS", "OLDPWD", "EPOCHSECONDS", "EPOCHREALTIME", "SHELLOPTS", "OPTIND", "OPTARG", "REPLY", "COLUMNS", "LINES", "_":
		return true
	}
	return strings.HasPrefix(name, "BASH")
}

// lookup returns the value of a variable. A variable that the line and Options.Env do not set is unknown.
func (s *state) lookup(name string) value {
	if v, found := s.vars[name]; found {
		return v
	}
	switch name {
	case "HOME":
		return value{text: s.home}
	case "IFS":
		if !s.noFields {
			return value{text: " \t\n"}
		}
	case "PWD":
		if len(s.dirs) == 1 && path.IsAbs(s.dirs[0]) {
			return value{text: s.dirs[0]}
		}
	}
	return value{text: unknown}
}

// forget makes everything unknown that unknown shell text may change.
func (s *state) forget() {
	s.own()
	for name, v := range s.vars {
		if v.integer || v.assoc || v.odd {
			s.vars[name] = value{text: unknown, odd: true, integer: v.integer, assoc: v.assoc}
		} else {
			s.vars[name] = value{text: unknown}
		}
	}
	for name, f := range s.funcs {
		f.maybe = true
		s.funcs[name] = f
	}
	s.home, s.dirs, s.params, s.noParams, s.noFields, s.cdOK, s.cdFail = unknown, nil, nil, true, true, nil, nil
}

// join sets s to a state that is valid whether s or other is the actual state.
//
//nolint:gocognit // flat: one loop for each part of a state
func (s *state) join(other *state) {
	s.cdOK, s.cdFail = nil, nil
	s.dirs = joinDirs(s.dirs, other.dirs)
	s.noFields = s.noFields || other.noFields
	s.noParams = s.noParams || other.noParams || !slices.EqualFunc(s.params, other.params, func(a, b Word) bool { return a.raw == b.raw })
	s.lastPipe = s.lastPipe || other.lastPipe
	if s.home != other.home {
		s.home = unknown
	}
	s.own()
	for name, v := range s.vars {
		o := other.lookup(name)
		if v.text != o.text || v.pattern != o.pattern || v.array != o.array || !slices.Equal(v.list, o.list) {
			v = value{text: unknown, number: v.isNumber() && other.numberIn(name), integer: v.integer, assoc: v.assoc}
		}
		v.odd, v.exported = v.odd || o.odd, v.exported && o.exported
		v.integer, v.assoc = v.integer || o.integer, v.assoc && o.assoc
		s.vars[name] = v
	}
	for name, v := range other.vars {
		if _, found := s.vars[name]; found {
			continue
		}
		if o := s.lookup(name); v.array || v.text != o.text || v.pattern != o.pattern {
			v = value{text: unknown, odd: v.odd, number: v.isNumber() && s.numberIn(name), integer: v.integer}
		}
		v.assoc = false
		if s.vars == nil {
			s.vars = map[string]value{}
		}
		v.exported = false
		s.vars[name] = v
	}
	for name, f := range s.funcs {
		if o := other.funcs[name]; !slices.Equal(f.bodies, o.bodies) {
			s.funcs[name] = f.or(o)
		}
	}
	for name, f := range other.funcs {
		if _, found := s.funcs[name]; !found {
			if s.funcs == nil {
				s.funcs = map[string]function{}
			}
			s.funcs[name] = f.or(function{})
		}
	}
	for name, text := range other.aliases {
		if s.aliases[name] != text {
			if s.aliases == nil {
				s.aliases = map[string]string{}
			}
			s.aliases[name] = unknown
		}
	}
}

// or returns a function with the bodies of both.
func (f function) or(g function) function {
	both := function{bodies: slices.Clone(f.bodies), from: slices.Clone(f.from), maybe: f.maybe || g.maybe || len(f.bodies)*len(g.bodies) == 0}
	for i, body := range g.bodies {
		if !slices.Contains(both.bodies, body) {
			both.bodies, both.from = append(both.bodies, body), append(both.from, g.from[i])
		}
	}
	return both
}

// maxDirs is the maximum number of possible directories that are followed.
const maxDirs = 4

// joinDirs returns the possible directories after either of two branches. Nil means unknown; if either is unknown, so
// is the result.
func joinDirs(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	if slices.Equal(a, b) {
		return a
	}
	both := slices.Clone(a)
	for _, dir := range b {
		if !slices.Contains(both, dir) {
			both = append(both, dir)
		}
	}
	if len(both) > maxDirs {
		return nil
	}
	return both
}

// inDir returns a path relative to a directory.
func inDir(dir, name string) string {
	if strings.HasPrefix(name, "/") || name == "~" || strings.HasPrefix(name, "~/") {
		return tidyPath(name)
	}
	if dir == "." || dir == "" {
		return tidyPath(name)
	}
	return tidyPath(dir + "/" + name)
}

// tidyPath cleans a path, but keeps a ".." after a name, because the name may be a link.
func tidyPath(name string) string {
	if name == "" {
		return "."
	}
	seen := false
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == ".." && seen:
			return name
		case part != ".." && part != "." && part != "":
			seen = true
		}
	}
	return namedPath(path.Clean(name), name)
}

// namedPath returns the cleaned path. It ensures that "~" in a file name is not taken for the home directory.
func namedPath(clean, name string) string {
	if strings.HasPrefix(clean, "~") && !strings.HasPrefix(name, "~") {
		return "./" + clean
	}
	return clean
}

// enter changes to the target directory. The target may be one of several directories, or may not exist.
func (s *state) enter(target Word) {
	old := s.dirs
	if target.here {
		target.Text = "./" + target.Text
	}
	var ok []string
	if target.Kind == Literal && target.Text != "-" || target.Kind == Pattern && isSoundPattern(target.Text) {
		if path.IsAbs(target.Text) || target.Text == "~" || strings.HasPrefix(target.Text, "~/") {
			ok = []string{tidyPath(target.Text)}
		} else {
			for _, dir := range old {
				ok = joinDirs(orEmpty(ok), []string{cdTo(dir, target.Text)})
			}
		}
	}
	s.dirs = joinDirs(ok, old)
	s.cdOK, s.cdFail = orEmpty(ok), orEmpty(old)
	if ok == nil {
		s.cdOK = []string{}
	}
}

// cdTo returns the directory after cd target in dir: cd ../b in ~/a is ~/b.
func cdTo(dir, target string) string {
	if strings.HasPrefix(dir, "~") && strings.Contains(target, "..") {
		if joined := path.Clean(strings.TrimPrefix(dir, "~") + "/" + target); strings.HasPrefix(dir, "~/") && !strings.Contains(target, "../..") {
			return path.Clean("~" + joined)
		}
		return dir + "/" + target
	}
	return inDir(dir, target)
}

// orEmpty returns an empty list for nil, so that "no directory is possible" differs from "unknown".
func orEmpty(dirs []string) []string {
	if dirs == nil {
		return []string{}
	}
	return dirs
}
