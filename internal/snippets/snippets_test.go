package snippets_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/snippets"
)

// bricks is a package in the module that the tests write.
const bricks = `// Package bricks builds walls.
//
//	wall := bricks.Build(3)
//	wall.Paint("red")
package bricks

import (
	"fmt"
	"math/rand"
	random "math/rand/v2"
)

// A Wall stands.
type Wall struct{}

// Paint paints it:
//
//	bricks.Build(1).Paint(2)
func (Wall) Paint(colour string) { fmt.Println(colour, rand.Int(), random.Int()) }

// Build returns a wall.
func Build(height int) Wall { return Wall{} }
`

// writeModule creates a module with the package bricks, an empty page, and files in which Find must find nothing. It
// returns the module's folder.
func writeModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range map[string]string{
		"go.mod": "module example.com/site\n\ngo 1.26\n", "bricks/bricks.go": bricks, "page.md": "",
		"other/go.mod": "module example.com/other\n", "other/page.md": "```go\nbroken(\n```\n",
		"bricks/testdata/page.md": "```go\nbroken(\n```\n", "bricks/bricks_test.go": "// Package bricks is tested.\n//\n//\tbroken(\npackage bricks\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	return dir
}

// check returns the report for the module.
func check(t *testing.T, dir string, packages *snippets.Packages) snippets.Report {
	t.Helper()
	blocks, err := snippets.Find(dir)
	require.NoError(t, err)
	return packages.Check("var height int\nvar fence bricks.Wall", blocks)
}

func TestDocComments(t *testing.T) {
	dir := writeModule(t)
	packages, err := snippets.List(t.Context(), dir, "./...")
	require.NoError(t, err)
	r := check(t, dir, packages)
	require.Len(t, r.Go, 2)
	require.Len(t, r.Errors, 1)
	assert.ErrorContains(t, r.Errors[0], "bricks/bricks.go:18: cannot use 2 (untyped int constant) as string value")
}

func TestBrokenPrelude(t *testing.T) {
	packages, err := snippets.List(t.Context(), writeModule(t), "./...")
	require.NoError(t, err)
	r := packages.Check("var (", nil)
	require.Len(t, r.Errors, 1)
	assert.ErrorContains(t, r.Errors[0], "prelude.go:1: ")
	assert.Empty(t, r.Go)
}

func TestPages(t *testing.T) {
	dir := writeModule(t)
	packages, err := snippets.List(t.Context(), dir, "./...")
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		page string
		want []string // for the page; each is the beginning of an error
	}{
		"statements":             {"```go\nwall := bricks.Build(height)\nreturn wall, nil\n```\n", nil},
		"a return is checked":    {"```go\nif height > 1 {\n\treturn wall\n}\n```\n", []string{"page.md:3: undefined: wall"}},
		"a return of two values": {"```go\nreturn fmt.Println()\n```\n", nil},
		"a return in a literal":  {"```go\nf := func() int { return \"one\" }\n```\n", []string{"page.md:2: cannot use \"one\""}},
		"declarations":           {"```go\ntype Gate struct{ bricks.Wall }\n\nfunc (g Gate) Open() { g.Paint(\"white\") }\n```\n", nil},
		"a wrong declaration":    {"```go\nfunc Open() int {\n}\n```\n", []string{"page.md:3: missing return"}},
		"a file":                 {"```go\npackage main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }\n```\n", nil},
		"a file has no prelude":  {"```go\npackage main\n\nfunc main() { println(height) }\n```\n", []string{"page.md:4: undefined: height"}},
		"a file imports":         {"```go\npackage main\n\nfunc main() { fmt.Println() }\n```\n", []string{"page.md:4: undefined: fmt"}},
		"later blocks see earlier ones": {
			"```go\nwall := bricks.Build(1)\n```\ntext\n```go\nwall.Paint(\"red\")\nwall := 1\n```\n```go\nwall++\n```\n", nil,
		},
		"not the other way round":      {"```go\nwall.Paint(\"red\")\n```\n```go\nwall := bricks.Build(1)\n```\n", []string{"page.md:2: undefined: wall"}},
		"a name covers the prelude's":  {"```go\nfence := 1\nfence++\n```\n", nil},
		"and that of a package":        {"```go\nvar bricks = fence\n```\n```go\nbricks.Paint(\"red\")\n```\n", nil},
		"an unknown method":            {"```go\n\n\nfence.Jump()\n```\n", []string{"page.md:4: fence.Jump undefined"}},
		"a name of two packages":       {"```go\nrand.Int()\n```\n", []string{"page.md:2: rand is ambiguous, it may be any of ", "page.md:2: undefined: rand"}},
		"a block that does not parse":  {"```go\nfence.Paint(\"red\"\n```\n", []string{"page.md:2: "}},
		"an ellipsis":                  {"```go\nfence.Paint(…)\n```\n", []string{"page.md:2: illegal character"}},
		"a value that is not used":     {"```go\nbricks.Wall{}\n```\n", []string{"page.md:2: bricks.Wall{} "}},
		"no language, broken":          {"```\nwall := bricks.Build(\n```\n", []string{"page.md:2: "}},
		"no language, wrong":           {"```\nfence.Jump()\n```\n", []string{"page.md:2: fence.Jump undefined"}},
		"indented, broken":             {"text\n\n    func Open( {\n\ntext\n", []string{"page.md:3: "}},
		"indented, wrong":              {"text\n\n    fence.\n\n    Jump()\n\ntext\n", []string{"page.md:5: fence.Jump undefined"}},
		"indented, a test of an error": {"text\n\n\tif err != nil\n", []string{"page.md:3: "}},
		"another language":             {"```sh\nx := y {\n```\n", nil},
		"shell":                        {"```\ngo run ./examples/tour   # that\nmake -C bench\n```\n", nil},
		"YAML":                         {"text\n\n    policy: ours\n    hooks:\n      - id: a\n", nil},
		"JSON":                         {"```\n{\"a\": {\"b\": 1}}\n```\n", nil},
		"a line of names":              {"```\nForbid > Allow\n```\n", nil},
		"code around the function":     {"```\nheight++\n}\nvar f = func() {\n```\n", []string{"page.md:"}},
		"golang":                       {"```golang\nfence.Jump()\n```\n", []string{"page.md:2: fence.Jump undefined"}},
		"a longer fence":               {"````text\n```go\nbroken(\n```\n````\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "page.md"), []byte(tc.page), 0o600))
			var got []string
			for _, err := range check(t, dir, packages).Errors {
				if strings.HasPrefix(err.Error(), "page.md") {
					got = append(got, err.Error())
				} else {
					assert.ErrorContains(t, err, "bricks.go:18:")
				}
			}
			require.Len(t, got, len(tc.want), got)
			for i, want := range tc.want {
				assert.True(t, strings.HasPrefix(got[i], want), "%s, not %s", got[i], want)
			}
		})
	}
}
