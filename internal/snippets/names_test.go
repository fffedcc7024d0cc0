package snippets_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/snippets"
)

func TestMissingNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/walls\n",
		"bricks/bricks.go": `package bricks
import ("net/http"; "example.com/walls/mortar")
type Base struct{ Height int }
type Wall struct{ Base; Doors []Door; Site struct{ Name string } }
type Door interface{ Open() error }
type Key[T any] struct{}
type key struct{}
func (*Key[T]) Set(T) {}
func Build(h *http.Client) Wall { return Wall{} }
func hidden() { mortar.Mix() }`,
		"bricks/bricks_test.go":   "package bricks\nfunc TestWalls(t *testing.T) {}\n",
		"internal/loam/loam.go":   "package loam\nfunc BurnClay() {}\n",
		"mortar/mortar.go":        "package mortar\nfunc Mix() {}\n",
		"tools/go.mod":            "module example.com/tools\n",
		"tools/plaster/finish.go": "package plaster\nfunc WashWalls() {}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	names, err := snippets.ReadNames(dir)
	require.NoError(t, err)
	for code, missing := range map[string][]string{
		"bricks.Build(nil)":               nil,
		"bricks.Wall.Height":              nil, // embedded
		"Wall.Site":                       nil,
		"*bricks.Key":                     nil,
		"key.Set(1)":                      nil, // a variable
		"mortar.Mix":                      nil,
		"http.Get":                        nil, // in another module
		"TestWalls":                       nil,
		"vars.NAME, args.path, README.md": nil,
		"SITE.Name":                       nil,
		"bricks.Wall{Doors: …}":           nil,
		`"bricks.Nope"`:                   nil, // a string
		"bricks.Break":                    {"bricks.Break"},
		"bricks.hidden, bricks.Base.Hue":  {"Base.Hue"},
		"Wall.Colour":                     {"Wall.Colour"},
		"Door.Close()":                    {"Door.Close"},
		"w.Colour":                        {"w.Colour"},
		"bricks.Build(nil).Paint()":       {"Paint"},
		"bricks.Wall{Windows: 2}":         {"Wall.Windows"},
		"f(bricks.Break, bricks.Bend)":    {"bricks.Break", "bricks.Bend"},
		"BurnClay":                        {"BurnClay"},  // internal
		"WashWalls()":                     {"WashWalls"}, // in another module
		"TestRoofs":                       {"TestRoofs"},
	} {
		assert.Equal(t, missing, names.Missing(code), code)
	}
}

func TestReadPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "One `span` and `a.B`.\n\n```sh\nran `x`\n```\n\n    indented `y`\n\nLast `z`\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "page.md"), []byte(text), 0o600))
	pages, err := snippets.ReadPages(filepath.Join(dir, "*.md"))
	require.NoError(t, err)
	require.Len(t, pages, 1)
	var spans []string
	for _, s := range pages[0].Spans {
		spans = append(spans, s.Text)
	}
	assert.Equal(t, []string{"span", "a.B", "z"}, spans)
	assert.Equal(t, 9, pages[0].Spans[2].Line)
	assert.Len(t, pages[0].Code, 2)
}
