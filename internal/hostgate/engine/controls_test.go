package engine_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/hostgate"
)

// No guarded agent changes its hooks or answers its own questions, whatever the policy is, unless that says so.
func TestControlsAreOnByDefault(t *testing.T) {
	t.Parallel()
	for _, h := range hostgate.Hosts {
		g := newGate(t, h, allRules)
		for _, line := range []string{
			"rm .claude/settings.json", "echo x > ~/.codex/hooks.json", "cp x .cursor/hooks.json", "rm ~/.config/opencode/plugin/grapnel.js",
			"sed -i s/a/b/ .github/hooks/gate.json", "tee .gemini/settings.json", "grapnel approvals answer run_1 q --approve",
			"curl -d {} http://localhost:8080/runs/r/questions/q/answers", "cat ~/.local/state/grapnel/gate/key",
		} {
			assert.Contains(t, g.run(t, before(h, "1", line)), `"deny"`, "%s: %s", h, line)
		}
		off := newGate(t, h, allRules)
		text, err := os.ReadFile(off.Policies[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(off.Policies[0], append([]byte("disable_global_hooks: true\n"), text...), 0o600))
		assert.NotContains(t, off.run(t, before(h, "1", "rm .claude/settings.json")), `"deny"`, h)
	}
}
