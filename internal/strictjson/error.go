package strictjson

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error describes a mistake in a JSON text and its place.
type Error struct {
	// Pointer is the JSON pointer (RFC 6901) to the wrong value or member; empty for the whole text.
	Pointer string

	// Message describes the mistake, without the place: lower case, no full stop.
	Message string

	// Err is ErrUnknownMember, or the error of a type's UnmarshalJSON or UnmarshalText method, if that is the cause;
	// otherwise nil.
	Err error
}

// ErrUnknownMember is the cause when the target has no field for a member.
var ErrUnknownMember = errors.New("unknown member")

// Error returns the place, if set, and the message.
func (e *Error) Error() string {
	if e.Pointer == "" {
		return e.Message
	}
	return "at " + e.Pointer + ": " + e.Message
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func errorAt(pointer jsontext.Pointer, format string, args ...any) *Error {
	return &Error{Pointer: string(pointer), Message: fmt.Sprintf(format, args...)}
}

// explain converts an error of the JSON library.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if own, ok := err.(*Error); ok { //nolint:errorlint // the wrapping error has more information
		return own
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		return explainSemantic(semantic)
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return explainSyntactic(syntactic)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{Message: "the text is empty"}
	}
	return &Error{Message: err.Error(), Err: err}
}

// explainMarshal works like explain for encoding, where the mistake is in the Go type and not in the text.
func explainMarshal(err error) error {
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return explain(err)
	}
	message := fmt.Sprintf("a %s cannot be written as JSON", semantic.GoType)
	if semantic.Err != nil {
		message += ": " + semantic.Err.Error()
	}
	return &Error{Pointer: string(semantic.JSONPointer), Message: message, Err: semantic.Err}
}

func explainSyntactic(err *jsontext.SyntacticError) *Error {
	switch {
	case errors.Is(err.Err, jsontext.ErrDuplicateName):
		return errorAt(err.JSONPointer, "member %q is given twice", err.JSONPointer.LastToken())
	case errors.Is(err.Err, io.ErrUnexpectedEOF) && err.ByteOffset == 0:
		return &Error{Message: "the text is empty"}
	case errors.Is(err.Err, io.ErrUnexpectedEOF):
		return errorAt(err.JSONPointer, "the text ends after %d bytes, before the value does", err.ByteOffset)
	case err.Err == nil:
		return errorAt(err.JSONPointer, "not valid JSON at byte %d", err.ByteOffset)
	}
	return errorAt(err.JSONPointer, "not valid JSON at byte %d: %s", err.ByteOffset, err.Err)
}

func explainSemantic(err *json.SemanticError) *Error {
	at := err.JSONPointer
	if inner, ok := err.Err.(*Error); ok { //nolint:errorlint // a method of the type returned an error of this package
		return &Error{Pointer: string(at) + inner.Pointer, Message: inner.Message, Err: inner.Err}
	}
	switch {
	case errors.Is(err.Err, json.ErrUnknownName):
		unknown := errorAt(at, "member %q is not known", at.LastToken())
		unknown.Err = ErrUnknownMember
		return unknown
	case errors.Is(err.Err, strconv.ErrRange):
		return errorAt(at, "%s is out of range for %s", shorten(string(err.JSONValue)), typeName(err.GoType))
	case errors.Is(err.Err, strconv.ErrSyntax):
		return errorAt(at, "expected %s, got %s", typeName(err.GoType), shorten(string(err.JSONValue)))
	case err.Err != nil:
		return &Error{Pointer: string(at), Message: err.Err.Error(), Err: err.Err}
	}
	return errorAt(at, "expected %s, got %s", typeName(err.GoType), kindName(err.JSONKind))
}

// typeName returns the JSON name for the values that a Go type accepts, with the size where it matters.
func typeName(t reflect.Type) string {
	if t == nil {
		return "another type"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "integer (" + t.Kind().String() + ")"
	case reflect.Float32, reflect.Float64:
		return "number (" + t.Kind().String() + ")"
	case reflect.String:
		return "string"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	}
	return t.String()
}

func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "boolean"
	case jsontext.KindString:
		return "string"
	case jsontext.KindNumber:
		return "number"
	case jsontext.KindBeginObject:
		return "object"
	case jsontext.KindBeginArray:
		return "array"
	}
	return "something else"
}

// shorten shortens a number or string for a message.
func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
