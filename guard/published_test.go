package guard_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/evasion"
)

// The guard of the example stops other spellings of an amount, too.
func TestPublishedGuardHolds(t *testing.T) {
	t.Parallel()
	list, err := rules(t, deskPolicy).Hooks()
	require.NoError(t, err)
	evasion.Guard{
		Hooks: list, Tool: "pay",
		AllowedCalls: []string{`{"amount":5}`, `{"amount":100}`, `{"amount":1e2}`},
		Calls:        []string{`{"amount":500}`, `{"amount":5e2}`, `{"amount":-5}`, `{"amount":"5"}`, `{}`, `{"Amount":5}`, `{"amount":null}`, `{"amount":[5]}`},
	}.Hold(t)
}

// So do the rules of examples/frameworks.
func TestPublishedPolicyHolds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../examples/frameworks/policy.yaml")
	require.NoError(t, err)
	list, err := rules(t, string(text)).Hooks()
	require.NoError(t, err)
	state := agent.NewState(agent.UserText("Pay Bob 5."))
	evasion.Guard{
		Hooks: list, Tool: "pay", Argument: "to", State: state, With: map[string]any{"amount": 5},
		Allowed: []string{"Bob"}, Forbidden: []string{"Mallory"},
		Calls: []string{`{"amount":5}`, `{"to":null,"amount":5}`, `{"to":["Bob"],"amount":5}`, `{"to":"","amount":5}`},
	}.Hold(t)
	evasion.Guard{
		Hooks: list, Tool: "pay", State: state,
		AllowedCalls: []string{`{"to":"Bob","amount":5}`, `{"to":"Bob","amount":50}`},
		Calls: []string{
			`{"to":"Bob","amount":51}`, `{"to":"Bob","amount":500}`, `{"to":"Bob","amount":5e2}`, `{"to":"Bob","amount":-5}`,
			`{"to":"Bob","amount":"5"}`, `{"to":"Bob"}`, `{"to":"Bob","Amount":5}`, `{"to":"Bob","amount":null}`, `{"to":"Bob","amount":[5]}`,
		},
	}.Hold(t)
}
