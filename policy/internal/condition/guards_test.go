package condition_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
)

// The guards in the examples also stop other spellings.
func TestPublishedGuardsHold(t *testing.T) {
	t.Parallel()
	noWipe, err := newNoWipe()
	require.NoError(t, err)
	evasion.Guard{
		Hooks: []hooks.Hook{noWipe}, Tool: "bash", Argument: "command",
		Allowed: []string{"ls", "echo rm", "go test ./..."}, Commands: []string{"rm -rf x", "find . -delete", "unlink x"},
	}.Hold(t)
}
