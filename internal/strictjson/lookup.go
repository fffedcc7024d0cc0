package strictjson

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Lookup finds one value in arguments without decoding the rest. The path is a JSON pointer if it is
// empty (the whole text) or begins with a slash (`/files/0/path`, with ~1 for / and ~0 for ~). Otherwise it is names
// joined by dots (`files.0.path`); a name that contains a dot or begins with a slash needs a
// pointer. A number selects an array element, counted from 0.
//
// Lookup returns the value's raw JSON text (a string keeps its quotes and escapes), and false if the value
// does not exist. Names are compared without their escapes. The text must have passed CheckObject; otherwise
// the result is undefined.
func Lookup(args, path string) (raw string, ok bool) {
	i := skipSpace(args, 0)
	pointer := strings.HasPrefix(path, "/")
	if pointer {
		path = path[1:]
	} else if path == "" {
		return value(args, i)
	}
	separator := "."
	if pointer {
		separator = "/"
	}
	for more := true; more; {
		var step string
		step, path, more = strings.Cut(path, separator)
		if pointer && strings.Contains(step, "~") {
			step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		}
		if i = child(args, i, step); i < 0 {
			return "", false
		}
	}
	return value(args, i)
}

// AnyAt reports whether test is true for any value that the pointers lead to: from args along the first, from each
// element or member there along the second, and so on. The text must have passed CheckObject.
func AnyAt(args string, pointers []string, test func(raw string) bool) bool {
	raw, ok := Lookup(args, pointers[0])
	switch {
	case !ok:
		return false
	case len(pointers) == 1:
		return test(raw)
	}
	return anyElement(raw, func(element string) bool { return AnyAt(element, pointers[1:], test) })
}

// anyElement reports whether test is true for any element of a list or member of an object.
func anyElement(s string, test func(raw string) bool) bool {
	if s[0] != '{' && s[0] != '[' {
		return false
	}
	for i := skipSpace(s, 1); i < len(s) && s[i] != '}' && s[i] != ']'; i = skipSpace(s, i+1) {
		if s[0] == '{' {
			if i = skipString(s, i); i < 0 {
				return false
			}
			if i = skipSpace(s, i); i == len(s) || s[i] != ':' {
				return false
			}
			i = skipSpace(s, i+1)
		}
		end := skipValue(s, i)
		if end < 0 {
			return false
		}
		if test(s[i:end]) {
			return true
		}
		if i = skipSpace(s, end); i == len(s) || s[i] != ',' {
			return false
		}
	}
	return false
}

// value returns the value that begins at i.
func value(s string, i int) (string, bool) {
	end := skipValue(s, i)
	if end < 0 {
		return "", false
	}
	return s[i:end], true
}

// child returns the index of the value that step names in the object or array at i, or -1.
func child(s string, i int, step string) int {
	if i >= len(s) {
		return -1
	}
	switch s[i] {
	case '{':
		return member(s, i, step)
	case '[':
		return skipElement(s, i, step)
	}
	return -1
}

func member(s string, i int, name string) int {
	for i = skipSpace(s, i+1); i < len(s) && s[i] == '"'; i = skipSpace(s, i+1) {
		end := skipString(s, i)
		if end < 0 {
			return -1
		}
		found := sameName(s[i:end], name)
		if i = skipSpace(s, end); i == len(s) || s[i] != ':' {
			return -1
		}
		i = skipSpace(s, i+1)
		if found {
			return i
		}
		if i = skipValue(s, i); i < 0 {
			return -1
		}
		if i = skipSpace(s, i); i == len(s) || s[i] != ',' {
			return -1
		}
	}
	return -1
}

// sameName compares a quoted name with an unquoted one.
func sameName(quoted, name string) bool {
	if !strings.Contains(quoted, `\`) {
		return quoted[1:len(quoted)-1] == name
	}
	read, err := jsontext.AppendUnquote(nil, quoted)
	return err == nil && string(read) == name
}

func skipElement(s string, i int, step string) int {
	n, err := strconv.ParseUint(step, 10, 31)
	if err != nil || len(step) > 1 && step[0] == '0' {
		return -1
	}
	i = skipSpace(s, i+1)
	if i == len(s) || s[i] == ']' {
		return -1
	}
	for ; n > 0; n-- {
		if i = skipValue(s, i); i < 0 {
			return -1
		}
		if i = skipSpace(s, i); i == len(s) || s[i] != ',' {
			return -1
		}
		i = skipSpace(s, i+1)
	}
	return i
}

// skipValue returns the index after the value that begins at i, or -1 if the text ends first.
func skipValue(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	switch s[i] {
	case '"':
		return skipString(s, i)
	case '{', '[':
		return skipNested(s, i)
	}
	end := strings.IndexAny(s[i:], " \t\r\n,]}")
	switch end {
	case 0:
		return -1
	case -1:
		return len(s)
	}
	return i + end
}

func skipString(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// skipNested counts brackets of any kind; in valid JSON their kinds match.
func skipNested(s string, i int) int {
	for depth := 0; i < len(s); i++ {
		switch s[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			if i = skipString(s, i) - 1; i < 0 {
				return -1
			}
		}
	}
	return -1
}
