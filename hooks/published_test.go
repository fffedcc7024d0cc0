package hooks_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
