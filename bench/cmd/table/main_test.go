package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The whole way with the one contender that needs no other module: built, run as a
// process, measured, written.
func TestTheCommandWritesTablesChartAndResults(t *testing.T) {
	t.Chdir("../..") // the root of the module
	dir := t.TempDir()
	readme := filepath.Join(dir, "README.md")
	const begin, end = "<!-- table: begin (written by make table) -->", "<!-- table: end -->"
	require.NoError(t, os.WriteFile(readme, []byte("above\n"+begin+"\nSTALE\n"+end+"\nbelow\n"), 0o600))

	args := []string{"-contenders", "bare", "-rounds", "1", "-time", "1ns", "-blocked", "10", "-o", dir}
	require.NoError(t, run(t.Context(), args, io.Discard))

	text := read(t, readme)
	assert.True(t, strings.HasPrefix(text, "above\n"+begin+"\n"), text)
	assert.True(t, strings.HasSuffix(text, end+"\nbelow\n"), text)
	assert.NotContains(t, text, "STALE")
	assert.Contains(t, text, "\n| bare |")
	assert.Contains(t, read(t, filepath.Join(dir, "chart.svg")), "<svg ")
	assert.Contains(t, read(t, filepath.Join(dir, "results.txt")), "BenchmarkContender/contender=bare/steps=1000/")
}

func TestAContenderThatIsNotThereIsNamed(t *testing.T) {
	t.Chdir("../..")
	require.ErrorContains(t, run(t.Context(), []string{"-contenders", "nobody"}, io.Discard), "build nobody: ")
}

// Whoever has a folder takes part.
func TestEveryContenderIsInTheOrder(t *testing.T) {
	folders, err := os.ReadDir("../../contenders")
	require.NoError(t, err)
	var names []string
	for _, f := range folders {
		names = append(names, f.Name())
	}
	assert.ElementsMatch(t, names, strings.Split(order, ","))
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(content)
}
