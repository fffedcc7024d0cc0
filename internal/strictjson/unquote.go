package strictjson

import (
	"encoding"
	"reflect"
	"strings"
	"unsafe"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Unquote reads a quoted JSON string, such as Lookup gives: "\u0061" is a. It is false for any other value and
// for strings that break the rules (invalid UTF-8, half a surrogate pair). A string without escapes shares
// its memory with raw.
func Unquote(raw string) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if !strings.Contains(raw, `\`) && plainString(raw, 0) == len(raw) {
		return raw[1 : len(raw)-1], true
	}
	read, err := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw)
	return unsafe.String(unsafe.SliceData(read), len(read)), err == nil // nothing else has these bytes
}

// Reads says how Unmarshal reads a type that has a say in it.
type Reads int

// How a type is read.
const (
	ByKind Reads = iota // by its Go kind: it has no methods for decoding
	ByText              // UnmarshalText: from a JSON string
	ByJSON              // UnmarshalJSON or UnmarshalJSONFrom: from whatever it likes
)

// ReadsBy says how Unmarshal reads values of type t (not a pointer).
func ReadsBy(t reflect.Type) Reads {
	switch p := reflect.PointerTo(t); {
	case p.Implements(reflect.TypeFor[json.UnmarshalerFrom]()), p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return ByJSON
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return ByText
	}
	return ByKind
}
