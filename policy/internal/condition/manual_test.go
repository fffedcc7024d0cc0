package condition_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
)

var update = flag.Bool("update", false, "write docs/conditions.md again")

// docs/conditions.md shows the package comment as a page.
func TestTheManualIsPublished(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	require.NoError(t, err)
	want, path := manual(file.Doc), filepath.Join("..", "..", "..", "docs", "conditions.md")
	if *update {
		require.NoError(t, os.WriteFile(path, want, 0o600))
	}
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(page), "docs/conditions.md is stale: run go test ./policy/internal/condition -run Published -update")
}

// The first conditions in the package comment compile.
func TestTheFirstConditionsCompile(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(source), "//\n//\t")
	first, _, _ := strings.Cut(rest, "\n//\n")
	language, err := condition.New(condition.Options{})
	require.NoError(t, err)
	lines := strings.Split(first, "\n//\t")
	require.Len(t, lines, 4)
	for _, line := range lines {
		_, err := language.Compile(line, hooks.PreToolUse)
		assert.NoError(t, err, line)
	}
}

// manual returns a package comment as a Markdown page. Code blocks that are Go are fenced as Go, all others as text.
func manual(c *ast.CommentGroup) []byte {
	doc := new(comment.Parser).Parse(c.Text())
	printer := comment.Printer{HeadingLevel: 2, HeadingID: func(*comment.Heading) string { return "" }}
	var page bytes.Buffer
	page.WriteString("# Conditions\n\n<!-- Written from policy/internal/condition/doc.go: edit that file, then run " +
		"go test ./policy/internal/condition -run Published -update -->\n")
	for _, block := range doc.Content {
		page.WriteByte('\n')
		code, isCode := block.(*comment.Code)
		if !isCode {
			page.Write(printer.Markdown(&comment.Doc{Content: []comment.Block{block}}))
			continue
		}
		language := "text"
		if _, err := format.Source([]byte(code.Text)); err == nil {
			language = "go"
		}
		page.WriteString("```" + language + "\n" + code.Text + "```\n")
	}
	return page.Bytes()
}
