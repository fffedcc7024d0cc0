package hooks_test

import (
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
