package toolexec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"unsafe"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Decoder reads argument texts into values of type In, strictly: what it takes is one JSON object with a single
// reading that fits the schema, and what it puts into the value is what that object says. Flat structs are checked
// and decoded in one pass. Make one with NewDecoder, the zero value is of no use. A Decoder does not change and may be
// used by many goroutines at once.
type Decoder[In any] struct {
	schema *Schema
	flat   *strictjson.Flat // nil: In is not flat, or the schema is not the inferred one
}

// NewDecoder prepares reading arguments into In under the schema that SchemaFor infers.
func NewDecoder[In any]() (*Decoder[In], error) {
	schema, err := SchemaFor[In]()
	if err != nil {
		return nil, err
	}
	return &Decoder[In]{schema: schema, flat: flatOf(reflect.TypeFor[In]())}, nil
}

// newDecoderWith prepares reading arguments into In under a schema of the caller's, for rules that a Go type
// cannot tell. Every property the schema names must have a place in In.
func newDecoderWith[In any](schema *Schema) (*Decoder[In], error) {
	t := reflect.TypeFor[In]()
	if err := hasPlaces(t, slices.Sorted(maps.Keys(schema.compiled.Properties))); err != nil {
		return nil, fmt.Errorf("decoding arguments into %s: %w", t, err)
	}
	return &Decoder[In]{schema: schema}, nil
}

// Schema returns what the arguments are checked against.
func (d *Decoder[In]) Schema() *Schema { return d.schema }

// Decode checks an argument text and decodes it into in. Empty stands for {}. What in held before is gone: fields
// without a member are zero, and so is all of in after an error, which is an *agent.ArgumentsError.
//
// Names are case-sensitive. 10.0 fits an integer field, 1.5 and what is out of range do not. Numbers in fields of
// type any are json.Number and keep their digits. Strings may share memory with args.
func (d *Decoder[In]) Decode(args string, in *In) error {
	var zero In
	*in = zero
	if args == "" {
		args = "{}"
	}
	if d.flat != nil && d.flat.Decode(args, unsafe.Pointer(in)) {
		return nil
	}
	*in = zero
	read, err := d.decodeSlowly(args)
	if err != nil {
		return err
	}
	*in = *read
	return nil
}

// decodeSlowly returns the reference, and where all error texts come from. It makes its own In, so that Decode's need
// not live on the heap.
func (d *Decoder[In]) decodeSlowly(args string) (*In, error) {
	if err := d.schema.Validate(args); err != nil {
		return nil, err
	}
	in := new(In)
	if err := strictjson.UnmarshalStrict(args, in); err != nil {
		return nil, &agent.ArgumentsError{Problems: []agent.ArgumentProblem{problemOf(err)}}
	}
	return in, nil
}

// flatOf returns nil unless the inferred schema asks of a flat struct no more than its Go types do.
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

// declares tells whether a type is a SchemaSource.
func declares(t reflect.Type) bool { return t.Implements(reflect.TypeFor[SchemaSource]()) }
