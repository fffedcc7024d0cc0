package condition

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

const (
	maxPath  = 4096
	maxLinks = 40
)

// pathFunctions returns the functions that work with paths on this machine. Functions that only split the text do not
// read the disk.
func (l *Language) pathFunctions() []Function {
	plain := func(name string, of func(string) string) Function {
		return onText(name, cel.StringType, func(p string) (ref.Val, error) { return types.String(of(p)), nil })
	}
	resolve := Function{
		Name: "path.resolve", Cost: 200,
		Overloads: []Overload{{[]*cel.Type{cel.StringType}, cel.StringType}},
		Call: func(_ Input, args ...ref.Val) ref.Val {
			p, _ := Text(args[0])
			resolved, err := l.real(p)
			return orError(types.String(resolved), err)
		},
	}
	within := asking("path.within", l.within)
	within.Cost = 100
	matches := asking("path.matches", l.pathMatches)
	matches.Cost = 100
	mayMatch := asking("path.mayMatch", l.pathMayMatch)
	mayMatch.Cost = 100
	return []Function{
		matching("glob", matchGlob),
		plain("path.clean", path.Clean), plain("path.base", path.Base), plain("path.dir", path.Dir), plain("path.ext", path.Ext),
		resolve, within, matches, mayMatch,
	}
}

// absolute returns the absolute path without cleaning it: "~" is the home directory, and a relative path starts at
// the workspace.
func (l *Language) absolute(p string) (string, error) {
	switch {
	case p == "":
		return "", errors.New("the path is empty")
	case len(p) > maxPath:
		return "", fmt.Errorf("the path %q is longer than %d bytes", shortenText(p), maxPath)
	case strings.ContainsRune(p, 0):
		return "", fmt.Errorf("the path %q contains a NUL byte", shortenText(p))
	case p == "~" || strings.HasPrefix(p, "~/"):
		if l.home == "" {
			return "", fmt.Errorf("the path %q: the home directory is unknown", shortenText(p))
		}
		return l.home + p[1:], nil
	case strings.HasPrefix(p, "~"):
		return "", fmt.Errorf("the path %q: the home directories of other users are unknown", shortenText(p))
	case path.IsAbs(p):
		return p, nil
	}
	base := l.workspace
	if !path.IsAbs(base) {
		var err error
		if base, err = filepath.Abs(base); err != nil {
			return "", err
		}
	}
	return base + "/" + p, nil
}

// real resolves links and ".." like the system. Names that do not exist yet stay as written.
func (l *Language) real(p string) (string, error) {
	p, err := l.absolute(p)
	if err != nil {
		return "", err
	}
	return follow(p)
}

func follow(p string) (string, error) {
	at, links := "/", 0
	for rest := p; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			at = next
			continue
		case err != nil:
			return "", fmt.Errorf("resolving the path: %w", err)
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("the path %q has too many links", shortenText(p))
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", fmt.Errorf("resolving the path: %w", err)
		}
		if path.IsAbs(target) {
			at = "/"
		}
		rest = target + "/" + rest
	}
	return at, nil
}

// within returns a function that reports whether the path is a directory or below it in both readings: some tools
// follow links before they resolve "..", some after.
func (l *Language) within(p string) func(dir string) (bool, error) {
	readings := sync.OnceValues(func() ([]string, error) { return l.readings(p) })
	return func(dir string) (bool, error) {
		top, err := l.real(dir)
		if err != nil {
			return false, err
		}
		both, err := readings()
		if err != nil {
			return false, err
		}
		for _, one := range both {
			if one != top && !strings.HasPrefix(one, strings.TrimSuffix(top, "/")+"/") {
				return false, nil
			}
		}
		return true, nil
	}
}

// readings resolves a path in both ways: links before "..", and ".." before links.
func (l *Language) readings(p string) ([]string, error) {
	whole, err := l.absolute(p)
	if err != nil {
		return nil, err
	}
	first, err := follow(whole)
	if err != nil {
		return nil, err
	}
	cleaned := path.Clean(whole)
	if !strings.Contains(whole, "..") {
		return []string{first}, nil
	}
	second, err := follow(cleaned)
	return []string{first, second}, err
}

// pathMatches returns a function that reports whether the path matches a pattern, as written or with its links
// resolved. Links at the beginning of the pattern are followed, too: a rule that names /var/run/x also covers /run/x.
func (l *Language) pathMatches(p string) func(pattern string) (bool, error) {
	forms := sync.OnceValues(func() ([]string, error) {
		whole, err := l.absolute(p)
		if err != nil {
			return nil, err
		}
		all, err := l.readings(p)
		return append(all, path.Clean(whole)), err
	})
	return func(pattern string) (bool, error) {
		all, err := forms()
		if err != nil {
			return false, err
		}
		patterns, err := l.patterns(pattern)
		if err != nil {
			return false, err
		}
		for _, one := range all {
			for _, pattern := range patterns {
				if ok, err := globbedPath(one, pattern); ok || err != nil {
					return ok, err
				}
			}
		}
		return false, nil
	}
}

// patterns returns the absolute pattern, and the same pattern with links resolved in the names before the first
// wildcard.
func (l *Language) patterns(pattern string) ([]string, error) {
	if strings.HasPrefix(pattern, "**") {
		return []string{pattern}, nil
	}
	pattern, err := l.absolute(pattern)
	if err != nil {
		return nil, err
	}
	pattern = path.Clean(pattern)
	plain := pattern
	if wild := strings.IndexAny(pattern, `*?[\`); wild >= 0 {
		plain = pattern[:strings.LastIndexByte(pattern[:wild], '/')+1]
	}
	resolved, err := follow(plain)
	if err != nil {
		return []string{pattern}, nil //nolint:nilerr // an unreadable path is not treated as a link
	}
	resolved = escaped.Replace(resolved)
	if rest := pattern[len(plain):]; rest != "" {
		resolved = strings.TrimSuffix(resolved, "/") + "/" + rest
	}
	if resolved == pattern {
		return []string{pattern}, nil
	}
	return []string{pattern, resolved}, nil
}

// escaped escapes the characters that are special in patterns.
var escaped = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)
