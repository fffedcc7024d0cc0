package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/bench/contenders"
)

func TestOneRoundFillsEveryCell(t *testing.T) {
	file := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(file, []byte("above\n"+begin+"\nSTALE\n"+end+"\nbelow\n"), 0o600))

	args := []string{"-rounds", "1", "-time", "1ns", "-blocked", "10", "-o", file}
	require.NoError(t, run(t.Context(), args, io.Discard))

	content, err := os.ReadFile(file)
	require.NoError(t, err)
	text := string(content)
	assert.True(t, strings.HasPrefix(text, "above\n"+begin+"\n"), text)
	assert.True(t, strings.HasSuffix(text, end+"\nbelow\n"), text)
	assert.NotContains(t, text, "STALE")
	assert.NotContains(t, text, "NaN")
	for _, c := range contenders.All() {
		assert.Equal(t, 3, strings.Count(text, "| "+c.Name+" |"), "%s has a row in each table:\n%s", c.Name, text)
	}
}

func TestAFileWithoutMarkersStaysAsItIs(t *testing.T) {
	for _, content := range []string{"", begin, end, end + begin} {
		file := filepath.Join(t.TempDir(), "README.md")
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		require.ErrorContains(t, writeBetweenMarkers(file, "table"), "write table: ")
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, content, string(after))
	}
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	// Three rounds, the machine twice and ten times as slow in the later ones.
	var m measured
	j := job{steps: 100}
	for _, slow := range []float64{1, 2, 10} {
		m.rounds = append(m.rounds, map[entry]bench.Sample{
			{"bare", j}:  {Nanoseconds: 100 * slow, Allocations: 9},
			{"other", j}: {Nanoseconds: 300 * slow, Allocations: 20},
		})
	}
	assert.InDelta(t, 3, m.ratio(entry{"other", j}, entry{"bare", j}), 1e-9)
	assert.InDelta(t, 200, m.time("bare", j), 1e-9)
	assert.InDelta(t, 20, m.allocations("other", j), 1e-9)

	m.rounds = m.rounds[:2] // an even number: the mean of the two in the middle
	assert.InDelta(t, 150, m.time("bare", j), 1e-9)
}

func TestNumbersArePrintedWithTheDigitsThatCount(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0 ns", 12.4: "12 ns", 999: "999 ns", 1234: "1.23 µs", 45_678: "45.7 µs", 3_670_000: "3.67 ms",
	} {
		assert.Equal(t, want, nanoseconds(ns))
	}
	for ratio, want := range map[float64]string{0.544: "0.54 ×", 1: "1.00 ×", 13.4: "13 ×", 3673: "3673 ×"} {
		assert.Equal(t, want, times(ratio))
	}
}
