package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The picture shows what the example prints now.
func TestPictureIsCurrent(t *testing.T) {
	t.Parallel()
	output, err := runQuickstart(t.Context(), "../..")
	require.NoError(t, err)
	lines, err := chooseLines(output)
	require.NoError(t, err)
	picture, err := os.ReadFile("../../" + file)
	require.NoError(t, err)
	assert.Equal(t, drawLines(lines), string(picture), "run go run ./internal/picture")
}

func TestPictureNeedsEveryDecision(t *testing.T) {
	t.Parallel()
	_, err := chooseLines("step 4  x\n  ✓ bash  ls\n\nstep 5  y\n  ✗ bash  rm\n")
	require.ErrorContains(t, err, "✎")
}

func TestTextIsEscaped(t *testing.T) {
	t.Parallel()
	assert.Contains(t, drawLines([]string{`step 1  a < b && "c"`}), "a &lt; b &amp;&amp; &#34;c&#34;</text>")
}
