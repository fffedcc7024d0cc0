package evasion

import (
	"encoding/json"
	"fmt"
	"strings"
)

// marshalText returns the JSON text of value.
func marshalText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // the value comes from the test
	}
	return string(text)
}

// texts returns JSON texts in which the argument has the value, by the name of the variation. An agent rejects some
// of them before it asks hooks.
func (g Guard) texts(value, harmless string) map[string]string {
	plain := g.arguments(g.Argument, value)
	name, text, other := marshalText(g.Argument), marshalText(value), marshalText(harmless)
	// member returns the arguments and one more member, given as JSON text.
	member := func(written string) string {
		if rest := marshalText(g.With); len(g.With) > 0 {
			return strings.TrimSuffix(rest, "}") + "," + written + "}"
		}
		return "{" + written + "}"
	}
	return map[string]string{
		"plain":                          plain,
		"escaped":                        member(name + ":" + escapeAll(value)),
		"escaped name":                   member(escapeAll(g.Argument) + ":" + text),
		"escaped spaces":                 member(name + ":" + strings.ReplaceAll(text, " ", `\u0020`)),
		"escaped slashes":                member(name + ":" + strings.ReplaceAll(text, "/", `\/`)),
		"white space":                    member("\n\t" + name + " \n:\t " + text + "\r\n "),
		"behind another member":          member(`"zz_note":"x",` + name + ":" + text),
		"before another member":          member(name + ":" + text + `,"zz_note":"x"`),
		"behind a nested namesake":       member(`"zz_note":{` + name + ":" + other + "}," + name + ":" + text),
		"given twice, harmless first":    member(name + ":" + other + "," + name + ":" + text),
		"given twice, harmless last":     member(name + ":" + text + "," + name + ":" + other),
		"given twice, escaped once":      member(name + ":" + other + "," + escapeAll(g.Argument) + ":" + text),
		"in upper case beside it":        member(name + ":" + other + "," + marshalText(strings.ToUpper(g.Argument)) + ":" + text),
		"in title case before it":        member(marshalText(titleCase(g.Argument)) + ":" + text + "," + name + ":" + other),
		"text behind the arguments":      plain + plain,
		"arguments in a text":            marshalText(plain),
		"arguments in a list":            "[" + plain + "]",
		"arguments with a byte mark":     "\ufeff" + plain,
		"arguments with a trailing mark": strings.TrimSuffix(plain, "}") + ",}",
	}
}

// escapeAll returns the JSON string with every character escaped.
func escapeAll(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		if r > 0xffff {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\u%04X`, r)
	}
	b.WriteByte('"')
	return b.String()
}

func titleCase(name string) string {
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// wrongPlaces returns arguments without a string at the argument's place, by the name of the variation.
func (g Guard) wrongPlaces(value string) map[string]string {
	out := map[string]string{
		"without arguments":      "",
		"with empty arguments":   "{}",
		"without the argument":   marshalText(g.With),
		"with null":              g.arguments(g.Argument, nil),
		"in a list":              g.arguments(g.Argument, []any{value}),
		"as a list of words":     g.arguments(g.Argument, strings.Fields(value)),
		"in an empty list":       g.arguments(g.Argument, []any{}),
		"in an object":           g.arguments(g.Argument, map[string]any{g.Argument: value}),
		"as a name":              g.arguments(g.Argument, map[string]any{value: true}),
		"as a boolean":           g.arguments(g.Argument, true),
		"as a number":            g.arguments(g.Argument, 7),
		"nested":                 marshalText(map[string]any{"arguments": map[string]any{g.Argument: value}}),
		"renamed to upper case":  g.arguments(strings.ToUpper(g.Argument), value),
		"renamed to title case":  g.arguments(titleCase(g.Argument), value),
		"renamed with a space":   g.arguments(g.Argument+" ", value),
		"renamed with a NUL":     g.arguments(g.Argument+"\x00", value),
		"renamed with a letter":  g.arguments(g.Argument+"s", value),
		"renamed to a dash":      g.arguments("-"+g.Argument, value),
		"renamed to a synonym":   g.arguments("input", value),
		"renamed to a short one": g.arguments(g.Argument[:1], value),
		"with an empty name":     g.arguments("", value),
	}
	if len(g.With) == 0 {
		out["without the argument"] = "{}"
	}
	return out
}
