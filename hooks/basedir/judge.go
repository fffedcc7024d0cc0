package basedir

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/samber/lo"
)

// judge returns the problem with a path. It is empty if the path is allowed.
func (g guard) judge(path string) string {
	switch {
	case strings.ContainsFunc(path, unicode.IsControl):
		return "contains control characters and cannot be judged"
	case len(path) > 1<<16:
		return "is too long to be judged"
	}
	list, err := pathReadings(path)
	if err != nil {
		return fmt.Sprintf("cannot be judged: %v", err)
	}
	for _, reading := range lo.Compact(list) {
		abs, problem := g.absolute(reading)
		if problem != "" {
			return problem
		}
		for _, p := range lo.Uniq([]string{abs, filepath.Clean(abs)}) { // link/.. is the parent of the link's target, not of the link
			actual, err := resolveLinks(p)
			if err != nil {
				return fmt.Sprintf("cannot be judged: %v", err)
			}
			if !lo.SomeBy(g.dirs, func(dir string) bool { return isBelow(dir, actual) }) {
				return "is outside of " + g.dirs[0] + lo.Ternary(actual == filepath.Clean(abs), "", ": it leads to "+actual)
			}
		}
	}
	return ""
}

// pathReadings returns the ways in which tools read a path.
func pathReadings(path string) ([]string, error) {
	list := []string{path, strings.TrimFunc(path, isAround)}
	for _, p := range list {
		list = append(list, decodePercent(p))
	}
	for _, p := range list {
		if len(p) < 5 || !strings.EqualFold(p[:5], "file:") {
			continue
		}
		u, err := url.Parse(p)
		if err != nil {
			return nil, err
		}
		list = append(list, u.Path+u.Opaque) // file:path is valid, too
		if u.Host != "" {
			list = append(list, "//"+u.Host+u.Path)
		}
	}
	backslashes := lo.Map(list, func(p string, _ int) string { return strings.ReplaceAll(p, `\`, "/") })
	return lo.Uniq(append(list, backslashes...)), nil
}

// isAround reports whether some tools ignore a rune at a path's ends: any white space, a byte order mark, quotes.
func isAround(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\ufeff\u200b\"'`", r) }

var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// decodePercent decodes a path's valid percent escapes and keeps the invalid ones, as lenient decoders do.
func decodePercent(path string) string {
	return escape.ReplaceAllStringFunc(path, func(digits string) string {
		b, _ := hex.DecodeString(digits[1:])
		return string(b)
	})
}

// absolute makes a path absolute and keeps its . and .. elements.
func (g guard) absolute(path string) (abs, problem string) {
	slashed := filepath.ToSlash(path)
	first, rest, _ := strings.Cut(slashed, "/")
	switch {
	case first == "~":
		home, err := os.UserHomeDir()
		if err != nil {
			return "", "is in an unknown home directory"
		}
		return home + string(filepath.Separator) + filepath.FromSlash(rest), ""
	case strings.HasPrefix(first, "~"):
		return "", "may be in a home directory; begin it with ./ if it is not"
	case strings.HasPrefix(first, "$") || strings.HasPrefix(first, "%") && strings.Count(first, "%") > 1:
		return "", "begins with a variable and cannot be judged; begin it with ./ if that is its name"
	case filepath.IsAbs(path):
		return path, ""
	case strings.HasPrefix(slashed, "/") || filepath.VolumeName(path) != "":
		return "", "is neither relative nor absolute"
	}
	return g.dirs[0] + string(filepath.Separator) + path, ""
}

// resolveLinks follows the links in an absolute path's existing part, as the system does.
func resolveLinks(path string) (string, error) {
	parts := func(p string) []string { return strings.Split(filepath.ToSlash(p), "/") }
	top := filepath.VolumeName(path) + string(filepath.Separator)
	done, todo := top, parts(path[len(top)-1:])
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		done = filepath.Join(done, part)
		info, err := os.Lstat(done)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			continue
		}
		if strings.HasPrefix(done, "/proc/") { // /proc/self/cwd is another directory for the tool
			return "", errors.New("it leads through a link in /proc, which may lead elsewhere for the tool")
		}
		target, err := os.Readlink(done)
		if err != nil {
			return "", err
		}
		if links++; links > 100 {
			return "", errors.New("it leads through too many links")
		}
		done = filepath.Dir(done)
		if filepath.IsAbs(target) {
			done = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(done)-1:]
		}
		todo = append(parts(target), todo...)
	}
	return done, nil
}

// isBelow reports whether a path without links is a directory or below it.
func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// isURL reports whether a path is a URL and can be ignored. A text with .. elements cannot be ignored, because a tool
// that reads a:/../b as a path accesses b.
func isURL(path string) bool {
	u, err := url.Parse(path)
	return err == nil && len(u.Scheme) > 1 && strings.Contains(path, "://") && !slices.Contains(strings.Split(decodePercent(path), "/"), "..")
}
