package condition

import (
	"maps"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// reserved holds the words that cannot follow a dot.
var reserved = map[string]bool{"in": true, "true": true, "false": true, "null": true}

// typeOf returns a constant's type. If the members of a list or map share one type, it becomes the element type.
func typeOf(v ref.Val) *cel.Type {
	switch v := v.(type) {
	case types.String:
		return cel.StringType
	case types.Bool:
		return cel.BoolType
	case types.Int:
		return cel.IntType
	case types.Uint:
		return cel.UintType
	case types.Double:
		return cel.DoubleType
	case types.Timestamp:
		return cel.TimestampType
	case types.Duration:
		return cel.DurationType
	case traits.Mapper:
		return cel.MapType(cel.StringType, commonType(v, func(k ref.Val) ref.Val { return v.Get(k) }))
	case traits.Lister:
		return cel.ListType(commonType(v, func(e ref.Val) ref.Val { return e }))
	}
	return cel.DynType
}

func commonType(of traits.Iterable, value func(ref.Val) ref.Val) *cel.Type {
	var common *cel.Type
	for it := of.Iterator(); it.HasNext() == types.True; {
		t := typeOf(value(it.Next()))
		if common != nil && !common.IsExactType(t) {
			return cel.DynType
		}
		common = t
	}
	if common == nil {
		return cel.DynType
	}
	return common
}

// membersOf returns the sorted member names of a constant map; nil for any other constant.
func membersOf(v *variable) []string {
	if m, ok := v.fixed.Value().(map[string]any); ok {
		return slices.Sorted(maps.Keys(m))
	}
	return nil
}

// parsed decodes JSON; ok is false if it is invalid.
func parsed(text string) (v ref.Val, ok bool) {
	members, err := decodeObject(`{"v":` + text + `}`)
	if err != nil || strictjson.CheckObject(`{"v":`+text+`}`) != nil || len(members) != 1 {
		return nil, false
	}
	v, ok = members["v"].(ref.Val)
	return v, ok
}
