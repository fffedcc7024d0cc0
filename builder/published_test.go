package builder_test

import (
	"testing"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
)

// The guard of the example stops other spellings of what it is against, too.
func TestPublishedGuardHolds(t *testing.T) {
	t.Parallel()
	evasion.Guard{
		Hooks: []hooks.Hook{insideBase}, Tool: "read", Argument: "path",
		Allowed: []string{"notes.txt", "a/../b.txt"}, Forbidden: []string{"/etc/passwd", "../x", "a/../../x", "//etc/passwd", ""},
	}.Hold(t)
}
