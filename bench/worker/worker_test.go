package worker_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/bench/bare"
	"github.com/grapnel-go/grapnel/bench/worker"
)

func TestWorkerSaysWhoIsHere(t *testing.T) {
	var all []worker.About
	other := bench.Contender{Name: "other", Module: "example.com/other", NoHooks: "none", AtOnce: 3, Unordered: true}
	run(t, &all, []string{}, bare.Contender(), other)
	assert.Equal(t, []worker.About{
		{Name: "bare"},
		{Name: "other", Module: "example.com/other", NoHooks: "none", AtOnce: 3, Unordered: true},
	}, all)
}

func TestWorkerMeasures(t *testing.T) {
	var sample bench.Sample
	run(t, &sample, []string{"-contender", "bare", "-time", "1ms", "-job", `{"steps": 10, "pairs": 1}`}, bare.Contender())
	assert.Positive(t, sample.Nanoseconds)
	assert.GreaterOrEqual(t, sample.Allocations, 1.0)

	var held bench.Held
	run(t, &held, []string{"-contender", "bare", "-blocked", "500", "-job", `{"steps": 1}`}, bare.Contender())
	assert.InDelta(t, 1, held.Goroutines, 0.1)
	assert.Greater(t, held.Bytes, 2048.0)
}

func TestWorkerNamesWhatIsWrong(t *testing.T) {
	for want, args := range map[string][]string{
		`measure "absent": unknown contender`: {"-contender", "absent"},
		"read job {":                          {"-contender", "bare", "-job", "{"},
		"measure bare: a job without steps":   {"-contender", "bare", "-job", "{}"},
		"flag provided but not defined":       {"-what"},
	} {
		var out bytes.Buffer
		require.ErrorContains(t, worker.Run(t.Context(), args, &out, bare.Contender()), want)
		assert.Empty(t, out.String())
	}
}

func run(t *testing.T, into any, args []string, contenders ...bench.Contender) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, worker.Run(t.Context(), args, &out, contenders...))
	require.NoError(t, json.Unmarshal(out.Bytes(), into))
}
