package grapnel_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	codeBlock    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading      = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchorsOf returns the anchors of the headings of a page, as they are made for Markdown on the web.
func anchorsOf(page string) []string {
	var anchors []string
	for _, found := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		text := notInAnchor.ReplaceAllString(strings.ToLower(found[1]), "")
		anchors = append(anchors, strings.ReplaceAll(text, " ", "-"))
	}
	return anchors
}

// brokenLinks returns the links of a page to files of the repository that do not exist, or that lack the linked
// heading.
func brokenLinks(folder, page string) []string {
	var broken []string
	for _, found := range markdownLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		link, err := url.Parse(found[1])
		if err != nil || link.Scheme != "" {
			continue
		}
		target := page
		if link.Path != "" {
			path := filepath.Join(folder, filepath.FromSlash(link.Path))
			if _, err := os.Stat(path); err != nil {
				broken = append(broken, found[1])
				continue
			}
			if link.Fragment == "" {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				broken = append(broken, found[1])
				continue
			}
			target = string(text)
		}
		if link.Fragment != "" && !slices.Contains(anchorsOf(target), link.Fragment) {
			broken = append(broken, found[1])
		}
	}
	return broken
}

func TestLinksLeadSomewhere(t *testing.T) {
	pages := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".md") || d.Name() == "0000-template.md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pages++
		assert.Empty(t, brokenLinks(filepath.Dir(path), string(text)), "links of %s", path)
		return nil
	}))
	assert.Greater(t, pages, 40)
}

func TestBrokenLinksAreFound(t *testing.T) {
	page := "# One `two`, three\n[a](README.md) [b](README.md#no-such) [c](#one-two-three) [d](#four) [e](missing.md) [f](https://example.com/x)\n" +
		"```\n[g](missing.md)\n```\n"
	assert.Equal(t, []string{"README.md#no-such", "#four", "missing.md"}, brokenLinks(".", page))
}

// The indexes must list every page of docs and every example, and llms.txt what each page answers.
func TestIndexesAreComplete(t *testing.T) {
	for _, list := range []struct{ index, folder, pattern string }{
		{"docs/README.md", "docs", "*.md"}, {"examples/README.md", "examples", "*"}, {"llms.txt", ".", "docs/*.md"}, {"llms.txt", ".", "*.md"},
	} {
		text, err := os.ReadFile(list.index)
		require.NoError(t, err)
		index := string(text)
		assert.Empty(t, brokenLinks(list.folder, index), "links of %s", list.index)
		names, err := filepath.Glob(filepath.Join(list.folder, list.pattern))
		require.NoError(t, err)
		require.NotEmpty(t, names)
		for _, name := range names {
			page, err := filepath.Rel(list.folder, name)
			require.NoError(t, err)
			if page != "README.md" {
				assert.Contains(t, index, "]("+filepath.ToSlash(page), "%s does not list it", list.index)
			}
		}
	}
	text, err := os.ReadFile("llms.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		assert.True(t, !strings.HasPrefix(line, "- ") || strings.Contains(line, "): "), "llms.txt does not say what the page answers: %s", line)
	}
}
