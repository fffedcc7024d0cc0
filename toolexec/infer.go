package toolexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// SchemaSource is a type that declares its own JSON Schema, for rules that its Go type and field tags (see SchemaFor)
// cannot express. JSONSchema is called on the zero value and returns the schema's JSON text.
//
//	type Unit string
//
//	func (Unit) JSONSchema() string { return `{"type": "string", "enum": ["celsius", "fahrenheit"]}` }
type SchemaSource interface{ JSONSchema() string }

// SchemaFor infers the JSON Schema of a struct type or a map with string keys. Decoder decodes arguments with this
// schema into the type.
//
// Tags named like JSON Schema keywords narrow a field: enum (comma-separated values), minimum, maximum, minLength,
// maxLength, pattern, minItems and maxItems. On a list, all but the last two apply to each element. A tag that does not
// apply to the field's type is an error.
//
//	type Search struct {
//		Unit  string   `json:"unit" enum:"celsius,fahrenheit"`
//		Limit int      `json:"limit,omitempty" minimum:"1" maximum:"50"`
//		Tags  []string `json:"tags,omitempty" enum:"news,sport" maxItems:"3"`
//	}
//
// The json tag gives a field's name. The tags jsonschema, description, desc, doc and jsonschema_description give its
// description. Other libraries' schema tags, such as validate, binding, default, and jsonschema with keywords, are
// errors that name the tag to use. A field is required unless its json tag has omitempty or omitzero. Null is allowed
// only for pointers. No other members are allowed. A type with an UnmarshalText method is a string, a type with
// UnmarshalJSON can be any value, and []byte is base64. A SchemaSource declares its own schema. Types without an
// unambiguous JSON form are errors: recursive types, channels and functions, time.Duration (use a number with the unit
// in its name), json tag options such as string, and embedded structs with a name.
func SchemaFor[T any]() (*Schema, error) {
	t := reflect.TypeFor[T]()
	s, err := inferSchema(t)
	if err != nil {
		return nil, fmt.Errorf("inferring schema of %s: %w", t, err)
	}
	return s, nil
}

func inferSchema(t reflect.Type) (*Schema, error) {
	switch {
	case t.Kind() != reflect.Struct && t.Kind() != reflect.Map:
		return nil, errors.New("arguments must be an object: use a struct, or a map with string keys")
	case strictjson.ReadsBy(t) != strictjson.ByKind && !declares(t):
		return nil, errors.New("it has its own decoding, so it needs a JSONSchema method")
	}
	in := &inference{schemas: wellKnown(), open: map[reflect.Type]bool{}}
	if err := in.visit(t); err != nil {
		return nil, err
	}
	inferred, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: in.schemas})
	if err != nil {
		return nil, err
	}
	if err := constrain(t, inferred); err != nil {
		return nil, err
	}
	addNull(inferred)
	if inferred.Properties == nil {
		inferred.Properties = map[string]*jsonschema.Schema{} // some model services require the member
	}
	text, err := inferred.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return CompileSchema(string(text))
}

// inference collects the schemas of types for which the schema library and strictjson differ, starting with the
// innermost types.
type inference struct {
	schemas map[reflect.Type]*jsonschema.Schema
	open    map[reflect.Type]bool
}

func wellKnown() map[reflect.Type]*jsonschema.Schema {
	text := &jsonschema.Schema{Type: "string"}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time]():   {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.Number](): {Type: "number"},
		reflect.TypeFor[big.Int]():     {Type: "integer"},
		reflect.TypeFor[big.Rat]():     text,
		reflect.TypeFor[big.Float]():   text,
		reflect.TypeFor[slog.Level]():  text,
		reflect.TypeFor[[]byte]():      {Type: "string", ContentEncoding: "base64"},
	}
}

// addNull adds null to the enum of a declared schema behind a pointer. The library adds it only to the types.
func addNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" && s.Enum != nil && !slices.Contains(s.Enum, nil) {
		s.Enum = append(slices.Clip(s.Enum), nil)
	}
	addNull(s.Items)
	addNull(s.AdditionalProperties)
	for _, property := range s.Properties {
		addNull(property)
	}
}

