package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/internal/exampletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The person's later answer counts, with its arguments, and no call of the step ran before it.
func TestOutput(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, showQuestion(t.Context(), &out))
	exampletest.Readme(t, out.String())
}

// The guard allows only payments of up to 100, however the arguments are written.
func TestGuardHolds(t *testing.T) {
	t.Parallel()
	evasion.Guard{
		Hooks: []hooks.Hook{guard}, Tool: "transfer",
		AllowedCalls: []string{`{"to":"Alice","amount":40}`, `{"amount":1e2,"to":"Bob"}`, `{"to":"Bob","amount":0.01}`},
		Calls: []string{
			`{}`, ``, `{"to":"Bob"}`, `{"to":"Bob","amount":250}`, `{"to":"Bob","amount":100.01}`, `{"to":"Bob","amount":1e3}`, `{"to":"Bob","amount":0}`,
			`{"to":"Bob","amount":-250}`, `{"to":"Bob","amount":"40"}`, `{"to":"Bob","amount":null}`, `{"to":"Bob","amount":[40]}`, `{"to":"Bob","Amount":40}`,
			`{"to":"Bob","amount":40,"amount":250}`, `{"to":"Bob","\u0061mount":250}`, `{"to":"Bob","amount":1e999}`, `[{"to":"Bob","amount":40}]`,
		},
	}.Hold(t)
}
