package hooks

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// pattern is what a text is held against: an exact text, a glob, or a regular expression.
type pattern struct {
	text  string
	match func(string) bool
	// exact is the only text that matches, in a pattern without wildcards; else begin is what every match begins
	// with, empty where that is not known.
	exact, begin string
}

// compilePattern compiles an exact text, a glob, or a /regular expression/. A text that reads like a regular
// expression and stands outside of slashes is an error: as a text or a glob it would match next to nothing.
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
		return p, fmt.Errorf("%q reads like a regular expression with flags: write /(?i)…/, or "+
			"put a backslash before the first slash, as hooks.Exact does", text)
	}
	if sign, ok := regexpSign(text); ok {
		return p, fmt.Errorf("%q belongs to regular expressions, and this is none: write it between slashes, /%s/, or "+
			"put a backslash before every sign that is meant as it is, as hooks.Exact does", sign, text)
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

// flattened puts another character in the place of slashes, which path.Match keeps
// from being matched by *: a name has no folders.
var flattened = strings.NewReplacer("/", "\x00")

// flagged finds what is a regular expression with flags behind it elsewhere. A path such as /a/i reads so, too.
var flagged = regexp.MustCompile(`^/.+/[gimsuxy]{1,3}$`)

// The signs of regular expressions that neither texts nor globs give a meaning.
const regexpSigns = `^$()|+{}`

// regexpSign finds what makes a text outside of slashes look like a regular expression: a sign that a glob does not
// know, a dot that is repeated, a backslash before a letter or digit, a named class. What a backslash stands before
// means itself, and so does all but a backslash within brackets.
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

// literalPrefix returns the text before the first wildcard of a glob, and whether that is all of it.
func literalPrefix(glob string) (literal string, whole bool) {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '*', '?', '[':
			return b.String(), false
		case '\\':
			i++ // path.Match has found that something follows
		}
		b.WriteByte(glob[i])
	}
	return b.String(), true
}

// Exact returns the pattern that a text matches and no other, whatever it looks like: it puts a backslash before
// every sign that patterns give a meaning, or refuse.
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

// mayMeet reports whether some text may match both patterns, as far as their beginnings tell.
func (p pattern) mayMeet(other pattern) bool {
	switch {
	case p.exact != "":
		return other.match(p.exact)
	case other.exact != "":
		return p.match(other.exact)
	}
	return strings.HasPrefix(p.begin, other.begin) || strings.HasPrefix(other.begin, p.begin)
}
