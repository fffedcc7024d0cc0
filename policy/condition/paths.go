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

// pathFunctions returns functions that work with paths of this machine. Those that take text apart do not look at the disk.
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
	within.Cost = 400
	matches := asking("path.matches", l.pathMatches)
	matches.Cost = 400
	return []Function{
		matching("glob", matchGlob),
		plain("path.clean", path.Clean), plain("path.base", path.Base), plain("path.dir", path.Dir), plain("path.ext", path.Ext),
		resolve, within, matches,
	}
}

// absolute returns the path from the root: "~" is the home directory, and what is relative is so to the workspace. It is not
// cleaned.
func (l *Language) absolute(p string) (string, error) {
	switch {
	case p == "":
		return "", errors.New("the path is empty")
	case len(p) > maxPath:
		return "", fmt.Errorf("the path %q is longer than %d bytes", shortenText(p), maxPath)
	case strings.ContainsRune(p, 0):
		return "", fmt.Errorf("the path %q has a NUL in it", shortenText(p))
	case p == "~" || strings.HasPrefix(p, "~/"):
		if l.home == "" {
			return "", fmt.Errorf("the path %q is in a home directory that is not known", shortenText(p))
		}
		return l.home + p[1:], nil
	case strings.HasPrefix(p, "~"):
		return "", fmt.Errorf("the path %q is in the home directory of another user, and where that is, is not known", shortenText(p))
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

// real returns where a path leads: links and ".." are followed as the system follows them. What is not there yet is taken as
// it is written.
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
			return "", fmt.Errorf("looking where the path leads: %w", err)
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("the path %q has too many links", shortenText(p))
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", fmt.Errorf("looking where the path leads: %w", err)
		}
		if path.IsAbs(target) {
			at = "/"
		}
		rest = target + "/" + rest
	}
	return at, nil
}

// within reports whether a path is a directory or below it, whichever way it is read: some tools follow links before they
// take ".." away, and some after.
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

// readings returns where a path leads, and where it leads when ".." is taken away first.
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

// pathMatches reports whether a path matches a pattern, as it is written or where it leads. A link at the beginning of the
// pattern stands for what is behind it, too: a rule that names /var/run/x means /run/x.
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

// patterns returns a pattern from the root, and the same with the links followed in the names before the first wildcard.
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
		return []string{pattern}, nil //nolint:nilerr // what cannot be looked at is no link
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

// escaped takes the meaning from what would have one in a pattern.
var escaped = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)
