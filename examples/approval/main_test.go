package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the expected output anew")

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
