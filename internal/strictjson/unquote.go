package strictjson

import (
	"encoding"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Unquote reads a quoted JSON string, such as a result of Lookup: "\u0061" is a. It returns false for other values
// and for invalid strings (invalid UTF-8, half a surrogate pair). A string without escapes shares its memory with
// raw.
func Unquote(raw string) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if !strings.Contains(raw, `\`) && plainString(raw, 0) == len(raw) {
		return raw[1 : len(raw)-1], true
	}
	read, err := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw)
	return string(read), err == nil
}

// Reads says how Unmarshal decodes a type.
type Reads int

// The ways to decode a type.
const (
	ByKind Reads = iota // by its Go kind: it has no methods for decoding
	ByText              // UnmarshalText: from a JSON string
	ByJSON              // UnmarshalJSON or UnmarshalJSONFrom: from any JSON value
)

// ReadsBy returns how Unmarshal decodes values of type t (not a pointer).
func ReadsBy(t reflect.Type) Reads {
	switch p := reflect.PointerTo(t); {
	case p.Implements(reflect.TypeFor[json.UnmarshalerFrom]()), p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return ByJSON
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return ByText
	}
	return ByKind
}
