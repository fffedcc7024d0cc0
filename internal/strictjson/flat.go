package strictjson

import (
	"reflect"
	"strings"
)

// Flat checks and decodes arguments into one flat struct type in a single pass. It is a fast path for
// valid arguments in the usual format: it reports no errors, and leaves other arguments to the slower functions.
// Without it, checking one call's arguments takes three times as long as the rest of its step.
//
// A struct type is flat when all its fields are exported. Their types are string, bool, integer, float, a pointer to
// one of these, or []string, without methods for decoding. The only json tag options are omitempty and omitzero; a
// field with neither is required.
type Flat struct {
	fields   []flatField
	required uint64 // bit i is set if fields[i] is required
}

type flatField struct {
	name   string
	key    string // the name as it is usually written: in quotes, followed by a colon
	index  int
	target reflect.Type // the pointer's target; nil if the field is not a pointer
}

// FlatOf prepares decoding into a struct type. It returns nil if the type is not flat.
func FlatOf(t reflect.Type) *Flat {
	if t.Kind() != reflect.Struct || t.NumField() > 64 || ReadsBy(t) != ByKind {
		return nil
	}
	f := &Flat{}
	names := make(map[string]bool)
	for field := range t.Fields() {
		name, optional, skip, plain := flatTag(field)
		if skip {
			continue
		}
		read, ok := flatFieldOf(field)
		if !ok || !plain || names[fold(name)] {
			return nil
		}
		names[fold(name)] = true
		if !optional {
			f.required |= 1 << len(f.fields)
		}
		read.name, read.key = name, `"`+name+`":`
		f.fields = append(f.fields, read)
	}
	return f
}

// flatTag reads a field's json tag; plain is false if the field cannot be in a flat struct.
func flatTag(field reflect.StructField) (name string, optional, skip, plain bool) {
	tag := field.Tag.Get("json")
	if tag == "-" || (!field.IsExported() && !field.Anonymous) {
		return "", false, true, true
	}
	name, options, _ := strings.Cut(tag, ",")
	if name == "" {
		name = field.Name
	}
	plain = !field.Anonymous && plainName(`"`+name+`"`, 0) == len(name)+2 && !strings.ContainsAny(name, "'`")
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitempty", "omitzero":
			optional = true
		default:
			plain = false
		}
	}
	return name, optional, false, plain
}

func flatFieldOf(field reflect.StructField) (flatField, bool) {
	f, t := flatField{index: field.Index[0]}, field.Type
	if t.Kind() == reflect.Pointer && ReadsBy(t) == ByKind {
		t = t.Elem()
		f.target = t
	}
	if ReadsBy(t) != ByKind || t == numberType {
		return f, false
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return f, true
	case reflect.Slice:
		element := t.Elem()
		return f, f.target == nil && element.Kind() == reflect.String && element != numberType && ReadsBy(element) == ByKind
	}
	return f, false
}
