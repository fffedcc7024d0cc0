package scrub_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks/internal/scrub"
)

// walker takes out the word secret, what is called hidden, and the number 42.
var walker = scrub.Walker{
	Text: func(text string) string { return strings.ReplaceAll(text, "secret", "…") },
	Member: func(name, _, after string) string {
		if name == "hidden" {
			return "!"
		}
		return after
	},
	Number: func(_, digits string) string { return strings.ReplaceAll(digits, "42", "…") },
}

func TestString(t *testing.T) {
	for text, want := range map[string]string{
		"a secret":                          "a …",
		`{"a": "secret", "b" : 1.50 }`:      `{"a": "…", "b" : 1.50 }`,
		`{"a":"s\u0065cret\n"}`:             `{"a":"…\n"}`,
		`{"a":"\u0061"}`:                    `{"a":"\u0061"}`,
		`{"hidden":"x","y":"x"}`:            `{"hidden":"!","y":"x"}`,
		`{"hidden":["x"]}`:                  `{"hidden":["!"]}`,
		`{"hidden":["x", 1, "y"]}`:          `{"hidden":["!", 1, "!"]}`,
		`[{"hidden":[["x"],["y"]]},"z"]`:    `[{"hidden":[["!"],["!"]]},"z"]`,
		`{"hidden":"a secret x"}`:           `{"hidden":"!"}`,
		`{"secret":42}`:                     `{"…":"…"}`,
		`[1, 42, 421, -42.5]`:               `[1, "…", "…1", "-….5"]`,
		`"secret"`:                          `"…"`,
		`{"in":"{\"a\":\"s\\u0065cret\"}"}`: `{"in":"{\"a\":\"…\"}"}`,
		`{"a": secret`:                      `{"a": …`,
		`{"a":"\ud800 secret"}`:             "{\"a\":\"\\\\ud800 …\"}",
		"":                                  "",
	} {
		assert.Equal(t, want, walker.String(text), text)
	}
}

// A long list of objects takes no time per closing brace.
func TestManyObjects(t *testing.T) {
	objects := strings.Repeat(`{},`, 1<<20) + `42]}`
	assert.Equal(t, `{"hidden": [`+strings.Replace(objects, "42", `"…"`, 1), walker.String(`{"hidden": [`+objects))
}

func TestContent(t *testing.T) {
	picture := agent.Image("image/png", []byte("\x89PNG secret"))
	content := walker.Content(agent.ContentOf(agent.Text("secret"), picture, agent.File("secret.txt", "text/plain", []byte("secret")),
		agent.FileURL("x", "data:text/plain;base64,c2VjcmV0"), agent.File("x", "x/y", []byte{0xff, 's', 'e', 'c', 'r', 'e', 't'}),
		agent.File("x", "text/plain; charset=latin1", []byte{0xff, 's', 'e', 'c', 'r', 'e', 't'})))
	var got []agent.Part
	for _, p := range content.Parts() {
		got = append(got, p)
	}
	assert.Equal(t, []agent.Part{
		agent.Text("…"), picture, agent.File("….txt", "text/plain", []byte("…")), agent.FileURL("x", "data:text/plain;base64,4oCm"),
		agent.File("x", "x/y", []byte{0xff, 's', 'e', 'c', 'r', 'e', 't'}),
		agent.File("x", "text/plain; charset=latin1", []byte("\xff…")),
	}, got)
}

// What was JSON stays JSON, and a walker that changes nothing changes nothing.
func FuzzString(f *testing.F) {
	f.Add(`{"a":[1,"secret",{"hidden":"x"}],"b":"{\"c\":42}"}`)
	f.Add(`"\ud800"`)
	f.Fuzz(func(t *testing.T, text string) {
		same := scrub.Walker{
			Text: func(text string) string { return text }, Member: func(_, _, after string) string { return after }, Number: func(_, digits string) string { return digits },
		}
		require.Equal(t, text, same.String(text))
		if json.Valid([]byte(text)) {
			after := walker.String(text)
			require.True(t, json.Valid([]byte(after)), "%q became %q", text, after)
		}
	})
}
