package worktree

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rules are the patterns in an ignore file, in order.
type rules []rule

// rule is a pattern: see gitignore(5). Names are matched byte by byte, as in git.
type rule struct {
	base     []string // the directory of the ignore file, below the top of the repository
	segments []string // the parts of the pattern between slashes
	negated  bool     // the pattern began with an exclamation mark
	dirOnly  bool     // the pattern ended with a slash
	anywhere bool     // the pattern has no other slash, and matches in all directories below base
}

// readRules reads an ignore file in a directory of a repository. It returns nil for a file that cannot be read.
func readRules(file, dir string) (all rules) {
	var base []string
	if dir != "" {
		base = strings.Split(dir, "/")
	}
	text := strings.TrimPrefix(string(readFile(file, maxText)), "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		if r, ok := ruleOf(strings.TrimSuffix(line, "\r")); ok {
			r.base = base
			all = append(all, r)
		}
	}
	return all
}

// ruleOf reads a line of an ignore file; ok is false for a comment or an empty line.
func ruleOf(line string) (r rule, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return r, false
	}
	line, r.negated = strings.CutPrefix(line, "!")
	line, r.dirOnly = strings.CutSuffix(line, "/")
	r.anywhere = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	r.segments = strings.Split(line, "/")
	return r, line != ""
}

// match reports whether the last matching rule ignores a file or directory; matched is false if no rule matches.
func (all rules) match(name string, isDir bool) (ignored, matched bool) {
	parts := strings.Split(name, "/")
	for _, r := range slices.Backward(all) {
		if r.matches(parts, isDir) {
			return !r.negated, true
		}
	}
	return false, false
}

func (r *rule) matches(parts []string, isDir bool) bool {
	if r.dirOnly && !isDir || len(parts) <= len(r.base) || !slices.Equal(parts[:len(r.base)], r.base) {
		return false
	}
	if r.anywhere {
		return matchSegment(r.segments[0], parts[len(parts)-1])
	}
	return matchSegments(r.segments, parts[len(r.base):])
}

// matchSegments matches names against patterns. The pattern ** stands for any number of names, and for at least one
// at the end. After a mismatch, only the last ** is retried, so the time is at most proportional to the product of
// both lengths.
func matchSegments(patterns, names []string) bool {
	const none = -1
	p, n, star, from := 0, 0, none, 0
	for n < len(names) || p < len(patterns) {
		switch {
		case p < len(patterns) && patterns[p] == "**" && p == len(patterns)-1:
			return n < len(names)
		case p < len(patterns) && patterns[p] == "**":
			star, from = p, n
			p++
		case p < len(patterns) && n < len(names) && matchSegment(patterns[p], names[n]):
			p, n = p+1, n+1
		case star != none && from < len(names):
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return true
}

// matchSegment matches one name against one pattern with *, ?, [sets] and \escapes. Its time is bounded like in
// matchSegments.
func matchSegment(pattern, name string) bool {
	const none = -1
	p, n, star, from := 0, 0, none, 0
	for n < len(name) || p < len(pattern) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, n
			p++
			continue
		}
		if p < len(pattern) && n < len(name) {
			if width, ok := matchByte(pattern[p:], name[n]); ok {
				p, n = p+width, n+1
				continue
			}
		}
		if star == none || from >= len(name) {
			return false
		}
		from++
		p, n = star+1, from
	}
	return true
}

// matchByte matches a byte against the beginning of a pattern, and returns the length of this beginning.
func matchByte(pattern string, c byte) (width int, ok bool) {
	switch {
	case pattern[0] == '?':
		return 1, true
	case pattern[0] == '[':
		return matchSet(pattern, c)
	case pattern[0] == '\\' && len(pattern) > 1:
		return 2, pattern[1] == c
	case pattern[0] == '\\': // a pattern that ends with a backslash is invalid, and never matches
		return 0, false
	}
	return 1, pattern[0] == c
}

// matchSet matches a byte against a set such as [a-z], [!a-z] or [[:digit:]]. An unterminated set never matches.
func matchSet(pattern string, c byte) (width int, ok bool) {
	i, found := 1, false
	negated := len(pattern) > 1 && (pattern[1] == '!' || pattern[1] == '^')
	if negated {
		i++
	}
	for first := i; ; {
		if i >= len(pattern) {
			return 0, false
		}
		if pattern[i] == ']' && i > first {
			return i + 1, found != negated
		}
		if strings.HasPrefix(pattern[i:], "[:") {
			if end := strings.Index(pattern[i:], ":]"); end >= 0 {
				is, known := classes[pattern[i+2:i+max(end, 2)]]
				if !known {
					return 0, false
				}
				found = found || is(c)
				i += end + 2
				continue
			}
		}
		low, width := setByte(pattern[i:])
		high := low
		if i += width; i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			high, width = setByte(pattern[i+1:])
			i += 1 + width
		}
		found = found || low <= c && c <= high
	}
}

// setByte returns a set's next byte, and the number of bytes that it takes in the pattern.
func setByte(pattern string) (c byte, width int) {
	if pattern[0] == '\\' && len(pattern) > 1 {
		return pattern[1], 2
	}
	return pattern[0], 1
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isGraph(c byte) bool { return '!' <= c && c <= '~' }
func isAlnum(c byte) bool { return isUpper(c) || isLower(c) || isDigit(c) }

// classes maps the names of character classes to their functions.
var classes = map[string]func(c byte) bool{
	"alnum":  isAlnum,
	"alpha":  func(c byte) bool { return isUpper(c) || isLower(c) },
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  isDigit,
	"graph":  isGraph,
	"lower":  isLower,
	"print":  func(c byte) bool { return isGraph(c) || c == ' ' },
	"punct":  func(c byte) bool { return isGraph(c) && !isAlnum(c) },
	"space":  func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	"upper":  isUpper,
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

// readUserRules reads the user's ignore file for all repositories: core.excludesFile in the user's git settings, or
// git/ignore in the settings folder. It ignores repository settings.
func readUserRules() rules {
	home, _ := os.UserHomeDir() // without a home directory, the file does not exist
	settings := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	file := filepath.Join(settings, "git", "ignore")
	for _, config := range []string{"/etc/gitconfig", filepath.Join(settings, "git", "config"), filepath.Join(home, ".gitconfig")} {
		if named := excludesFile(string(readFile(config, maxText))); named != "" {
			file = named
		}
	}
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		file = filepath.Join(home, rest)
	}
	return readRules(file, "")
}

// excludesFile returns the value of core.excludesFile in the text of git settings, or "".
func excludesFile(text string) (file string) {
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			section, _, _ = strings.Cut(name, "]")
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.EqualFold(strings.TrimSpace(section), "core") && strings.EqualFold(strings.TrimSpace(key), "excludesfile") {
			file = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return file
}
