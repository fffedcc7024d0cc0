package strictjson

import (
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Decode fills the zero value of the struct type, which into points to, from an argument text, and reports
// whether it succeeded. True means that the text passes CheckObject, has all required members and no unknown
// ones, and that the struct has the values that Unmarshal would set. False says nothing about the text, and
// the struct may be partly written.
//
// Strings in the struct may share memory with args.
func (f *Flat) Decode(args string, into unsafe.Pointer) bool {
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
		bit := uint64(1) << (next & 63) // the end of the object
		if i = skipSpace(args, i); given&bit != 0 || i == len(args) {
			return false
		}
		given |= bit
		if field.target == nil {
			i = readFlat(args, i, unsafe.Add(into, field.offset), field.kind)
		} else {
			i = field.readPointer(args, i, into)
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

// find reads the name of a member and its colon. It returns the index of the field, or -1, and the index
// after the colon; guess is the expected index of the field.
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

// readPointer decodes the value at s[i] into the pointer field of the struct at base; it returns the index
// after the value, or -1.
func (f *flatField) readPointer(s string, i int, base unsafe.Pointer) int {
	if s[i] == 'n' {
		return plainLiteral(s, i, "null")
	}
	target := reflect.New(f.target).UnsafePointer()
	*(*unsafe.Pointer)(unsafe.Add(base, f.offset)) = target
	return readFlat(s, i, target, f.kind)
}

func readFlat(s string, i int, at unsafe.Pointer, kind reflect.Kind) int {
	switch kind {
	case reflect.String:
		return readString(s, i, (*string)(at))
	case reflect.Bool:
		if s[i] == 't' {
			*(*bool)(at) = true
			return plainLiteral(s, i, "true")
		}
		return plainLiteral(s, i, "false")
	case reflect.Float64, reflect.Float32:
		return readFloat(s, i, at, kind)
	case reflect.Slice:
		return readStrings(s, i, (*[]string)(at))
	}
	return readInteger(s, i, at, kind)
}

func readString(s string, i int, into *string) int {
	if s[i] != '"' {
		return -1
	}
	for j := i + 1; j < len(s); j++ {
		switch c := s[j]; {
		case c == '"':
			*into = s[i+1 : j]
			return j + 1
		case c < ' ' || c == '\\' || c >= utf8.RuneSelf:
			return readUnusualString(s, i, into)
		}
	}
	return -1
}

// readUnusualString reads a string with escapes or characters beyond ASCII.
func readUnusualString(s string, i int, into *string) int {
	end := skipString(s, i)
	if end < 0 {
		return -1
	}
	text, ok := Unquote(s[i:end])
	if !ok {
		return -1
	}
	*into = text
	return end
}

func readStrings(s string, i int, into *[]string) int {
	if s[i] != '[' {
		return -1
	}
	list := make([]string, 0, 4)
	i = skipSpace(s, i+1)
	if i < len(s) && s[i] == ']' {
		*into = list
		return i + 1
	}
	for i < len(s) {
		var text string
		if i = readString(s, i, &text); i < 0 {
			return -1
		}
		list = append(list, text)
		i = skipSpace(s, i)
		switch {
		case i == len(s):
			return -1
		case s[i] == ']':
			*into = list
			return i + 1
		case s[i] != ',':
			return -1
		}
		i = skipSpace(s, i+1)
	}
	return -1
}

func readFloat(s string, i int, at unsafe.Pointer, kind reflect.Kind) int {
	end := plainNumber(s, i)
	if end < 0 {
		return -1
	}
	bits := 64
	if kind == reflect.Float32 {
		bits = 32
	}
	n, err := strconv.ParseFloat(s[i:end], bits)
	if err != nil {
		return -1
	}
	if bits == 32 {
		*(*float32)(at) = float32(n)
	} else {
		*(*float64)(at) = n
	}
	return end
}

// readInteger reads a number of at most 18 digits, with only zeros after the point. If it leaves part of the
// number unread, such as an exponent, Decode fails at that part.
func readInteger(s string, i int, at unsafe.Pointer, kind reflect.Kind) int {
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
	if !storeInteger(at, kind, n) {
		return -1
	}
	return end
}

// storeInteger reports whether n is in the range of the kind.
func storeInteger(at unsafe.Pointer, kind reflect.Kind, n int64) bool {
	switch kind {
	case reflect.Int:
		return store[int](at, n)
	case reflect.Int64:
		return store[int64](at, n)
	case reflect.Int32:
		return store[int32](at, n)
	case reflect.Int16:
		return store[int16](at, n)
	case reflect.Int8:
		return store[int8](at, n)
	}
	if n < 0 {
		return false
	}
	switch kind {
	case reflect.Uint:
		return store[uint](at, n)
	case reflect.Uint64:
		return store[uint64](at, n)
	case reflect.Uint32:
		return store[uint32](at, n)
	case reflect.Uint16:
		return store[uint16](at, n)
	case reflect.Uint8:
		return store[uint8](at, n)
	}
	return false
}

func store[N int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64](at unsafe.Pointer, n int64) bool {
	*(*N)(at) = N(n)
	return int64(N(n)) == n
}
