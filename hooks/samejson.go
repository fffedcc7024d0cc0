package hooks

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// jsonValueOf returns a Go value in the format that parseJSON returns for an argument.
func jsonValueOf(v any) (any, error) {
	text, err := strictjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	// CheckObject refuses values that cannot be an argument.
	if err := strictjson.CheckObject(`{"value":` + text + `}`); err != nil {
		return nil, err
	}
	return parseJSON(text)
}

// parseJSON parses one JSON value, with numbers as json.Number.
func parseJSON(text string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// sameJSON compares two results of parseJSON. Numbers are compared by their exact value.
func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameJSON)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameJSON)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || sameNumber(string(a), string(b)))
	}
	return a == b
}

func sameNumber(a, b string) bool {
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}

// jsonKindOf returns the JSON type of a result of parseJSON: integer for a whole number, as in JSON
// Schema.
func jsonKindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		if n, ok := new(big.Rat).SetString(v.String()); ok && n.IsInt() {
			return "integer"
		}
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}
