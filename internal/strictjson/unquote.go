package strictjson

import (
	"encoding"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Unquote reads a quoted JSON string, such as a result of Lookup: "\u0061" is a. It returns false for any
// other value and for invalid strings (invalid UTF-8, half a surrogate pair). The text of a string without
// escapes shares its memory with raw.
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

// Reads is the way in which Unmarshal decodes a type.
type Reads int

// The ways in which a type is decoded.
const (
	ByKind Reads = iota // by its Go kind: it has no methods for decoding
	ByText              // UnmarshalText: from a JSON string
	ByJSON              // UnmarshalJSON or UnmarshalJSONFrom: from any JSON value
)

// ReadsBy returns the way in which Unmarshal decodes values of type t (not a pointer).
func ReadsBy(t reflect.Type) Reads {
	switch p := reflect.PointerTo(t); {
	case p.Implements(reflect.TypeFor[json.UnmarshalerFrom]()), p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return ByJSON
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return ByText
	}
	return ByKind
}
