package strictjson

import (
	"strings"
	"unicode/utf8"
)

// These functions parse plain JSON by hand. Each returns the index after the parsed text, or -1 if the
// text is not plain. Such text may still be valid; the tokenizer decides. Plain arguments have names of printable
// ASCII without escapes, at most sixteen members per object, and values nested at most sixteen deep.
const (
	plainNames = 16
	plainDepth = 16
)

// plainDocument reports whether s is certainly one object under the rules of CheckObject.
func plainDocument(s string) bool {
	i := skipSpace(s, 0)
	if i == len(s) || s[i] != '{' {
		return false
	}
	i = plainObject(s, i, plainDepth)
	return i >= 0 && skipSpace(s, i) == len(s)
}

// skipSpace returns the index of the first byte from i on that is not JSON white space, or len(s).
func skipSpace(s string, i int) int {
	for i < len(s) && s[i] <= ' ' && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

func plainValue(s string, i, depth int) int {
	if i == len(s) {
		return -1
	}
	switch s[i] {
	case '"':
		return plainString(s, i)
	case '{':
		return plainObject(s, i, depth)
	case '[':
		return plainArray(s, i, depth)
	case 't':
		return plainLiteral(s, i, "true")
	case 'f':
		return plainLiteral(s, i, "false")
	case 'n':
		return plainLiteral(s, i, "null")
	}
	return plainNumber(s, i)
}

// plainObject reads an object; s[i] is its brace.
func plainObject(s string, i, depth int) int {
	if depth == 0 {
		return -1
	}
	var names [plainNames]string
	i = skipSpace(s, i+1)
	if i < len(s) && s[i] == '}' {
		return i + 1
	}
	for n := range names {
		end := plainName(s, i)
		if end < 0 {
			return -1
		}
		names[n] = s[i+1 : end-1]
		if isTaken(names[:n], names[n]) {
			return -1
		}
		i = skipSpace(s, end)
		if i == len(s) || s[i] != ':' {
			return -1
		}
		i = plainValue(s, skipSpace(s, i+1), depth-1)
		if i < 0 {
			return -1
		}
		i = skipSpace(s, i)
		switch {
		case i == len(s):
			return -1
		case s[i] == '}':
			return i + 1
		case s[i] != ',':
			return -1
		}
		i = skipSpace(s, i+1)
	}
	return -1
}

func isTaken(names []string, name string) bool {
	for _, other := range names {
		if len(other) == len(name) && strings.EqualFold(other, name) {
			return true
		}
	}
	return false
}

// plainArray reads an array; s[i] is its bracket.
func plainArray(s string, i, depth int) int {
	if depth == 0 {
		return -1
	}
	i = skipSpace(s, i+1)
	if i < len(s) && s[i] == ']' {
		return i + 1
	}
	for {
		i = plainValue(s, i, depth-1)
		if i < 0 {
			return -1
		}
		i = skipSpace(s, i)
		switch {
		case i == len(s):
			return -1
		case s[i] == ']':
			return i + 1
		case s[i] != ',':
			return -1
		}
		i = skipSpace(s, i+1)
	}
}

// plainName reads a quoted name of printable ASCII without escapes.
func plainName(s string, i int) int {
	if i == len(s) || s[i] != '"' {
		return -1
	}
	for i++; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c < ' ' || c == '\\' || c >= utf8.RuneSelf:
			return -1
		}
	}
	return -1
}

// plainString reads a quoted string; s[i] is its first quote. Surrogate escapes are not plain.
func plainString(s string, i int) int {
	ascii := true
	for j := i + 1; j < len(s); j++ {
		switch c := s[j]; {
		case c == '"':
			if !ascii && !utf8.ValidString(s[i+1:j]) {
				return -1
			}
			return j + 1
		case c < ' ':
			return -1
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '\\':
			if j = plainEscape(s, j); j < 0 {
				return -1
			}
		}
	}
	return -1
}

// plainEscape reads an escape and returns the index of its last byte; s[i] is the backslash.
func plainEscape(s string, i int) int {
	if i+1 == len(s) {
		return -1
	}
	switch s[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 < len(s) && isHex(s[i+2]) && isHex(s[i+3]) && isHex(s[i+4]) && isHex(s[i+5]) && s[i+2]|0x20 != 'd' {
			return i + 5
		}
	}
	return -1
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func plainLiteral(s string, i int, literal string) int {
	if strings.HasPrefix(s[i:], literal) {
		return i + len(literal)
	}
	return -1
}

// plainNumber reads a number of at most MaxDigits with an exponent of at most three digits.
func plainNumber(s string, i int) int {
	from := i
	if i < len(s) && s[i] == '-' {
		i++
	}
	whole := skipDigits(s, i)
	if whole == i || (s[i] == '0' && whole > i+1) {
		return -1
	}
	i = whole
	if i < len(s) && s[i] == '.' {
		end := skipDigits(s, i+1)
		if end == i+1 {
			return -1
		}
		i = end
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		end := skipDigits(s, i)
		if end == i || end > i+len("999") {
			return -1
		}
		i = end
	}
	if i > from+MaxDigits {
		return -1
	}
	return i
}

func skipDigits(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}
