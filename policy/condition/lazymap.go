package condition

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// metadataOf is the metadata of a state as a map whose values are looked up by name, and whose names cannot be listed.
type metadataOf struct{ moment *moment }

// metadataType is a map without the trait of being iterable, so that CEL refuses to go through it.
var metadataType = types.NewObjectType("metadata", traits.ContainerType, traits.IndexerType)

// FindStringKey returns the value of a name, and whether there is one.
func (m metadataOf) FindStringKey(name string) (any, bool) {
	v := m.moment.remember("metadata."+name, func() any {
		if v, ok := m.moment.source.metadata(name); ok {
			return valueOf(v)
		}
		return nil
	})
	return v, v != nil
}

// Get returns the value of a name.
func (m metadataOf) Get(name ref.Val) ref.Val {
	if v, ok := m.Find(name); ok {
		return v
	}
	return types.NewErr("no such key: %v", name.Value())
}

// IsSet reports whether there is a value.
func (m metadataOf) IsSet(name ref.Val) ref.Val { return m.Contains(name) }

// Contains reports whether there is a value.
func (m metadataOf) Contains(name ref.Val) ref.Val {
	_, ok := m.Find(name)
	return types.Bool(ok)
}

// Find returns the value of a name, and whether there is one.
func (m metadataOf) Find(name ref.Val) (ref.Val, bool) {
	text, isText := Text(name)
	v, ok := m.FindStringKey(text)
	if !ok || !isText {
		return nil, false
	}
	return v.(ref.Val), true //nolint:forcetypeassert // FindStringKey gives what valueOf made
}

// ConvertToNative returns an error: it is not possible.
func (m metadataOf) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("the metadata cannot be read as %s: name one of its values", t)
}

// ConvertToType returns an error: it is not possible.
func (m metadataOf) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("the metadata cannot be turned into %s: name one of its values", t.TypeName())
}

// Equal returns an error: the metadata as a whole cannot be compared.
func (m metadataOf) Equal(ref.Val) ref.Val {
	return types.NewErr("the metadata cannot be compared as a whole: name one of its values")
}

// Type returns that of the metadata.
func (m metadataOf) Type() ref.Type { return metadataType }

// Value returns the metadata itself.
func (m metadataOf) Value() any { return m }
