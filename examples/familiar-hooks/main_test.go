package main

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/exampletest"
)

// In a synctest bubble, times are exact.
func TestReadme(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out))
		exampletest.Golden(t, "testdata/output.txt", out.String())
		exampletest.Readme(t, out.String())
	})
}
