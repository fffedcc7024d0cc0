package toolexec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Decoder decodes argument text into values of type In, strictly. It accepts one unambiguous JSON object that fits the
// schema, and the value has exactly the object's content. Flat structs are checked and decoded in one pass. Create one
// with NewDecoder; the zero value is not usable. A Decoder is immutable and safe for concurrent use.
type Decoder[In any] struct {
	schema *Schema
	flat   *strictjson.Flat // nil: In is not flat, or the schema is not the inferred one
}

// NewDecoder returns a decoder for In with the schema that SchemaFor infers.
func NewDecoder[In any]() (*Decoder[In], error) {
	schema, err := SchemaFor[In]()
	if err != nil {
		return nil, err
	}
	return &Decoder[In]{schema: schema, flat: flatOf(reflect.TypeFor[In]())}, nil
}

// newDecoderWith returns a decoder for In with the caller's schema, whose rules may go beyond a Go type. In needs a
// field for every property in the schema.
func newDecoderWith[In any](schema *Schema) (*Decoder[In], error) {
	t := reflect.TypeFor[In]()
	if err := hasPlaces(t, slices.Sorted(maps.Keys(schema.compiled.Properties))); err != nil {
		return nil, fmt.Errorf("decoding arguments into %s: %w", t, err)
	}
	return &Decoder[In]{schema: schema}, nil
}

// Schema returns the schema for checking arguments.
func (d *Decoder[In]) Schema() *Schema { return d.schema }

// Decode checks argument text and decodes it into in. Empty text means {}. It overwrites the previous value of in:
// fields without a member become zero, and after an error all of in is zero. The error is an *agent.ArgumentsError.
//
// Names are case-sensitive. An integer field accepts 10.0, but not 1.5 or a value out of range. Numbers in fields of
// type any are json.Number and keep their digits. Strings can share memory with args.
func (d *Decoder[In]) Decode(args string, in *In) error {
	var zero In
	*in = zero
	if args == "" {
		args = "{}"
	}
	if d.flat != nil && d.flat.Decode(args, reflect.ValueOf(in).Elem()) {
		return nil
	}
	*in = zero
	err := d.decodeSlowly(args, in)
	if err != nil {
		*in = zero
	}
	return err
}

// decodeSlowly implements Decode without the fast path. It produces all error messages.
func (d *Decoder[In]) decodeSlowly(args string, in *In) error {
	if err := d.schema.Validate(args); err != nil {
		return err
	}
	if err := strictjson.UnmarshalStrict(args, in); err != nil {
		return &agent.ArgumentsError{Problems: []agent.ArgumentProblem{problemOf(err)}}
	}
	return nil
}

// flatOf returns the fast path for a flat struct. It returns nil if the type is not flat, or if its inferred schema has
// rules beyond its Go types.
func flatOf(t reflect.Type) *strictjson.Flat {
	if t.Kind() != reflect.Struct || declares(t) {
		return nil
	}
	for field := range t.Fields() {
		if isConstrained(field) || declares(field.Type) || field.Type.Kind() == reflect.Pointer && declares(field.Type.Elem()) ||
			field.Type.Kind() == reflect.Slice && declares(field.Type.Elem()) {
			return nil
		}
	}
	return strictjson.FlatOf(t)
}

// declares reports whether a type declares its own schema as a SchemaSource.
func declares(t reflect.Type) bool { return t.Implements(reflect.TypeFor[SchemaSource]()) }
