package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/exampletest"
)

func TestOutput(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, false))
	exampletest.Golden(t, "testdata/output.txt", out.String())
	exampletest.Readme(t, out.String())
}

// Colours change nothing but the colours.
func TestColours(t *testing.T) {
	var plain, coloured bytes.Buffer
	require.NoError(t, run(t.Context(), &plain, false))
	require.NoError(t, run(t.Context(), &coloured, true))
	assert.Contains(t, coloured.String(), "\x1b[31m")
	assert.NotContains(t, plain.String(), "\x1b")
	for _, code := range []string{bold, dim, red, green, yellow, cyan, "0"} {
		coloured = *bytes.NewBuffer(bytes.ReplaceAll(coloured.Bytes(), []byte("\x1b["+code+"m"), nil))
	}
	assert.Equal(t, plain.String(), coloured.String())
}
