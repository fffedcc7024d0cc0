package library_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

// Each line in testdata/lines/POLICY.txt reaches the rule in the brackets above it; lines under [pass] reach none. A
// line that begins with @ is a tool call: its name and its arguments.
func TestLinesReachTheirRules(t *testing.T) {
	lists, err := filepath.Glob("testdata/lines/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, lists)
	texts := map[string]string{}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		require.NoError(t, err)
		texts[strings.TrimSuffix(filepath.Base(list), ".txt")] = string(text)
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "src"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "src", "log"), nil, 0o600))
	t.Chdir(dir)
	t.Setenv("HOME", "/home/user") // a home below the folder for temporary files would be readable
	for policy, text := range texts {
		set := shipped(t, policy, nil)
		rule := ""
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case line == "" || strings.HasPrefix(line, "# "):
			case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
				rule = strings.Trim(line, "[]")
			default:
				fired := fireLine(t, set, line)
				stops := func(e hooks.Event) bool {
					return e.Hook == "library:"+policy+"/"+rule && (e.Decision == hooks.Ask || e.Decision == hooks.Deny)
				}
				if rule == "pass" {
					assert.Contains(t, []hooks.Decision{hooks.Pass, hooks.Allow}, fired.Decision, "%s: %s: %s", policy, line, fired)
				} else {
					assert.True(t, slices.ContainsFunc(fired.Events, stops), "%s/%s does not stop: %s: %s", policy, rule, line, fired)
				}
			}
		}
	}
}

// fireLine fires a shell tool's line, or another tool's call.
func fireLine(t *testing.T, set hooks.Set, line string) hookstest.Fired {
	t.Helper()
	tool, args, isCall := strings.Cut(strings.TrimPrefix(line, "@"), " ")
	if !isCall || line[0] != '@' {
		text, err := json.Marshal(map[string]string{"command": strings.ReplaceAll(line, "⏎", "\n")})
		require.NoError(t, err)
		tool, args = "bash", string(text)
	}
	fired := hookstest.FireSet(t, set, hookstest.ToolCall(tool, args))
	require.NoError(t, fired.Err, line)
	return fired
}
