package toolexec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/toolexec"
)

// A path that a schema takes is possible, whichever keyword names it.
func TestAttackMayHave(t *testing.T) {
	for name, schema := range map[string]string{
		"dependentSchemas": `{"type":"object","properties":{"a":{}},"dependentSchemas":{"a":{"properties":{"b":{}}}},"unevaluatedProperties":false}`,
		"if":               `{"type":"object","if":{"properties":{"b":{"const":1}},"required":["b"]},"unevaluatedProperties":false}`,
		"then":             `{"type":"object","if":true,"then":{"properties":{"b":{}}},"unevaluatedProperties":false}`,
		"dynamicRef":       `{"$dynamicAnchor":"n","type":"object","properties":{"b":{}},"unevaluatedProperties":false}`,
		"dynamicRef to":    `{"$defs":{"n":{"$dynamicAnchor":"n","properties":{"b":{}}}},"type":"object","$dynamicRef":"#n","unevaluatedProperties":false}`,
		"ref and closed":   `{"$defs":{"n":{"properties":{"b":{}}}},"$ref":"#/$defs/n","unevaluatedProperties":false}`,
		"draft 7 siblings": `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"type":"object"}},"$ref":"#/definitions/n","additionalProperties":false}`,
		"draft 4 items":    `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"b":{"type":["object","null"]}},"additionalProperties":false}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := toolexec.CompileSchema(schema)
			require.NoError(t, err)
			assert.True(t, s.MayHave([]string{"b"}, []bool{false}, ""))
		})
	}
}

// The cost of a schema does not double with each of its definitions.
func TestAttackMayHaveDoubles(t *testing.T) {
	allocs := func(deep int) float64 {
		var defs []string
		for i := range deep {
			defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
		}
		defs = append(defs, fmt.Sprintf(`"d%d":{"type":"object","additionalProperties":false}`, deep))
		s, err := toolexec.CompileSchema(`{"$defs":{` + strings.Join(defs, ",") + `},"$ref":"#/$defs/d0"}`)
		require.NoError(t, err)
		return testing.AllocsPerRun(1, func() { s.MayHave([]string{"b"}, []bool{false}, "") })
	}
	assert.Less(t, allocs(12), 10*allocs(6))
}
