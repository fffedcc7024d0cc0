package evasion

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ShowsCode fails the test unless the page has code blocks that contain the words, and each line of these blocks is a
// line of the Go file, which a test compiles and runs. The page is a Markdown file or a Go file, whose comments are
// read.
func ShowsCode(t testing.TB, page, file, words string) {
	t.Helper()
	tested := map[string]bool{}
	for line := range strings.Lines(readFile(t, file)) {
		tested[strings.TrimSpace(line)] = true
	}
	shown := false
	for _, block := range blocksOf(readFile(t, page), filepath.Ext(page)) {
		if !strings.Contains(block, words) {
			continue
		}
		shown = true
		for line := range strings.Lines(block) {
			if line = strings.TrimSpace(line); !tested[line] {
				t.Errorf("%s shows a line that %s does not have: %s", page, file, line)
			}
		}
	}
	if !shown {
		t.Errorf("%s shows no code with %q", page, words)
	}
}

// Block returns the page's first code block that contains the words. The page is a Markdown file or a Go file, whose
// comments are read.
func Block(t testing.TB, page, words string) string {
	t.Helper()
	for _, block := range blocksOf(readFile(t, page), filepath.Ext(page)) {
		if strings.Contains(block, words) {
			return block
		}
	}
	t.Fatalf("%s has no block of code with %q", page, words)
	return ""
}

// Blocks returns a page's code blocks.
func Blocks(t testing.TB, page string) []string {
	t.Helper()
	return blocksOf(readFile(t, page), filepath.Ext(page))
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocksOf returns the code blocks in a page's text.
func blocksOf(text, ext string) []string {
	var blocks []string
	var block strings.Builder
	end := func() {
		if block.Len() > 0 {
			blocks = append(blocks, block.String())
		}
		block.Reset()
	}
	fenced := false
	for line := range strings.Lines(text) {
		code, in := strings.CutPrefix(line, "//\t")
		if ext == ".md" {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
				end()
				continue
			}
			code, in = line, fenced
		}
		switch {
		case in:
			block.WriteString(code)
		default:
			end()
		}
	}
	end()
	return blocks
}
