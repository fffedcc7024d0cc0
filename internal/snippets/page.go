package snippets

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Page is a Markdown file.
type Page struct {
	File  string  // the file's path
	Code  []Block // fenced and indented blocks
	Spans []Block // text in backticks outside of the blocks
}

var inline = regexp.MustCompile("`([^`\n]+)`")

// ReadPages returns the Markdown files that match the patterns of package filepath, ordered by path.
func ReadPages(patterns ...string) ([]Page, error) {
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	var pages []Page
	for _, file := range files {
		page, err := readPage(file)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

func readPage(file string) (Page, error) {
	page := Page{File: filepath.ToSlash(file)}
	text, err := os.ReadFile(file)
	if err != nil {
		return page, err
	}
	if page.Code, err = readMarkdown(file); err != nil {
		return page, err
	}
	inBlock := map[int]bool{}
	for i := range page.Code {
		b := &page.Code[i]
		b.File = page.File
		for n := range strings.Count(b.Text, "\n") {
			inBlock[b.Line+n] = true
		}
	}
	for i, line := range strings.Split(string(text), "\n") {
		if inBlock[i+1] {
			continue
		}
		for _, found := range inline.FindAllStringSubmatch(line, -1) {
			page.Spans = append(page.Spans, Block{File: page.File, Page: 1, Line: i + 1, Text: found[1]})
		}
	}
	return page, nil
}
