package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// The agent mends the package, with real tools and tests, and README.md shows the lines. Background lines come at any
// time.
func TestBugfix(t *testing.T) {
	parts.Command(t, "sh", "install a shell")
	var out lockedBuffer
	require.NoError(t, fix(t.Context(), &out, "recorded", ""))
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, shown, ok := strings.Cut(string(page), "```text\n")
	require.True(t, ok)
	shown, _, _ = strings.Cut(shown, "```")
	want, got := strings.Split(strings.TrimSpace(shown), "\n"), strings.Split(strings.TrimSpace(out.String()), "\n")
	assert.Equal(t, slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got)))
	assert.Equal(t, "review 1: session_complete: completed", got[len(got)-1])
}

// A session without a mended package is an error, and so is an unknown provider.
func TestBugfixFails(t *testing.T) {
	parts.Command(t, "sh", "install a shell")
	assert.ErrorContains(t, fix(t.Context(), io.Discard, "unknown", ""), "unknown provider")
	kept := recordings
	t.Cleanup(func() { recordings = kept })
	recordings, _, _ = bytes.Cut(kept, []byte("\n"))
	assert.ErrorContains(t, fix(t.Context(), io.Discard, "recorded", ""), "no more runs")
}

func TestDriverOf(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-test")
	driver, err := driverOf("openai", "gpt-4o", replay.NewReader(bytes.NewReader(nil)))
	require.NoError(t, err)
	assert.IsType(t, &openai.Driver{}, driver)
}