// allTypes returns all types, for a schema that names none. A schema behind a pointer must list them, because the
// library adds null to the list. Without the other types, the list would contain only null.
func allTypes() []string {
	return []string{"null", "boolean", "number", "string", "array", "object"}
}

func (in *inference) visit(t reflect.Type) error {
	if in.schemas[t] != nil {
		return nil
	}
	if in.open[t] {
		return fmt.Errorf("type %s contains itself: write its schema yourself, as the Parameters of a CallFunc or for newDecoderWith", t)
	}
	in.open[t] = true
	defer delete(in.open, t)
	if t.Kind() == reflect.Pointer {
		return in.visit(t.Elem())
	}
	if source, ok := reflect.TypeAssert[SchemaSource](reflect.Zero(t)); ok {
		return in.checkDeclared(t, source)
	}
	if t == reflect.TypeFor[time.Duration]() {
		return errors.New("a time.Duration has no common JSON form: use a number with the unit in its name")
	}
	switch strictjson.ReadsBy(t) {
	case strictjson.ByJSON:
		in.schemas[t] = &jsonschema.Schema{Types: allTypes()}
		return nil
	case strictjson.ByText:
		in.schemas[t] = &jsonschema.Schema{Type: "string"}
		return nil
	}
	return in.visitKind(t)
}

func (in *inference) checkDeclared(t reflect.Type, source SchemaSource) error {
	own := new(jsonschema.Schema)
	if err := own.UnmarshalJSON([]byte(source.JSONSchema())); err != nil {
		return fmt.Errorf("the schema that %s declares: %w", t, err)
	}
	if own.Type == "" && own.Types == nil {
		own.Types = allTypes()
	}
	in.schemas[t] = own
	return nil
}

func (in *inference) visitKind(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("JSON cannot be decoded into a %s: use any or a concrete type", t)
		}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return fmt.Errorf("a %s has keys that are not strings: use a map with string keys", t)
		}
		return in.visit(t.Elem())
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("a %s has no JSON form", t)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && strictjson.ReadsBy(t.Elem()) == strictjson.ByKind {
			in.schemas[t] = &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
			return nil
		}
		if err := in.visit(t.Elem()); err != nil || t.Kind() == reflect.Array {
			return err
		}
		return in.list(t) // the library would accept null
	case reflect.Struct:
		return in.visitFields(t)
	}
	return nil
}

func (in *inference) list(t reflect.Type) error {
	items, err := jsonschema.ForType(t.Elem(), &jsonschema.ForOptions{TypeSchemas: in.schemas})
	if err != nil {
		return err
	}
	in.schemas[t] = &jsonschema.Schema{Type: "array", Items: items}
	return nil
}

func (in *inference) visitFields(t reflect.Type) error {
	for field := range t.Fields() {
		tag := field.Tag.Get("json")
		if tag == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		for option := range strings.SplitSeq(options, ",") {
			if !slices.Contains([]string{"", "omitempty", "omitzero"}, option) {
				return fmt.Errorf("field %s.%s: json tag option %q is not for arguments", t, field.Name, option)
			}
		}
		if field.Anonymous && name != "" {
			return fmt.Errorf("field %s.%s: give an embedded struct no name, or make it a plain field", t, field.Name)
		}
		if err := checkForeignTags(field); err != nil {
			return fmt.Errorf("field %s.%s: %w", t, field.Name, err)
		}
		if err := in.visit(field.Type); err != nil {
			return fmt.Errorf("field %s.%s: %w", t, field.Name, err)
		}
	}
	return in.sameNames(t)
}

// sameNames checks that the schema and the decoder have the same members.
func (in *inference) sameNames(t reflect.Type) error {
	inferred, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: in.schemas})
	if err != nil {
		return err
	}
	return hasPlaces(t, inferred.PropertyOrder)
}
