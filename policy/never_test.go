package policy_test

import (
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/toolexec"
)

// A condition that no call of the agent's tools can meet is reported when the agent is built, like a matcher that matches nothing.
func TestConditionsThatAreNeverTrue(t *testing.T) {
	t.Parallel()
	schema, err := toolexec.CompileSchema(`{"type":"object","properties":{"amount":{"type":"integer"},"to":{"type":"string"}},"additionalProperties":false}`)
	require.NoError(t, err)
	missing := func(when string) []policy.Warning {
		p, err := policy.Parse("p.yaml", []byte("policy: p\nhooks:\n  PreToolUse:\n    - {id: r, when: '"+strings.ReplaceAll(when, "'", "''")+"', decision: deny, reason: no}\n"), policy.Options{})
		require.NoError(t, err, when)
		list, err := p.Hooks()
		require.NoError(t, err)
		return p.Missing(hooks.NewSet(list...).Gaps(hooks.Reach{Here: hooks.Scope{
			Tools: []hooks.Tool{{Name: "pay", Arguments: schema}, {Name: "read"}}, Points: hooks.PointNames(),
		}}))
	}
	for when, want := range map[string]string{
		`tool == "Pay"`:                               `"Pay" matches no tool: did you mean "pay"?`,
		`"Pay" == tool && args.amount > 5`:            `"Pay" matches no tool`,
		`tool in ["Pay", "Read"]`:                     `matches no tool`,
		`tool == "Pay" || tool == "Read"`:             `matches no tool`,
		`tool == "pay" && args.amount == "1000"`:      `no call of "pay" has an argument at "amount" that is a string`,
		`tool == "pay" && args.to in [1, 2]`:          `no call of "pay" has an argument at "to" that is an integer`,
		`tool == "pay" && args.sum == 5`:              `no call of "pay" has an argument at "sum"`,
		`tool == "pay" && (args.to == 1 && step > 1)`: `that is an integer`,
		`stage == "build"`:                            `"build" matches no stage: the agent runs outside of pipelines`,
		`tool == "pay" && STAGE in ["a.b", "c"]`:      `"a.b" matches no stage`,
	} {
		found := missing(when)
		require.NotEmpty(t, found, when)
		assert.True(t, lo.SomeBy(found, func(w policy.Warning) bool { return strings.Contains(w.Text, want) }), "%s: %v", when, found)
		assert.True(t, lo.SomeBy(found, func(w policy.Warning) bool { return strings.Contains(w.Text, "can match nothing") }), "%s: %v", when, found)
	}
	for _, when := range []string{`false`, `1 > 2`, `tool == "pay" && tool == "read"`} {
		found := missing(when)
		assert.True(t, lo.SomeBy(found, func(w policy.Warning) bool { return w.Never && w.Code == "condition" }), "%s: %v", when, found)
	}
	for _, when := range []string{
		`tool == "pay"`, `tool != "Pay"`, `!(tool == "Pay")`, `tool == "Pay" || args.amount > 5`, `tool == "pay" && args.amount == 1000`, `args.amount == 1000.0`,
		`tool in ["pay", "Pay"] && args.to != "ann"`, `tool == "read" && args.amount == "1000"`, `args["amount"] == "1000"`,
		`stage != "build"`, `stage == ""`, `stage == "build" || tool == "pay"`,
	} {
		for _, w := range missing(when) {
			assert.NotContains(t, w.Text, "can match nothing", when)
		}
	}
}

// Check reports a condition that asks for two values of one thing.
func TestContradictions(t *testing.T) {
	t.Parallel()
	check := func(when string) string {
		p, err := policy.Parse("p.yaml", []byte("policy: p\nhooks:\n  PreToolUse:\n    - {id: r, when: '"+when+"', decision: deny, reason: no}\n"), policy.Options{})
		require.NoError(t, err, when)
		return strings.Join(lo.Map(p.Check(), func(w policy.Warning, _ int) string { return w.String() }), "\n")
	}
	assert.Contains(t, check(`args.x == "a" && tool == "b" && args.x == "b"`), `p.yaml:4:8: condition: its condition can never be true: args.x would be both "a" and "b"`)
	assert.Contains(t, check(`tool == "a" && tool == "b"`), "tool would be both")
	assert.Equal(t, 1, strings.Count(check(`false`), "always false"))
	assert.Empty(t, check(`args.x == 1 && args.x == 1.0`))
	assert.Empty(t, check(`args.x == "a" && (args.y == "a" || args.x == "b")`))
}
