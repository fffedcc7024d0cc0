package hookstest_test

import (
	"testing"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
)

// The guard of the example stops other spellings of a push, too.
func TestPublishedGuardHolds(t *testing.T) {
	t.Parallel()
	evasion.Guard{
		Hooks: []hooks.Hook{noPush}, Tool: "bash", Argument: "command",
		Allowed: []string{"ls", "git status", "git commit -m 'push it'"}, Commands: []string{"git push", "git push --force origin main"},
	}.Hold(t)
}
