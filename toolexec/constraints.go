package toolexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// constraint is a tag that sets a keyword in a field's schema.
type constraint struct {
	keyword string
	types   []string // the JSON types that the keyword applies to
	set     func(s *jsonschema.Schema, kind, text string) error
}

// constraints lists the JSON Schema keywords that field tags may set, in the specification's order.
var constraints = []constraint{
	{"enum", []string{"string", "integer", "number"}, setEnum},
	{"minimum", []string{"integer", "number"}, func(s *jsonschema.Schema, kind, text string) error {
		return setBound(&s.Minimum, kind, text, func(own, typed float64) bool { return own >= typed })
	}},
	{"maximum", []string{"integer", "number"}, func(s *jsonschema.Schema, kind, text string) error {
		return setBound(&s.Maximum, kind, text, func(own, typed float64) bool { return own <= typed })
	}},
	{"minLength", []string{"string"}, func(s *jsonschema.Schema, _, text string) error { return setCount(&s.MinLength, text) }},
	{"maxLength", []string{"string"}, func(s *jsonschema.Schema, _, text string) error { return setCount(&s.MaxLength, text) }},
	{"pattern", []string{"string"}, func(s *jsonschema.Schema, _, text string) error {
		s.Pattern = text
		_, err := compileRegexp(text)
		return err
	}},
	{"minItems", []string{"array"}, func(s *jsonschema.Schema, _, text string) error { return setCount(&s.MinItems, text) }},
	{"maxItems", []string{"array"}, func(s *jsonschema.Schema, _, text string) error { return setCount(&s.MaxItems, text) }},
}

// isConstrained reports whether the field has a constraint tag.
func isConstrained(field reflect.StructField) bool {
	return slices.ContainsFunc(constraints, func(c constraint) bool { return hasTag(field, c.keyword) })
}

func hasTag(field reflect.StructField, key string) bool {
	_, ok := field.Tag.Lookup(key)
	return ok
}

// constrain adds the constraints from t's field tags to the schema that was inferred from t.
func constrain(t reflect.Type, s *jsonschema.Schema) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s == nil || declares(t) || strictjson.ReadsBy(t) != strictjson.ByKind {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return constrain(t.Elem(), s.Items)
	case reflect.Map:
		return constrain(t.Elem(), s.AdditionalProperties)
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				name = field.Name
			}
			property := s.Properties[name]
			if property == nil || field.Anonymous || !field.IsExported() {
				continue
			}
			if err := errors.Join(constrainField(field, property), constrain(field.Type, property)); err != nil {
				return fmt.Errorf("field %s.%s: %w", t, field.Name, err)
			}
		}
	}
	return nil
}

// constrainField adds the constraints from one field's tags.
func constrainField(field reflect.StructField, s *jsonschema.Schema) error {
	if err := describeField(field, s); err != nil {
		return err
	}
	for _, c := range constraints {
		text, ok := field.Tag.Lookup(c.keyword)
		if !ok {
			continue
		}
		of, kind := s, kindOfSchema(s)
		if kind == "array" && !slices.Contains(c.types, kind) && s.Items != nil { // each element
			of, kind = s.Items, kindOfSchema(s.Items)
		}
		err := fmt.Errorf("it is for %s, but the field is a %s", orList(c.types), field.Type)
		if slices.Contains(c.types, kind) {
			err = c.set(of, kind, text)
		}
		if err != nil {
			return fmt.Errorf("tag %s:%q: %w", c.keyword, text, err)
		}
	}
	for _, bounds := range [...]struct {
		keyword     string
		least, most *float64
	}{
		{"minimum", s.Minimum, s.Maximum}, {"minLength", floatOf(s.MinLength), floatOf(s.MaxLength)},
		{"minItems", floatOf(s.MinItems), floatOf(s.MaxItems)},
	} {
		if bounds.least != nil && bounds.most != nil && *bounds.least > *bounds.most {
			return fmt.Errorf("%s is %v and exceeds the maximum, %v", bounds.keyword, *bounds.least, *bounds.most)
		}
	}
	return nil
}

// kindOfSchema returns a schema's JSON type, without a pointer's null. It returns an empty string for several types.
func kindOfSchema(s *jsonschema.Schema) string {
	kinds := slices.DeleteFunc(append(slices.Clone(s.Types), s.Type), func(kind string) bool { return kind == "" || kind == "null" })
	if len(kinds) != 1 {
		return ""
	}
	return kinds[0]
}

// setEnum reads comma-separated values.
func setEnum(s *jsonschema.Schema, kind, text string) error {
	var values []any
	for value := range strings.SplitSeq(text, ",") {
		value = strings.TrimSpace(value)
		if value == "" {
			return errors.New("a value is empty: write values with commas between them")
		}
		if kind == "string" {
			values = append(values, value)
			continue
		}
		if number, err := parseFinite(value); err != nil {
			return err
		} else if kind == "integer" && number != math.Trunc(number) {
			return fmt.Errorf("%q is not an integer", value)
		}
		values = append(values, json.Number(value))
	}
	for i, value := range values {
		if slices.Contains(values[:i], value) {
			return fmt.Errorf("%v is listed twice", value)
		}
	}
	s.Enum = values
	return nil
}

// setBound sets a number that narrows the type's range.
func setBound(to **float64, kind, text string, narrower func(own, typed float64) bool) error {
	number, err := parseFinite(text)
	switch {
	case err != nil:
		return err
	case kind == "integer" && number != math.Trunc(number):
		return errors.New("expected an integer")
	case *to != nil && !narrower(number, **to):
		return fmt.Errorf("it is outside the range of the type, whose limit is %v", **to)
	}
	*to = &number
	return nil
}

// setCount sets a count.
func setCount(to **int, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("expected a whole number, 0 or more")
	}
	if *to != nil && **to != n { // a Go array has a fixed length
		return fmt.Errorf("the type has %d", **to)
	}
	*to = &n
	return nil
}

func parseFinite(text string) (float64, error) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(number, 0) || math.IsNaN(number) || !json.Valid([]byte(text)) {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return number, nil
}

func floatOf(n *int) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}
