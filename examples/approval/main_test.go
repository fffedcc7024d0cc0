package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the expected output again")

const expected = "testdata/output.txt"

// The answer that a person gave later counts, with the arguments that they
// gave, and nothing of the batch had run before.
func TestOutput(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, show(t.Context(), &out))
	if *update {
		require.NoError(t, os.WriteFile(expected, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(expected)
	require.NoError(t, err)
	assert.Equal(t, string(want), out.String())
}

// The guard lets nothing through that is no payment of up to 100, in whatever form.
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
