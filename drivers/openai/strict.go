package openai

import (
	"slices"

	"github.com/samber/lo"
)

// The limits for strict schemas.
const (
	strictDepth      = 10
	strictProperties = 5000
)

// strictWords lists the keywords that strict schemas may contain.
var strictWords = []string{
	"type", "title", "description", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
	"$ref", "$defs", "definitions", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
	"exclusiveMaximum", "minItems", "maxItems",
}

// strictFormats lists the string formats that strict schemas may name.
var strictFormats = []any{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// strictSchema reports whether a schema follows the rules for strict schemas. The top is an object without
// alternatives. All objects require all their members and allow no other members. The service accepts other schemas,
// too, but does not enforce them strictly.
func strictSchema(schema any) bool {
	root, ok := schema.(map[string]any)
	if !ok || root["type"] != "object" || root["anyOf"] != nil {
		return false
	}
	left := strictProperties
	return strictIn(root, strictDepth, &left)
}

func strictIn(schema any, depth int, left *int) bool {
	s, ok := schema.(map[string]any)
	if !ok || depth < 0 || !lo.Every(strictWords, lo.Keys(s)) {
		return false
	}
	if format, ok := s["format"]; ok && !slices.Contains(strictFormats, format) {
		return false
	}
	if isObject(s) && !strictObject(s, left) {
		return false
	}
	if items, ok := s["items"]; ok && !strictIn(items, depth-1, left) {
		return false
	}
	for _, word := range []string{"properties", "$defs", "definitions"} {
		members, ok := s[word].(map[string]any)
		if !ok && s[word] != nil {
			return false
		}
		for _, member := range members {
			if !strictIn(member, depth-1, left) {
				return false
			}
		}
	}
	choices, ok := s["anyOf"].([]any)
	return (ok || s["anyOf"] == nil) && lo.EveryBy(choices, func(choice any) bool { return strictIn(choice, depth-1, left) })
}

// isObject reports whether a schema describes objects: "object" is its type or one of its types, or it names members.
func isObject(s map[string]any) bool {
	types, _ := s["type"].([]any)
	return s["type"] == "object" || slices.Contains(types, any("object")) || s["properties"] != nil
}

// strictObject reports whether an object requires all its members and allows no others.
func strictObject(s map[string]any, left *int) bool {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	*left -= len(properties)
	return s["additionalProperties"] == false && *left >= 0 && len(lo.Uniq(required)) == len(properties) &&
		lo.EveryBy(required, func(name any) bool {
			text, ok := name.(string)
			return ok && lo.HasKey(properties, text)
		})
}
