package toolexec

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// The limits for values, descriptions and lists in a message.
const (
	shownBytes  = 60
	shownDetail = 120
	shownValues = 20
)

// describeValue describes a decoded value: its type and, if it is short, the value.
func describeValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean " + strconv.FormatBool(v)
	case string:
		return "string " + strconv.Quote(clipText(v))
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number " + clipText(v.String())
		}
		return "integer " + clipText(v.String())
	case []any:
		return "array of " + pluralize(len(v), "item")
	case map[string]any:
		return "object"
	}
	return fmt.Sprintf("%v", v)
}

// clipText shortens text without splitting a rune.
func clipText(text string) string { return clippedTo(text, shownBytes) }

func clippedTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

func pluralize(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// orList returns "a", "a or b", "a, b or c". null comes last.
func orList(names []string) string {
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return boolOrder(a == "null", b == "null") })
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func boolOrder(a, b bool) int { return lo.Ternary(a, 1, 0) - lo.Ternary(b, 1, 0) }

// listOf lists JSON values as JSON.
func listOf(list []any) string {
	shown := lo.Map(list[:min(len(list), shownValues)], func(v any, _ int) string {
		text, err := strictjson.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return clipText(text)
	})
	if len(list) > shownValues {
		shown = append(shown, "…")
	}
	return strings.Join(shown, ", ")
}

func formatDecimal(n *big.Rat) string {
	if n.IsInt() {
		return n.Num().String()
	}
	return strings.TrimRight(n.FloatString(12), "0")
}

// quotesHint adds advice for the most common mistake of models: a number, list or object written
// inside a string.
func quotesHint(want []string, got any) string {
	text, ok := got.(string)
	if !ok {
		return ""
	}
	var inside any
	if strictjson.Unmarshal(text, &inside) != nil {
		return ""
	}
	kind, _, _ := strings.Cut(describeValue(inside), " ")
	if kind == "integer" && !slices.Contains(want, kind) {
		kind = "number"
	}
	if !slices.Contains(want, kind) || kind == "null" {
		return ""
	}
	return ": give the " + kind + " itself, not inside a string"
}

// describeExpectation describes a property's expected values: types and description.
func describeExpectation(schema map[string]any) string {
	var types []string
	switch t := schema["type"].(type) {
	case string:
		types = []string{t}
	case []any:
		types = lo.FilterMap(t, func(v any, _ int) (string, bool) { s, ok := v.(string); return s, ok })
	}
	text := orList(types)
	if text == "" {
		return ""
	}
	if description, _ := schema["description"].(string); description != "" {
		text += " (" + clippedTo(description, shownDetail) + ")"
	}
	return text
}

// escapePointer and unescapePointer convert a JSON pointer's token.
var (
	escapePointer   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")
)

// jsonPointer returns path tokens as a JSON pointer.
func jsonPointer(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(escapePointer.Replace(token))
	}
	return b.String()
}

// schemaTokens returns a schema location's path tokens, "…#/properties/a".
func schemaTokens(url string) []string {
	_, fragment, _ := strings.Cut(url, "#")
	if !strings.HasPrefix(fragment, "/") {
		return nil
	}
	return lo.Map(strings.Split(fragment[1:], "/"), func(token string, _ int) string {
		return unescapePointer.Replace(token)
	})
}

// valueAt returns the value at a path in a decoded value; nil if there is none.
func valueAt(v any, tokens []string) any {
	for _, token := range tokens {
		switch node := v.(type) {
		case map[string]any:
			v = node[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			v = node[i]
		default:
			return nil
		}
	}
	return v
}

func asObject(v any) map[string]any {
	members, _ := v.(map[string]any)
	return members
}

func mayBe(types *jsonschema.Types, name string) bool {
	return slices.Contains(types.ToStrings(), name)
}
