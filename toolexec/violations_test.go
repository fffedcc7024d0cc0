package toolexec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// Every rule a schema can have, what breaks it, and what the model is told.
func TestViolations(t *testing.T) {
	for _, c := range []struct{ rule, value, want string }{
		{`{"type":"string"}`, `7`, `/v: expected string, got integer 7`},
		{`{"type":["null","integer","boolean"]}`, `{}`, `/v: expected boolean, integer or null, got object`},
		{`{"type":"array"}`, `"[1,2]"`, `/v: expected array, got string "[1,2]": give the array itself, not inside a string`},
		{`{"type":"number"}`, `"7"`, `/v: expected number, got string "7": give the number itself, not inside a string`},
		{`{"type":"object"}`, `[]`, `/v: expected object, got array of 0 items`},
		{`{"type":"integer"}`, `"` + strings.Repeat("é", 99) + `"`, `/v: expected integer, got string "` + strings.Repeat("é", 30) + `…"`},
		{`{"enum":["a",1,null]}`, `"b"`, `/v: must be one of "a", 1, null; got string "b"`},
		{`{"const":{"k":1.0}}`, `true`, `/v: must be {"k":1.0}; got boolean true`},
		{`{"minimum":0.5}`, `0`, `/v: must be at least 0.5; got integer 0`},
		{`{"maximum":5}`, `5.1`, `/v: must be at most 5; got number 5.1`},
		{`{"exclusiveMinimum":1}`, `1`, `/v: must be more than 1; got integer 1`},
		{`{"exclusiveMaximum":1}`, `1`, `/v: must be less than 1; got integer 1`},
		{`{"multipleOf":0.5}`, `0.7`, `/v: must be a multiple of 0.5; got number 0.7`},
		{`{"minLength":2}`, `"é"`, `/v: must have at least 2 characters; has 1`},
		{`{"maxLength":1}`, `"ab"`, `/v: must have at most 1 character; has 2`},
		{`{"pattern":"^a"}`, `"b"`, `/v: must match the pattern ^a; got string "b"`},
		{`{"minItems":1}`, `[]`, `/v: must have at least 1 item; has 0`},
		{`{"maxItems":1}`, `[1,2]`, `/v: must have at most 1 item; has 2`},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, `/v: items must differ, but items 0 and 2 are equal`},
		{`{"contains":{"type":"string"}}`, `[1]`, `/v: has too few items of the form the schema asks for`},
		{`{"contains":{"type":"string"},"maxContains":1}`, `["a","b"]`, `/v: may have at most 1 item of that form; has 2`},
		{`{"minProperties":1}`, `{}`, `/v: must have at least 1 member; has 0`},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, `/v: must have at most 1 member; has 2`},
		{`{"required":["a","b"]}`, `{"a":1}`, `/v/b: is missing`},
		{`{"required":["a"],"properties":{"a":{"type":["string","null"],"description":"its name"}}}`, `{}`, `/v/a: is missing; expected string or null (its name)`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `/v/b: is missing: it must come with "a"`},
		{`{"additionalProperties":false,"properties":{"path":true,"lines":true}}`, `{"Paht":1}`, `/v/Paht: is not known; did you mean "path"?; known: "lines", "path"`},
		{`{"additionalProperties":false}`, `{"a/b":1}`, `/v/a~1b: is not known; no members are allowed here`},
		{`{"unevaluatedProperties":false}`, `{"a":1}`, `/v/a: is not allowed here`},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `/v/ab: has a name that is not allowed: must have at most 1 character; has 2`},
		{`{"not":{"type":"string"}}`, `"a"`, `/v: has a form that the schema forbids; got string "a"`},
		{`{"allOf":[{"minimum":2},{"multipleOf":2}]}`, `1`, `2 problems: /v: must be a multiple of 2; got integer 1; /v: must be at least 2; got integer 1`},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, `/v: expected string or null, got integer 1`},
		{`{"anyOf":[{"$ref":"#/$defs/point"},{"type":"null"}]}`, `{"x":"1"}`, `/v/x: expected integer, got string "1": give the integer itself, not inside a string`},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, `/v: fits none of the 2 allowed forms: (1) /v/a: is missing (2) /v/b: is missing`},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1,"b":1}`, `/v: fits more than one of the forms that exclude each other (1 and 2)`},
		{`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, `/v/b: is missing`},
		{`{"$ref":"#/$defs/point"}`, `{"x":1,"y":2}`, `/v/y: is not known; known: "x"`},
		{`{"items":{"$ref":"#/$defs/point"}}`, `[{"x":1},{"x":null}]`, `/v/1/x: expected integer, got null`},
		{`false`, `1`, `/v: is not allowed here`},
	} {
		s, err := CompileSchema(`{"properties":{"v":` + c.rule + `},
			"$defs":{"point":{"type":"object","properties":{"x":{"type":"integer"}},"additionalProperties":false}}}`)
		require.NoError(t, err, c.rule)
		assert.EqualError(t, s.Validate(`{"v":`+c.value+`}`), "checking arguments: "+c.want, c.rule)
	}
}

func TestViolationsComeInOneOrder(t *testing.T) {
	s := compiled(t, `{"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"minLength":2}},"required":["z","y"],"additionalProperties":false}`)
	var first *agent.ArgumentsError
	require.ErrorAs(t, s.Validate(`{"c":"","q":1,"b":1,"a":1,"p":2}`), &first)
	paths := []string{}
	for _, p := range first.Problems {
		paths = append(paths, p.Path)
	}
	assert.Equal(t, []string{"/a", "/b", "/c", "/p", "/q", "/y", "/z"}, paths)
	for range 20 {
		assert.EqualError(t, s.Validate(`{"c":"","q":1,"b":1,"a":1,"p":2}`), first.Error())
	}
}

// The names in a nested resource are not mistaken for the document's names.
func TestViolationsInsideNestedResource(t *testing.T) {
	s := compiled(t, `{"properties":{"v":{"$id":"https://example.com/inner","additionalProperties":false,"properties":{"x":true}},"path":true}}`)
	assert.ErrorContains(t, s.Validate(`{"v":{"paht":1}}`), "/v/paht: is not known")
	assert.NotContains(t, s.Validate(`{"v":{"paht":1}}`).Error(), `"path"`)
}

func TestViolationsNameTheRightObjectForItsNames(t *testing.T) {
	s := compiled(t, `{"additionalProperties":{"propertyNames":{"maxLength":1}}}`)
	for range 50 {
		err := s.Validate(`{"a":{"xx":1},"b":{"y":1},"c":{"z":1}}`)
		assert.ErrorContains(t, err, "must have at most 1 character")
		assert.NotContains(t, err.Error(), "/b/xx")
		assert.NotContains(t, err.Error(), "/c/xx")
	}
}
