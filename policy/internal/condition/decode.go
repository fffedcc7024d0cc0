package condition

import (
	"encoding/json"
	"math"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// decodeObject reads a JSON object into a map of CEL values, so that lookups need no conversion. Empty text is the
// empty object.
func decodeObject(text string) (map[string]any, error) { return treeOf(text).members() }

// valueOf converts a Go value, as decoded from JSON or YAML, to a CEL value. An unsupported value becomes an error
// value, which fails the code that uses it.
func valueOf(v any) ref.Val {
	switch v := v.(type) {
	case nil:
		return types.NullValue
	case ref.Val:
		return v
	case bool:
		return types.Bool(v)
	case string:
		return types.String(v)
	case json.Number:
		return numberOf(string(v))
	case float64:
		return types.Double(v)
	case int:
		return types.Int(v)
	case int64:
		return types.Int(v)
	case uint64:
		if v <= math.MaxInt64 {
			return types.Int(v)
		}
		return types.Uint(v)
	case time.Time:
		return types.Timestamp{Time: v}
	case time.Duration:
		return types.Duration{Duration: v}
	case []any:
		out := make([]ref.Val, len(v))
		for i, element := range v {
			out[i] = valueOf(element)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, out)
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = valueOf(member)
		}
		return types.NewStringInterfaceMap(types.DefaultTypeAdapter, out)
	}
	return otherValueOf(v)
}

// otherValueOf converts other Go values through their JSON.
func otherValueOf(v any) ref.Val {
	text, err := strictjson.Marshal(map[string]any{"v": v})
	if err != nil {
		return types.NewErr("conditions do not support a %T: %v", v, err)
	}
	members, err := decodeObject(text)
	if err != nil {
		return types.NewErr("conditions do not support a %T: %v", v, err)
	}
	return members["v"].(ref.Val) //nolint:forcetypeassert // decodeObject returns only CEL values, and the member was written above
}

// numberOf converts a JSON number to a CEL value; see scalarOfNumber.
func numberOf(text string) ref.Val { return scalarOfNumber(text).toCEL() }
