package whatif_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// Ten thousand stored runs of six calls: one changed rule is to take 10 seconds at most on two cores, the whole assistant library 60.
func BenchmarkTenThousandRuns(b *testing.B) {
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "runs.db"), sqlite.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close()) })
	for range 10_000 {
		pays(b, store, limit(1000), 50, 300, 2000, 20, 30, 999)
	}
	for name, in := range map[string]wire.WhatIfRequest{
		"one rule": {Before: limit(1000), Policy: limit(100)}, "assistant": {Before: limit(1000), Policy: "library:assistant"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				out, err := ask(b, b.Context(), store, in, nil)
				require.NoError(b, err)
				require.Equal(b, 10_000, out.Runs)
			}
		})
	}
}
