package toolexec

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

func compiled(t testing.TB, raw string) *Schema {
	t.Helper()
	s, err := CompileSchema(raw)
	require.NoError(t, err)
	return s
}

func TestSchemaKeepsItsText(t *testing.T) {
	s := compiled(t, ` { "type": "object",
		"properties": {"z": {"type": "number", "maximum": 1.50}, "a": {"const": 12345678901234567890}} } `)
	const want = `{"type":"object","properties":{"z":{"type":"number","maximum":1.50},"a":{"const":12345678901234567890}}}`
	assert.Equal(t, want, s.String())
	text, err := json.Marshal(map[string]any{"parameters": s})
	require.NoError(t, err)
	assert.Equal(t, `{"parameters":`+want+`}`, string(text))
}

func TestCompileSchemaRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		``:                                         "the text is empty",
		`[]`:                                       "expected a schema object, got array of 0 items",
		`true`:                                     "expected a schema object, got boolean true",
		`{"type":"string"}`:                        "arguments must be an object, but the schema is for string",
		`{"type":"objekt"}`:                        `/type: must be one of "array", `,
		`{"properties":{"a":{"minimum":"1"}}}`:     `/properties/a/minimum: expected number, got string "1"`,
		`{"properties":{"a":1},"properties":{}}`:   `member "properties" is given twice`,
		`{"$ref":"#/$defs/nope"}`:                  "not found",
		`{"$ref":"other.json"}`:                    "references to other documents are not supported",
		`{"$ref":"https://example.com/s.json"}`:    "references to other documents are not supported (https://example.com/s.json)",
		`{"$ref":"file:///etc/passwd"}`:            "references to other documents are not supported",
		`{"$schema":"https://example.com/mine"}`:   "references to other documents are not supported",
		`{"properties":{"a":{"pattern":"(?=x)"}}}`: "/properties/a/pattern: must be a valid regex",
	} {
		_, err := CompileSchema(raw)
		require.Error(t, err, raw)
		assert.ErrorContains(t, err, want, raw)
		assert.ErrorContains(t, err, "compiling schema: ", raw)
	}
}

func TestCompileSchemaHonoursTheDraft(t *testing.T) {
	const body = `"type":"object","properties":{"a":{"type":"array","items":[{"type":"integer"}],"additionalItems":false},"m":{"format":"email"}}}`
	draft7 := compiled(t, `{"$schema":"http://json-schema.org/draft-07/schema#",`+body)
	assert.EqualError(t, draft7.Validate(`{"a":["x",1],"m":"me"}`), `checking arguments: 3 problems: /a: has 1 item too many; `+
		`/a/0: expected integer, got string "x"; /m: must be a valid email; got string "me"`)
	_, err := CompileSchema(`{` + body) // a list of items is no longer a schema in 2020-12
	assert.ErrorContains(t, err, "/properties/a/items: expected ")

	now := compiled(t, `{"type":"object","properties":{"a":{"prefixItems":[{"type":"integer"}],"items":false},"m":{"format":"email"}}}`)
	assert.EqualError(t, now.Validate(`{"a":[1,2],"m":"me"}`), "checking arguments: /a/1: is not allowed here")
}

func TestValidateReadsEmptyAsNoArguments(t *testing.T) {
	assert.NoError(t, compiled(t, `{}`).Validate(""))
	assert.EqualError(t, compiled(t, `{"required":["a"]}`).Validate(""), "checking arguments: /a: is missing")
}

func TestValidateTellsMalformedFromInvalid(t *testing.T) {
	s := compiled(t, `{"properties":{"a":{"type":"integer"}}}`)
	var wrong *agent.ArgumentsError
	require.ErrorAs(t, s.Validate(`{"a":1,"A":2}`), &wrong)
	assert.True(t, wrong.Malformed)
	require.ErrorAs(t, s.Validate(`{"a":"1"}`), &wrong)
	assert.False(t, wrong.Malformed)
	assert.Equal(t, []agent.ArgumentProblem{
		{Path: "/a", Message: `expected integer, got string "1": give the integer itself, not inside a string`},
	}, wrong.Problems)
}

func TestValidateCountsNumbersExactly(t *testing.T) {
	s := compiled(t, `{"properties":{"n":{"type":"integer","maximum":9007199254740993}}}`)
	for _, ok := range []string{`10`, `10.0`, `1e1`, `9007199254740993`, `9007199254740993.000`} {
		assert.NoError(t, s.Validate(`{"n":`+ok+`}`), ok)
	}
	assert.EqualError(t, s.Validate(`{"n":9007199254740994}`), "checking arguments: /n: must be at most 9007199254740993; got integer 9007199254740994")
	assert.EqualError(t, s.Validate(`{"n":10.5}`), "checking arguments: /n: expected integer, got number 10.5")
}

func TestSchemaIsSafeForConcurrentUse(t *testing.T) {
	s := compiled(t, `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"array","items":{"type":"integer"}}}}`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 50 {
				assert.NoError(t, s.Validate(fmt.Sprintf(`{"a":[%d]}`, i)))
				assert.Error(t, s.Validate(`{"a":["x"]}`))
			}
		})
	}
	all.Wait()
}

// Nothing that passes for a schema and for arguments may bring the checker down.
func FuzzValidate(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer","multipleOf":0.1}}}`, `{"a":1e999}`)
	f.Add(`{"oneOf":[{"required":["a"]},{"required":["b"]}],"propertyNames":{"pattern":"^a"}}`, `{"a":1,"b":2}`)
	f.Add(`{"$ref":"#/$defs/x","$defs":{"x":{"additionalProperties":{"$ref":"#/$defs/x"}}}}`, `{"a":{"b":{}}}`)
	f.Fuzz(func(t *testing.T, raw, args string) {
		s, err := CompileSchema(raw)
		if err != nil {
			return
		}
		err = s.Validate(args)
		if err != nil && (len(err.Error()) > 5000 || !strings.HasPrefix(err.Error(), "checking arguments: ") && !strings.HasPrefix(err.Error(), "reading arguments: ")) {
			t.Fatalf("%q with %q: %v", raw, args, err)
		}
	})
}
