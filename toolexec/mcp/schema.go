package mcp

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/toolexec"
)

// inputSchema returns a server's schema as text for the model, and the schema for checking arguments. They are the same
// if possible. Otherwise the checked schema is looser: it accepts everything that the server's schema accepts.
func inputSchema(given any) (told string, checked *toolexec.Schema, err error) {
	object, ok := given.(map[string]any)
	switch {
	case given == nil || given == true:
		object = map[string]any{}
	case !ok:
		return "", nil, errors.New("it is not an object")
	}
	object = maps.Clone(object)
	if _, ok := object["type"]; !ok {
		object["type"] = "object" // required by the protocol and by model services
	}
	told = jsonOf(object)
	if checked, err = toolexec.CompileSchema(told); err == nil {
		return told, checked, nil
	}
	loose, _ := loosenSchema(object).(map[string]any)
	for _, without := range []string{"", "$schema"} {
		delete(loose, without)
		if checked, looseErr := toolexec.CompileSchema(jsonOf(loose)); looseErr == nil {
			return told, checked, nil
		}
	}
	return "", nil, err
}

// loosenSchema returns a schema without unsupported parts: patterns that Go's regular expressions do not support
// (look-around, back-references), references out of the document, unknown dialects. In some keywords, a looser part
// would make the whole schema stricter (not, if, oneOf, counts of matches). Such a keyword is loosened itself.
func loosenSchema(schema any) any {
	s, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	out := make(map[string]any, len(s))
	for word, value := range s {
		switch word {
		case "not", "if", "then", "else", "unevaluatedProperties", "unevaluatedItems", "maxContains", "contentSchema":
			continue
		case "$ref", "$dynamicRef", "$recursiveRef":
			if to, ok := value.(string); !ok || !strings.HasPrefix(to, "#") {
				continue
			}
		case "pattern":
			if !isRegexp(value) {
				continue
			}
		case "oneOf":
			word = "anyOf"
			if both, ok := s["anyOf"]; ok { // checking one of the two is enough
				value = both
			}
		}
		out[word] = loosenedWord(word, value)
	}
	if patterns, ok := out["patternProperties"].(map[string]any); ok {
		before := len(patterns)
		maps.DeleteFunc(patterns, func(pattern string, _ any) bool { return !isRegexp(pattern) })
		if len(patterns) < before {
			delete(out, "additionalProperties")
		}
	}
	return out
}

// loosenedWord returns a keyword's value, with the schemas in it loosened.
func loosenedWord(word string, value any) any {
	switch word {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		if schemas, ok := value.(map[string]any); ok {
			out := make(map[string]any, len(schemas))
			for name, schema := range schemas {
				out[name] = loosenSchema(schema)
			}
			return out
		}
	case "items", "additionalItems", "prefixItems", "allOf", "anyOf", "contains", "propertyNames", "additionalProperties":
		if list, ok := value.([]any); ok {
			list = slices.Clone(list)
			for i, schema := range list {
				list[i] = loosenSchema(schema)
			}
			return list
		}
		return loosenSchema(value)
	}
	return value
}

func isRegexp(pattern any) bool {
	text, ok := pattern.(string)
	if !ok {
		return false
	}
	_, err := regexp.Compile(text)
	return err == nil
}
