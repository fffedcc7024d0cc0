package condition

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// kind is an object type: its fields are known when a condition is compiled.
type kind struct {
	name   string
	typ    *cel.Type
	order  []string
	fields map[string]*types.FieldType
	value  map[string]func(any) ref.Val
}

// field is one field of a kind whose objects hold a T.
type field[T any] struct {
	name  string
	typ   *cel.Type
	value func(T) ref.Val
}

func kindOf[T any](name string, fields ...field[T]) *kind {
	k := &kind{
		name: name, typ: cel.ObjectType(name),
		fields: map[string]*types.FieldType{}, value: map[string]func(any) ref.Val{},
	}
	for _, f := range fields {
		k.order = append(k.order, f.name)
		k.value[f.name] = func(v any) ref.Val { return f.value(v.(T)) } //nolint:forcetypeassert // objects of the kind hold a T
		k.fields[f.name] = &types.FieldType{
			Type:    f.typ,
			IsSet:   func(any) bool { return true },
			GetFrom: func(v any) (any, error) { return f.value(v.(T)), nil }, //nolint:forcetypeassert // the same
		}
	}
	return k
}

// objectOf returns an object that holds v, which must be the T of the kind.
func (k *kind) objectOf(v any) ref.Val { return &object{k, v} }

// kinds holds all kinds by name.
var kinds = map[string]*kind{
	actionKind.name: actionKind, analysisKind.name: analysisKind, commandKind.name: commandKind,
	approvalKind.name: approvalKind, fileKind.name: fileKind, hostKind.name: hostKind, opaqueKind.name: opaqueKind,
}

// object is a value with fields. It is immutable.
type object struct {
	kind *kind
	v    any
}

// ConvertToNative returns the object's Go value.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	if reflect.TypeOf(o.v).AssignableTo(t) {
		return o.v, nil
	}
	return nil, fmt.Errorf("%s cannot be read as %s", o.kind.name, t)
}

// ConvertToType supports only the conversion to a type.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return o.kind.typ
	}
	return types.NewErr("%s cannot be converted to %s", o.kind.name, t.TypeName())
}

// Equal compares the objects' Go values.
func (o *object) Equal(other ref.Val) ref.Val {
	p, ok := other.(*object)
	return types.Bool(ok && p.kind == o.kind && reflect.DeepEqual(o.v, p.v))
}

// Type returns the kind.
func (o *object) Type() ref.Type { return o.kind.typ }

// Value returns the object's Go value.
func (o *object) Value() any { return o.v }

// Get returns a field's value.
func (o *object) Get(name ref.Val) ref.Val {
	if value := o.kind.value[fmt.Sprint(name.Value())]; value != nil {
		return value(o.v)
	}
	return types.NewErr("unknown field %q in %s", name.Value(), o.kind.name)
}

// IsSet reports whether the field exists.
func (o *object) IsSet(name ref.Val) ref.Val {
	return types.Bool(o.kind.value[fmt.Sprint(name.Value())] != nil)
}

// provider adds the kinds to CEL's types.
type provider struct{ *types.Registry }

func newProvider() (*provider, error) {
	r, err := types.NewRegistry()
	return &provider{r}, err
}

// FindStructType finds a kind.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if k := kinds[name]; k != nil {
		return types.NewTypeTypeWithParam(k.typ), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldNames returns a kind's fields.
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	if k := kinds[name]; k != nil {
		return k.order, true
	}
	return p.Registry.FindStructFieldNames(name)
}

// FindStructFieldType returns one of a kind's fields.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if k := kinds[name]; k != nil {
		f, ok := k.fields[field]
		return f, ok
	}
	return p.Registry.FindStructFieldType(name, field)
}

// NewValue always returns an error: objects come only from functions and variables.
func (p *provider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if kinds[name] != nil {
		return types.NewErr("an expression cannot create a %s", name)
	}
	return p.Registry.NewValue(name, fields)
}

// stringList returns a list of strings.
func stringList(of []string) ref.Val { return types.NewStringList(types.DefaultTypeAdapter, of) }

// objectList returns a list of objects of a kind. Each holds a pointer into the slice.
func objectList[T any](k *kind, of []T) ref.Val {
	out := make([]ref.Val, len(of))
	for i := range of {
		out[i] = k.objectOf(&of[i])
	}
	return types.NewRefValList(types.DefaultTypeAdapter, out)
}
