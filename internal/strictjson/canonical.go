package strictjson

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Canonical returns the canonical text of arguments: no white space, members sorted by name, strings escaped in one
// way, numbers by value (1, 1.0 and 10e-1 are the same; large numbers keep all digits). It returns the same errors as
// CheckObject.
func Canonical(args string) (string, error) {
	if err := CheckObject(args); err != nil {
		return "", err
	}
	var members map[string]any
	if err := Unmarshal(args, &members); err != nil {
		return "", err
	}
	return Marshal(canonicalValue(members))
}

// canonicalValue returns a decoded value with canonical numbers. It modifies lists and objects in place.
func canonicalValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = canonicalValue(member)
		}
	case []any:
		for i, element := range v {
			v[i] = canonicalValue(element)
		}
	case json.Number:
		return json.Number(canonicalNumber(string(v)))
	}
	return v
}

// canonicalNumber returns a whole number that fits a Go integer without an exponent, and other numbers with one.
func canonicalNumber(text string) string {
	digits, point, negative := splitDecimal(text)
	switch {
	case digits == "":
		return "0"
	case point >= len(digits) && point <= len("18446744073709551615"):
		digits += strings.Repeat("0", point-len(digits))
	default:
		digits += "e" + strconv.Itoa(point-len(digits))
	}
	if negative {
		return "-" + digits
	}
	return digits
}
