package basedir

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
)

// visit walks the arguments, calls see for each path, and replaces the path with the result, unless it is a member's
// name. at is the location of v, and path reports whether strings in v are paths.
func (g guard) visit(at string, v any, path bool, see func(at, path string, name bool) string) any {
	join := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	switch v := v.(type) {
	case string:
		if path {
			return see(at, v, false)
		}
	case []any:
		for i := range v {
			v[i] = g.visit(join(strconv.Itoa(i)), v[i], path, see)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if path { // {"files": {"a.txt": …}}
				see(join(name), name, true)
			}
			isFilesName := path && g.Fields == nil && strings.EqualFold(name, "name") // {"file": {"name": "a.txt"}}
			v[name] = g.visit(join(name), v[name], isFilesName || g.isPath(name), see)
		}
	}
	return v
}

// isPath reports whether a member with that name holds a path.
func (g guard) isPath(name string) bool {
	if g.Fields != nil {
		return slices.ContainsFunc(g.Fields, func(field string) bool { return strings.EqualFold(field, name) }) // many tools ignore the case of member names
	}
	words := lo.Words(name) // of file_path, filePath, FILE-PATH
	words = lo.FilterMap(words, func(word string, _ int) (string, bool) {
		word = strings.ToLower(strings.Trim(word, "0123456789"))
		return word, word != ""
	})
	if len(words) > 1 && words[len(words)-1] == "name" {
		words = words[:len(words)-1]
	}
	last, _ := lo.Last(words)
	if slices.Contains(noPaths, last) {
		return false
	}
	return slices.ContainsFunc(pathWords, func(word string) bool { return isWord(last, word) }) ||
		slices.ContainsFunc(endings, func(end string) bool { return strings.HasSuffix(last, end) || strings.HasSuffix(last, end+"s") })
}

// isWord reports whether one word is the other, or its plural.
func isWord(given, word string) bool {
	return given == word || given == word+"s" || given == strings.TrimSuffix(word, "y")+"ies"
}

// endings lists the endings of compound words that name paths: outfile, tmpdir, logpath.
var endings = []string{"path", "file", "filename", "dir", "directory", "folder"}

// noPaths lists words with such an ending that name something else.
var noPaths = []string{"profile", "profiles", "xpath", "jsonpath"}

// pathWords lists the words, in the singular, in which the names of path members end.
var pathWords = []string{
	"path", "file", "filename", "pathname", "dir", "dirname", "directory", "folder", "cwd", "workspace", "root",
	"source", "src", "destination", "dest", "dst", "target", "from", "to", "uri", "url",
}
