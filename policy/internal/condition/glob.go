package condition

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const maxPattern = 1024

// matchGlob reports whether a pattern matches the whole text: * matches any text, ? any character, [a-z] a character
// in the class, [!a-z] a character outside of it, and \ makes the next character literal.
func matchGlob(text, pattern string) (bool, error) {
	if len(pattern) > maxPattern {
		return false, fmt.Errorf("the pattern %q is longer than %d bytes", shortenText(pattern), maxPattern)
	}
	if err := checkPattern(pattern); err != nil {
		return false, err
	}
	p, t := 0, 0
	star, retry := -1, 0 // where to resume after a mismatch: the last star takes one more character
	for t < len(text) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				star, retry = p, t
				p++
				continue
			}
			if next, size, ok := matchOne(pattern[p:], text[t:]); ok {
				p, t = p+next, t+size
				continue
			}
		}
		if star < 0 {
			return false, nil
		}
		_, size := utf8.DecodeRuneInString(text[retry:])
		retry += size
		p, t = star+1, retry
	}
	return strings.Trim(pattern[p:], "*") == "", nil
}

// matchOne matches the first character. It returns the lengths of the pattern and the text that it consumed.
func matchOne(pattern, text string) (next, size int, ok bool) {
	c, size := utf8.DecodeRuneInString(text)
	switch pattern[0] {
	case '?':
		return 1, size, true
	case '[':
		end := classEnd(pattern)
		return end, size, inClass(pattern[1:end-1], c)
	case '\\':
		want, n := utf8.DecodeRuneInString(pattern[1:])
		return 1 + n, size, want == c && text[:size] == pattern[1:1+n]
	}
	want, n := utf8.DecodeRuneInString(pattern)
	return n, size, want == c && text[:size] == pattern[:n]
}

func inClass(class string, c rune) bool {
	not := strings.HasPrefix(class, "!") || strings.HasPrefix(class, "^")
	if not {
		class = class[1:]
	}
	found := false
	for class != "" {
		low, n := utf8.DecodeRuneInString(class)
		class = class[n:]
		high := low
		if len(class) > 1 && class[0] == '-' {
			high, n = utf8.DecodeRuneInString(class[1:])
			class = class[1+n:]
		}
		found = found || low <= c && c <= high
	}
	return found != not
}

// classEnd returns the index behind the class at the start of the pattern, or -1. A leading ] belongs to the class.
func classEnd(pattern string) int {
	from := 1
	if len(pattern) > 1 && (pattern[1] == '!' || pattern[1] == '^') {
		from++
	}
	if from < len(pattern) && pattern[from] == ']' {
		from++
	}
	if from >= len(pattern) {
		return -1
	}
	end := strings.IndexByte(pattern[from:], ']')
	if end < 0 {
		return -1
	}
	return from + end + 1
}

func checkPattern(pattern string) error {
	if !strings.ContainsAny(pattern, `[\`) {
		return nil
	}
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			if i++; i == len(pattern) {
				return fmt.Errorf(`the pattern %q ends in \`, shortenText(pattern))
			}
		case '[':
			end := classEnd(pattern[i:])
			if end < 0 {
				return fmt.Errorf("the pattern %q has a [ without ]", shortenText(pattern))
			}
			i += end - 1
		}
	}
	return nil
}

// globbedPath works like globbed, for paths: * and ? stay within one name, and the name ** matches any number of names.
func globbedPath(path, pattern string) (bool, error) {
	names, wanted := strings.Split(path, "/"), strings.Split(pattern, "/")
	p, t := 0, 0
	star, retry := -1, 0
	for t < len(names) {
		if p < len(wanted) {
			if wanted[p] == "**" {
				star, retry = p, t
				p++
				continue
			}
			ok, err := matchGlob(names[t], wanted[p])
			if err != nil {
				return false, err
			}
			if ok {
				p, t = p+1, t+1
				continue
			}
		}
		if star < 0 {
			return false, nil
		}
		retry++
		p, t = star+1, retry
	}
	for p < len(wanted) && wanted[p] == "**" {
		p++
	}
	return p == len(wanted), nil
}
