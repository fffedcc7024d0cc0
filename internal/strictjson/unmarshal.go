package strictjson

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Unmarshal decodes one JSON value into the value that into points to, under the rules in the package
// comment. It ignores members without a field. Unlike CheckObject, it does not require an object, and does not check for
// names that differ only in case.
//
// Like the JSON library, it merges into a struct: fields without a member stay unchanged. After an error the
// value may be partly written. The error is a *Error.
func Unmarshal[Text ~string | ~[]byte](data Text, into any) error {
	return explain(json.Unmarshal([]byte(data), into, lenient))
}

// UnmarshalStrict works like Unmarshal, but a member without a field is an error.
func UnmarshalStrict[Text ~string | ~[]byte](data Text, into any) error {
	return explain(json.Unmarshal([]byte(data), into, strict))
}

var (
	numberType = reflect.TypeFor[stdjson.Number]()

	lenient = json.WithUnmarshalers(json.UnmarshalFromFunc(decodeNumber))
	strict  = json.JoinOptions(lenient, json.RejectUnknownMembers(true))
)

// decodeNumber decodes numbers for which the library would lose digits (any), require quotes (json.Number) or refuse
// some notations of a whole number (integers). It leaves everything else to the library.
func decodeNumber(dec *jsontext.Decoder, into any) error {
	if dec.PeekKind() != jsontext.KindNumber {
		return errors.ErrUnsupported
	}
	switch into := into.(type) {
	case *string, *float64, *bool:
		return errors.ErrUnsupported
	case *stdjson.Number:
		text, err := dec.ReadValue()
		*into = stdjson.Number(text)
		return err
	case *any:
		text, err := dec.ReadValue()
		*into = stdjson.Number(text)
		return err
	case json.UnmarshalerFrom, json.Unmarshaler, encoding.TextUnmarshaler:
		return errors.ErrUnsupported
	}
	switch value := reflect.ValueOf(into).Elem(); {
	case value.CanInt(), value.CanUint():
		return decodeInteger(dec, value)
	}
	return errors.ErrUnsupported
}

// decodeInteger decodes the next number into an integer field of any size.
func decodeInteger(dec *jsontext.Decoder, into reflect.Value) error {
	text, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if err = setInteger(into, string(text)); err == nil {
		return nil
	}
	return &json.SemanticError{
		GoType: into.Type(), JSONKind: jsontext.KindNumber, JSONValue: text.Clone(), Err: err,
	}
}

func setInteger(into reflect.Value, text string) error {
	whole, err := wholeNumber(text)
	if err != nil {
		return err
	}
	if into.CanInt() {
		n, err := strconv.ParseInt(whole, 10, into.Type().Bits())
		if err != nil {
			return strconv.ErrRange
		}
		into.SetInt(n)
		return nil
	}
	n, err := strconv.ParseUint(whole, 10, into.Type().Bits())
	if err != nil {
		return strconv.ErrRange // also reached for a negative number
	}
	into.SetUint(n)
	return nil
}
