package action_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/action"
)

// Events name what an action is done with, and nothing that may be secret.
func TestTargetOf(t *testing.T) {
	hook := action.HTTP{URL: "https://hooks.example.com/T0/secret?token=x"}
	for want, d := range map[string]action.Declared{
		"judge.sh":                  action.Command{Argv: []string{"./bin/judge.sh", "--token=x"}},
		"bash":                      action.Shell{Text: "curl -H token:x"},
		"https://hooks.example.com": hook,
		"files/read":                action.MCPTool{Server: "files", Tool: "read"},
		"read":                      action.MCPTool{Tool: "read"},
		"reviewer":                  action.Agent{Name: "reviewer"},
		"deploy":                    action.Spawn{Pipeline: "deploy"},
		"small":                     action.Prompt{Model: "small"},
		"person":                    action.Gate{By: action.GatePerson},
		"note":                      action.Func{Name: "note"},
		"":                          action.Command{},
	} {
		assert.Equal(t, want, action.TargetOf(d))
	}
	assert.Equal(t, "https://hooks.example.com", action.TargetOf(action.Gate{By: action.GateCallback, Webhook: &hook}))
	assert.Equal(t, "${HOOK}", action.TargetOf(action.HTTP{URL: "${HOOK}/x"}), "a secret by its name")
}
