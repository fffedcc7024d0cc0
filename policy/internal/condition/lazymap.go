package condition

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// metadataOf is a state's metadata as a map that supports lookups by name but not iteration.
type metadataOf struct{ event *event }

// metadataType is a map type without the iterable trait, so that CEL refuses to iterate over it.
var metadataType = types.NewObjectType("metadata", traits.ContainerType, traits.IndexerType)

// FindStringKey returns the value for a name and reports whether it exists.
func (m metadataOf) FindStringKey(name string) (any, bool) {
	v := m.event.remember("metadata."+name, func() any {
		if v, ok := m.event.source.metadata(name); ok {
			return valueOf(v)
		}
		return nil
	})
	return v, v != nil
}

// Get returns the value for a name.
func (m metadataOf) Get(name ref.Val) ref.Val {
	if v, ok := m.Find(name); ok {
		return v
	}
	return types.NewErr("no such key: %v", name.Value())
}

// IsSet reports whether the name has a value.
func (m metadataOf) IsSet(name ref.Val) ref.Val { return m.Contains(name) }

// Contains reports whether the name has a value.
func (m metadataOf) Contains(name ref.Val) ref.Val {
	_, ok := m.Find(name)
	return types.Bool(ok)
}

// Find returns the value for a name and reports whether it exists.
func (m metadataOf) Find(name ref.Val) (ref.Val, bool) {
	text, isText := Text(name)
	v, ok := m.FindStringKey(text)
	if !ok || !isText {
		return nil, false
	}
	return v.(ref.Val), true //nolint:forcetypeassert // FindStringKey returns results of valueOf
}

// ConvertToNative always returns an error.
func (m metadataOf) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("the metadata cannot be read as %s: use one of its values", t)
}

// ConvertToType always returns an error.
func (m metadataOf) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("the metadata cannot be converted to %s: use one of its values", t.TypeName())
}

// Equal always returns an error: the metadata cannot be compared as a whole.
func (m metadataOf) Equal(ref.Val) ref.Val {
	return types.NewErr("the metadata cannot be compared as a whole: use one of its values")
}

// Type returns metadataType.
func (m metadataOf) Type() ref.Type { return metadataType }

// Value returns the metadata itself.
func (m metadataOf) Value() any { return m }
