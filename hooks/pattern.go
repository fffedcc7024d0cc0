package hooks

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// pattern matches a text: an exact text, a glob, or a regular expression.
type pattern struct {
	text  string
	match func(string) bool
	// exact is the only text that matches a pattern without wildcards. For other patterns, begin is the prefix of every
	// match. It is empty if it is not known.
	exact, begin string
}

// compilePattern compiles an exact text, a glob, or a /regular expression/. A text without slashes that looks like a
// regular expression is an error. As a text or a glob it would match almost nothing.
func compilePattern(text string) (pattern, error) {
	p := pattern{text: text}
	switch {
	case text == "":
		return p, errors.New("the pattern is empty: use * for every name")
	case text == "//":
		return p, errors.New("the regular expression is empty: use * for every name")
	case len(text) > 2 && text[0] == '/' && text[len(text)-1] == '/':
		re, err := regexp.Compile(text[1 : len(text)-1])
		if err != nil {
			return p, err
		}
		p.match = re.MatchString
		if strings.HasPrefix(text, "/^") {
			p.begin, _ = re.LiteralPrefix()
		}
		return p, nil
	}
	if flagged.MatchString(text) {
		return p, fmt.Errorf("%q looks like a regular expression with flags: write /(?i)…/, or "+
			"put a backslash before the first slash, as hooks.Exact does", text)
	}
	if sign, ok := regexpSign(text); ok {
		return p, fmt.Errorf("%q is regular expression syntax: write the pattern between slashes, /%s/, or "+
			"put a backslash before every special character that is meant literally, as hooks.Exact does", sign, text)
	}
	if _, err := path.Match(text, ""); err != nil {
		return p, err
	}
	literal, whole := literalPrefix(text)
	if whole {
		p.exact, p.match = literal, func(name string) bool { return name == literal }
		return p, nil
	}
	p.begin = literal
	flat := flattened.Replace(text)
	p.match = func(name string) bool {
		ok, _ := path.Match(flat, flattened.Replace(name))
		return ok
	}
	return p, nil
}

// flattened replaces slashes, because * in path.Match does not match them, but in a name they have no special
// meaning.
var flattened = strings.NewReplacer("/", "\x00")

// flagged matches a regular expression that is followed by flags, as in other languages. A path such as /a/i has
// the same form.
var flagged = regexp.MustCompile(`^/.+/[gimsuxy]{1,3}$`)

// regexpSigns are the special characters of regular expressions that are not special in texts and globs.
const regexpSigns = `^$()|+{}`

// regexpSign finds the part that makes a text without slashes look like a regular expression: a character that is
// special only there, a repeated dot, a backslash before a letter or digit, a named class. An escaped character is
// literal. Within brackets, every character except a backslash is literal.
func regexpSign(text string) (string, bool) {
	inside := false
	for i := 0; i < len(text); i++ {
		c, rest := text[i], text[i+1:]
		switch {
		case c == '\\':
			if rest != "" && isAlphanumeric(rest[0]) {
				return text[i : i+2], true
			}
			i++
		case inside:
			if c == '[' && strings.HasPrefix(rest, ":") {
				return "[:", true
			}
			inside = c != ']'
		case c == '[':
			inside = true
		case strings.IndexByte(regexpSigns, c) >= 0:
			return text[i : i+1], true
		case c == '.' && rest != "" && strings.IndexByte("*?", rest[0]) >= 0:
			return text[i : i+2], true
		}
	}
	return "", false
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// literalPrefix returns a glob's text before its first wildcard, and whether it is the whole glob.
func literalPrefix(glob string) (literal string, whole bool) {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '*', '?', '[':
			return b.String(), false
		case '\\':
			i++ // path.Match has checked that a character follows
		}
		b.WriteByte(glob[i])
	}
	return b.String(), true
}

// Exact returns the pattern that matches only this text. It puts a backslash before every character that is special in
// patterns or not allowed.
//
//	hooks.ArgumentMatching("command", hooks.Exact("ls | wc -l"))
func Exact(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`\*?[]./`+regexpSigns, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// mayMeet reports whether a text could match both patterns, judged by their prefixes.
func (p pattern) mayMeet(other pattern) bool {
	switch {
	case p.exact != "":
		return other.match(p.exact)
	case other.exact != "":
		return p.match(other.exact)
	}
	return strings.HasPrefix(p.begin, other.begin) || strings.HasPrefix(other.begin, p.begin)
}
