package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// AP-55
func TestText(t *testing.T) {
	values := map[string]string{"a": "1", "b.c": "${a}", "list.0": "x", "nasty": `"; rm -rf ~; $(x) ${a}`, "empty": ""}
	value := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	for text, want := range map[string]string{
		"":                       "",
		"plain":                  "plain",
		"${a}":                   "1",
		" ${a}  ${a}\n":          " 1  1\n",
		"${b.c}":                 "${a}",
		"${list.0}${list.1}":     "x${list.1}",
		"${unknown} $a ${a":      "${unknown} $a ${a",
		"${ a }${}${a..b}${${a}": "${ a }${}${a..b}${1",
		"<${nasty}>":             `<"; rm -rf ~; $(x) ${a}>`,
		"[${empty}]":             "[]",
	} {
		assert.Equal(t, want, textOf(text).with(value), text)
	}
}

// Whatever the text and the value are, the value arrives as it is, once for each time
// that it is named, and nothing else changes.
func FuzzText(f *testing.F) {
	f.Add("say ${name} twice: ${name}", "$(touch x)")
	f.Add("${other}${name", "${name}")
	f.Add("$${name}}", "\x00\xff\n\"'")
	f.Fuzz(func(t *testing.T, source, value string) {
		lookup := func(name string) (string, bool) { return value, name == "name" }
		want := strings.ReplaceAll(source, "${name}", value)
		if strings.Contains(source, "${name}") || !strings.Contains(source, "${") {
			require.Equal(t, want, textOf(source).with(lookup))
		} else {
			require.Equal(t, source, textOf(source).with(lookup))
		}
	})
}

func TestEdited(t *testing.T) {
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	for _, tc := range []struct {
		object string
		set    map[string]json.RawMessage
		remove []string
		want   string // JSON, or a part of the error behind "!"
	}{
		{`{"a":1}`, map[string]json.RawMessage{"a": raw(`"x"`)}, nil, `{"a":"x"}`},
		{`{}`, map[string]json.RawMessage{"a.b.c": raw(`1`)}, nil, `{"a":{"b":{"c":1}}}`},
		{`{"a":{"b":1,"c":2}}`, nil, []string{"a.b", "x.y"}, `{"a":{"c":2}}`},
		{`{"a":[1,{"b":2}]}`, map[string]json.RawMessage{"a.1.b": raw(`3`)}, []string{"a.0"}, `{"a":[{"b":3}]}`},
		{`{"a":[1]}`, map[string]json.RawMessage{"a.1": raw(`3`)}, nil, `!unknown element "1" in a list of 1`},
		{`{"a":1}`, map[string]json.RawMessage{"a.b": raw(`3`)}, nil, `!the value that holds it is not an object`},
		{`{"a":null}`, map[string]json.RawMessage{"a.b": raw(`3`)}, nil, `{"a":{"b":3}}`},
		{`{"big":12345678901234567890,"a":1}`, nil, []string{"a"}, `{"big":12345678901234567890}`},
	} {
		got, err := editObject(tc.object, tc.set, tc.remove)
		if reason, fails := strings.CutPrefix(tc.want, "!"); fails {
			assert.ErrorContains(t, err, reason)
			continue
		}
		require.NoError(t, err)
		assert.JSONEq(t, tc.want, string(got))
		if strings.Contains(tc.want, "1234567890") {
			assert.Contains(t, string(got), "12345678901234567890")
		}
	}
}
