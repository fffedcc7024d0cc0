package strictjson

import (
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decode fills into, a zero struct, from arguments and reports whether it succeeded. On success the
// text passes CheckObject, has all required members and no unknown ones, and the struct has the values that
// Unmarshal would set. On failure the text may be valid, and the struct may be partly written.
//
// Strings in the struct may share memory with args.
func (f *Flat) Decode(args string, into reflect.Value) bool {
	i := skipSpace(args, 0)
	if i == len(args) || args[i] != '{' {
		return false
	}
	var given uint64
	i = skipSpace(args, i+1)
	more := i == len(args) || args[i] != '}'
	for next := 0; more; next++ {
		var field *flatField
		if next < len(f.fields) {
			field = &f.fields[next]
		}
		if field != nil && strings.HasPrefix(args[i:], field.key) { // the usual case: in order, without white space
			i += len(field.key)
		} else if next, i = f.find(args, i, next); next >= 0 {
			field = &f.fields[next]
		} else {
			return false
		}
		bit := uint64(1) << (next & 63)
		if i = skipSpace(args, i); given&bit != 0 || i == len(args) {
			return false
		}
		given |= bit
		if field.target == nil {
			i = readFlat(args, i, into.Field(field.index))
		} else {
			i = field.readPointer(args, i, into.Field(field.index))
		}
		if i < 0 {
			return false
		}
		if i = skipSpace(args, i); i == len(args) {
			return false
		}
		switch args[i] {
		case '}':
			more = false
		case ',':
			i = skipSpace(args, i+1)
		default:
			return false
		}
	}
	return i < len(args) && skipSpace(args, i+1) == len(args) && given&f.required == f.required
}

// find reads a member's name and its colon. It returns the index of the field, or -1, and the index after the colon;
// guess is the expected field index.
func (f *Flat) find(s string, i, guess int) (field, behind int) {
	end := plainName(s, i)
	if end < 0 {
		return -1, 0
	}
	name := s[i+1 : end-1]
	if i = skipSpace(s, end); i == len(s) || s[i] != ':' {
		return -1, 0
	}
	if guess < len(f.fields) && f.fields[guess].name == name {
		return guess, i + 1
	}
	for field := range f.fields {
		if f.fields[field].name == name {
			return field, i + 1
		}
	}
	return -1, 0
}

// readPointer decodes the value at s[i] into a pointer field. It returns the index after the value, or -1.
func (f *flatField) readPointer(s string, i int, into reflect.Value) int {
	if s[i] == 'n' {
		return plainLiteral(s, i, "null")
	}
	target := reflect.New(f.target)
	into.Set(target)
	return readFlat(s, i, target.Elem())
}

func readFlat(s string, i int, into reflect.Value) int {
	switch into.Kind() {
	case reflect.String:
		text, end := readString(s, i)
		into.SetString(text)
		return end
	case reflect.Bool:
		if s[i] == 't' {
			into.SetBool(true)
			return plainLiteral(s, i, "true")
		}
		return plainLiteral(s, i, "false")
	case reflect.Float64, reflect.Float32:
		return readFloat(s, i, into)
	case reflect.Slice:
		return readStrings(s, i, into)
	}
	return readInteger(s, i, into)
}

// readString returns the string at s[i] and the index after it, or -1.
func readString(s string, i int) (text string, end int) {
	if s[i] != '"' {
		return "", -1
	}
	for j := i + 1; j < len(s); j++ {
		switch c := s[j]; {
		case c == '"':
			return s[i+1 : j], j + 1
		case c < ' ' || c == '\\' || c >= utf8.RuneSelf:
			return readUnusualString(s, i)
		}
	}
	return "", -1
}

// readUnusualString reads a string with escapes or characters beyond ASCII.
func readUnusualString(s string, i int) (text string, end int) {
	if end = skipString(s, i); end < 0 {
		return "", -1
	}
	text, ok := Unquote(s[i:end])
	if !ok {
		return "", -1
	}
	return text, end
}

func readStrings(s string, i int, into reflect.Value) int {
	if s[i] != '[' {
		return -1
	}
	list := reflect.MakeSlice(into.Type(), 0, 4)
	i = skipSpace(s, i+1)
	if i < len(s) && s[i] == ']' {
		into.Set(list)
		return i + 1
	}
	for i < len(s) {
		text, end := readString(s, i)
		if end < 0 {
			return -1
		}
		list = reflect.Append(list, reflect.ValueOf(text).Convert(into.Type().Elem()))
		i = skipSpace(s, end)
		switch {
		case i == len(s):
			return -1
		case s[i] == ']':
			into.Set(list)
			return i + 1
		case s[i] != ',':
			return -1
		}
		i = skipSpace(s, i+1)
	}
	return -1
}

func readFloat(s string, i int, into reflect.Value) int {
	end := plainNumber(s, i)
	if end < 0 {
		return -1
	}
	n, err := strconv.ParseFloat(s[i:end], into.Type().Bits())
	if err != nil {
		return -1
	}
	into.SetFloat(n)
	return end
}

// readInteger reads a number of at most 18 digits, with only zeros after the point. If it leaves part of the number
// unread, such as an exponent, Decode fails there.
func readInteger(s string, i int, into reflect.Value) int {
	negative := s[i] == '-'
	if negative {
		i++
	}
	end, n := i, int64(0)
	for ; end < len(s); end++ {
		digit := s[end] - '0'
		if digit > 9 {
			break
		}
		n = n*10 + int64(digit) // may overflow, but then there are too many digits
	}
	if length := end - i; length == 0 || length > 18 || length > 1 && s[i] == '0' {
		return -1
	}
	if end+1 < len(s) && s[end] == '.' && s[end+1] == '0' { // models write 10.0
		for end++; end < len(s) && s[end] == '0'; {
			end++
		}
	}
	if negative {
		n = -n
	}
	switch {
	case into.CanInt() && !into.OverflowInt(n):
		into.SetInt(n)
	case into.CanUint() && n >= 0 && !into.OverflowUint(uint64(n)):
		into.SetUint(uint64(n))
	default:
		return -1
	}
	return end
}
