package registry_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/registry"
)

const clerk = `name: clerk
description: pays bills
model: scripted/x
instructions: |
  Pay what is due.
temperature: 0
options: {seed: 7, list: [a, null, true]}
tools: [pay, disk: {file: a.txt}]
mcp: [fs]
preHooks: [first]
hooks:
  - log: {file: a.log, every: 1m}
  - log: {file: b.log}
postHooks: [bill]
capabilities: [polite]
agents: [helper]
guards: {steps: 5, time: 90s}
output: {schema: {type: object, properties: {sum: {type: number}}}}
`

// SW-20: a definition with names of hooks comes back as it was, as YAML and as JSON; what
// is absent is empty.
func TestRoundTrip(t *testing.T) {
	read, err := registry.Read("clerk.yaml", []byte(clerk))
	require.NoError(t, err)
	assert.Equal(t, registry.Hooks{{Name: "first"}}, read.PreHooks)
	assert.Equal(t, registry.Hooks{{Name: "bill"}}, read.PostHooks)
	assert.Equal(t, 90*time.Second, read.Guards.Time)

	asYAML, err := read.YAML()
	require.NoError(t, err)
	again, err := registry.Read("again.yaml", asYAML)
	require.NoError(t, err)
	assert.Equal(t, read, again)

	asJSON, err := json.Marshal(read)
	require.NoError(t, err)
	var fromJSON registry.Definition
	require.NoError(t, json.Unmarshal(asJSON, &fromJSON))
	assert.Equal(t, read, fromJSON)

	for _, nothing := range []string{"{}", `{"preHooks": [], "postHooks": [], "hooks": [], "tools": [], "agents": []}`} {
		var empty registry.Definition
		require.NoError(t, json.Unmarshal([]byte(nothing), &empty))
		assert.Equal(t, registry.Definition{}, empty)
	}
	text, err := json.Marshal(registry.Definition{})
	require.NoError(t, err)
	assert.Equal(t, "{}", string(text))
	require.ErrorContains(t, json.Unmarshal([]byte(`{"preHoks": ["x"]}`), new(registry.Definition)),
		`definition.json:1:2: unknown key "preHoks" (did you mean "preHooks"?)`)
}

// SW-20: whatever texts and numbers are in it.
func TestAnyDefinitionComesBack(t *testing.T) {
	word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "no", "007", "1e3", "~", "a: b", " x ", "#", "null", "- a", "\n\n", "'\"\\", "=", "<<"}))
	name := rapid.StringMatching(`[a-z][a-z-]{0,8}`)
	settings := rapid.MapOfN(word, rapid.OneOf(
		rapid.Map(word, func(s string) any { return s }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int(), func(i int) any { return json.Number(jsonOf(i)) }),
		rapid.Map(rapid.Float64(), func(f float64) any { return json.Number(jsonOf(f)) }),
		rapid.Just[any](nil),
		rapid.Map(rapid.SliceOfN(word, 1, 3), func(l []string) any {
			out := make([]any, len(l))
			for i, s := range l {
				out[i] = s
			}
			return out
		}),
	), 1, 4)
	parts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) registry.Part {
		p := registry.Part{Name: word.Draw(t, "name")}
		if rapid.Bool().Draw(t, "with settings") {
			p.Settings = settings.Draw(t, "settings")
		}
		return p
	}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		d := registry.Definition{
			Name: word.Draw(t, "name"), Instructions: word.Draw(t, "instructions"), Model: word.Draw(t, "model"),
			MaxOutputTokens: rapid.IntRange(0, 1<<40).Draw(t, "tokens"),
		}
		if list := parts.Draw(t, "tools"); len(list) > 0 {
			d.Tools = list
		}
		if list := parts.Draw(t, "pre"); len(list) > 0 {
			d.PreHooks = list
		}
		if rapid.Bool().Draw(t, "options") {
			d.Options = settings.Draw(t, "options")
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "servers") {
			s := registry.Server{Name: name.Draw(t, "server") + string(rune('0'+i))}
			if rapid.Bool().Draw(t, "inline") {
				s.Command = rapid.SliceOfN(word, 1, 3).Draw(t, "command")
			}
			d.MCP = append(d.MCP, s)
		}
		cost := rapid.Float64Range(0.01, 1e9).Draw(t, "cost")
		d.Guards = registry.Guards{Cost: cost, Time: time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "time"))}
		for _, as := range []string{"a.yaml", "a.json"} {
			text, err := d.YAML()
			if as == "a.json" {
				text, err = d.MarshalJSON()
			}
			require.NoError(t, err)
			again, err := registry.Read(as, text)
			if err != nil {
				t.Fatalf("%v\nof\n%s", err, text)
			}
			assert.Equal(t, d, again, "%s", text)
		}
	})
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
