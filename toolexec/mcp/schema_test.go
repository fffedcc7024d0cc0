package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInputSchema(t *testing.T) {
	for name, tc := range map[string]struct {
		given, told string // told as given when empty
		takes       []string
		refuses     []string
	}{
		"nothing at all":   {`null`, `{"type":"object"}`, []string{`{}`, `{"a":1}`}, nil},
		"anything":         {`true`, `{"type":"object"}`, []string{`{"a":1}`}, nil},
		"without a type":   {`{"required":["a"]}`, `{"required":["a"],"type":"object"}`, []string{`{"a":1}`}, []string{`{}`}},
		"draft-07":         {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"string"}},"type":"object"}`, "", []string{`{"a":"x"}`}, []string{`{"a":1}`}},
		"unknown dialect":  {`{"$schema":"https://example.com/mine","properties":{"a":{"type":"string"}},"type":"object"}`, "", []string{`{"a":"x"}`}, []string{`{"a":1}`}},
		"look-around":      {`{"properties":{"a":{"maxLength":3,"pattern":"^(?!x)","type":"string"}},"type":"object"}`, "", []string{`{"a":"y"}`, `{"a":"x"}`}, []string{`{"a":"long"}`}},
		"a back-reference": {`{"properties":{"a":{"items":{"pattern":"(a)\\1"},"type":"array"}},"type":"object"}`, "", []string{`{"a":["aa"]}`}, []string{`{"a":"aa"}`}},
		"a property that is called pattern": {`{"properties":{"pattern":{"type":"string"},"x":{"pattern":"(?=a)"}},"type":"object"}`, "",
			[]string{`{"pattern":"(?=a)"}`}, []string{`{"pattern":1}`}},
		"look-around in names": {`{"additionalProperties":false,"patternProperties":{"(?=x)":{"type":"string"},"^n":{"type":"number"}},"type":"object"}`, "",
			[]string{`{"x":"y","n":1}`}, []string{`{"n":"y"}`}},
		"look-around that must not match": {`{"not":{"properties":{"a":{"pattern":"(?=x)"}}},"type":"object"}`, "", []string{`{"a":"y"}`}, nil},
		"look-around in one of several":   {`{"oneOf":[{"properties":{"a":{"pattern":"(?=x)"}}},{"properties":{"a":{"pattern":"(?=y)"}}}],"type":"object"}`, "", []string{`{"a":"y"}`}, nil},
		"look-around in a definition":     {`{"$defs":{"d":{"pattern":"(?=x)","type":"string"}},"properties":{"a":{"$ref":"#/$defs/d"}},"type":"object"}`, "", []string{`{"a":"x"}`}, []string{`{"a":1}`}},
		"a reference out of the document": {`{"properties":{"a":{"$ref":"https://example.com/a.json"},"b":{"type":"string"}},"type":"object"}`, "", []string{`{"a":1}`}, []string{`{"b":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			var given any
			require.NoError(t, json.Unmarshal([]byte(tc.given), &given))
			told, checked, err := inputSchema(given)
			require.NoError(t, err)
			if tc.told == "" {
				tc.told = tc.given
			}
			assert.Equal(t, tc.told, told)
			for _, args := range tc.takes {
				assert.NoError(t, checked.Validate(args), args)
			}
			for _, args := range tc.refuses {
				assert.Error(t, checked.Validate(args), args)
			}
		})
	}
}

func TestInputSchemaThatIsNone(t *testing.T) {
	for given, want := range map[string]string{
		`7`: "it is not an object", `[]`: "it is not an object", `false`: "it is not an object",
		`{"type":"array"}`: "arguments must be an object", `{"type":"cat"}`: "/type",
		`{"properties":{"a":7}}`: "/properties/a",
	} {
		var value any
		require.NoError(t, json.Unmarshal([]byte(given), &value))
		_, _, err := inputSchema(value)
		require.ErrorContains(t, err, want)
	}
}

func TestToolNames(t *testing.T) {
	long := strings.Repeat("long", 20)
	tools := []string{"a_b", "a.b", "a/b", "fine-1", "ä", long, long + "er", "x" + strings.Repeat("y", 64-len("mcp__s__x"))}
	got := toolNames("s", tools)
	assert.Equal(t, "mcp__s__a_b", got[0], "a name that was good stays")
	assert.Regexp(t, `^mcp__s__a_b_[0-9a-f]{8}$`, got[1])
	assert.Regexp(t, `^mcp__s__a_b_[0-9a-f]{8}$`, got[2])
	assert.Equal(t, []string{"mcp__s__fine-1", "mcp__s___"}, got[3:5])
	assert.Equal(t, "mcp__s__"+tools[7], got[7], "64 bytes are not too many")
	seen := map[string]bool{}
	for i, name := range got {
		assert.LessOrEqual(t, len(name), maxName)
		assert.Equal(t, sanitizeName(name), name)
		assert.False(t, seen[name], "%q comes twice", name)
		seen[name] = true
		if i != 0 {
			assert.Contains(t, toolNames("s", []string{"a_b", "a/b", tools[i]}), name, "whatever else is listed")
		}
	}
}

func TestTailKeepsTheEndInWholeLines(t *testing.T) {
	var kept tail
	for range 1000 {
		_, err := kept.Write([]byte("0123456789\n"))
		require.NoError(t, err)
	}
	text := kept.String()
	assert.LessOrEqual(t, len(text), tailBytes)
	assert.True(t, strings.HasPrefix(text, "0123456789\n"), text[:20])
	_, err := kept.Write([]byte(strings.Repeat("x", 10*tailBytes) + "\xff"))
	require.NoError(t, err)
	assert.LessOrEqual(t, len(kept.kept), tailBytes)
	assert.True(t, strings.HasSuffix(kept.String(), "x\uFFFD"))
}
