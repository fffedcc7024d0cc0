package hooks_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
)

// The guards of the examples stop other spellings of what they are against, too.
func TestPublishedGuardsHold(t *testing.T) {
	t.Parallel()
	evasion.ShowsCode(t, "doc.go", "example_tool_test.go", "var noPush")
	evasion.Guard{
		Hooks: []hooks.Hook{noPush}, Tool: "bash", Argument: "command",
		Allowed:  []string{"ls", "git status", "git -C . diff --stat", "git add -A && git commit -m 'push it'", "echo git push", "go test ./..."},
		Commands: []string{"git push", "git push --force origin main", "git send-pack --force x", "git remote update"},
	}.Hold(t)
	evasion.Guard{
		Hooks: []hooks.Hook{careful}, Tool: "bash", Argument: "command",
		Allowed:  []string{"ls", "echo rm", "go test ./...", "git status"},
		Commands: []string{"rm -r build", "find build -delete", "unlink x", "shred -u x"},
	}.Hold(t)
	evasion.Guard{
		Hooks: []hooks.Hook{fuse}, Tool: "read_file", Argument: "path",
		Allowed:   []string{"notes.txt", "a/../b.txt"},
		Forbidden: []string{"/etc/passwd", "../x", "a/../../x", "//etc/passwd", "/etc/./passwd", ""},
	}.Hold(t)
}

// The guide says of every point what may be answered there.
func TestGuideNamesEveryPoint(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/hooks.md")
	require.NoError(t, err)
	for _, name := range hooks.PointNames() {
		assert.Contains(t, string(page), "`"+string(name)+"`")
	}
}

// The hook of the guide to moving stops every call whose amount is not known to be small.
func TestLimitOfTheGuideHolds(t *testing.T) {
	t.Parallel()
	evasion.ShowsCode(t, "../docs/moving.md", "published_test.go", "limit := hooks.OnCall")
	limit := hooks.OnCall("limit", "pay", func(_ context.Context, c hooks.ToolContext, in struct {
		Amount float64 `json:"amount"`
	}) hooks.Result {
		if in.Amount <= 0 || in.Amount > 100 {
			return c.Deny("at most 100")
		}
		return c.Allow()
	})
	evasion.Guard{
		Hooks: []hooks.Hook{limit}, Tool: "pay", AllowedCalls: []string{`{"amount":5}`, `{"amount":1e2}`, `{"amount":0.5}`},
		Calls: []string{
			`{}`, ``, `{"amount":500}`, `{"amount":100.01}`, `{"amount":0}`, `{"amount":-5}`, `{"amount":null}`, `{"amount":"5"}`, `{"amount":[5]}`, `{"Amount":5}`,
			`{"amount":5,"amount":500}`,
		},
	}.Hold(t)
}

// The guards in the guide to hooks, and on the page about tests, also stop other spellings of the forbidden calls.
func TestGuardsOfTheGuideHold(t *testing.T) {
	t.Parallel()
	evasion.ShowsCode(t, "../docs/hooks.md", "published_test.go", "noProd := hooks.OnCall")
	noProd := hooks.OnCall("no-prod", "deploy", func(_ context.Context, c hooks.ToolContext, in struct {
		Environment string `json:"environment"`
	}) hooks.Result {
		if in.Environment != "staging" {
			return c.Deny("deploy to staging only")
		}
		return c.Allow()
	})
	evasion.Guard{
		Hooks: []hooks.Hook{noProd}, Tool: "deploy", Argument: "environment",
		Allowed: []string{"staging"}, Forbidden: []string{"production", "Staging", " staging", "staging ", ""},
	}.Hold(t)

	evasion.ShowsCode(t, "../docs/hooks.md", "published_test.go", "large := hooks.OnCall")
	large := hooks.OnCall("large", "transfer", func(_ context.Context, c hooks.ToolContext, in struct {
		Amount float64 `json:"amount"`
	}) hooks.Result {
		if in.Amount <= 100 {
			return c.Allow()
		}
		return c.AskAbout(agent.Question{Reason: "more than 100", Within: time.Hour, OnTimeout: agent.RejectAndContinue})
	})
	evasion.Guard{
		Hooks: []hooks.Hook{large}, Tool: "transfer", AllowedCalls: []string{`{"amount":5}`, `{"amount":100}`}, Calls: tooMuch,
	}.Hold(t)

	type payment struct { // as in ../docs/testing-agents.md, whose block is a whole test file
		To     string `json:"to"`
		Amount int    `json:"amount"`
	}
	small := hooks.OnCall("small", "pay", func(_ context.Context, c hooks.ToolContext, in payment) hooks.Result {
		if in.Amount > 100 {
			return c.Deny("at most 100")
		}
		return c.Allow()
	})
	evasion.Guard{
		Hooks: []hooks.Hook{small}, Tool: "pay",
		AllowedCalls: []string{`{"to":"ACME","amount":90}`}, Calls: tooMuch,
	}.Hold(t)
}

// tooMuch are arguments with an amount above 100, or without one.
var tooMuch = []string{
	`{}`, ``, `{"to":"Eve","amount":500}`, `{"amount":100.01}`, `{"amount":1e3}`, `{"amount":null}`, `{"amount":"500"}`, `{"amount":[500]}`, `{"Amount":500}`,
	`{"amount":5,"amount":500}`,
}
