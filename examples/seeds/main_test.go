package main

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the expected output again")

const expected = "testdata/output.txt"

// IP-118 and the examples of the other documents. In the bubble, times are exact.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out))
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o750))
			require.NoError(t, os.WriteFile(expected, out.Bytes(), 0o600))
		}
		want, err := os.ReadFile(expected)
		require.NoError(t, err)
		assert.Equal(t, string(want), out.String())
	})
}
