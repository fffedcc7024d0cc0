// Package exampletest compares an example's README.md with its program. The example's test runs the program and
// passes its output on:
//
//	var printed bytes.Buffer
//	// Run the program with &printed as its output.
//	exampletest.Readme(t, printed.String())
//
// The page's first block that is fenced with "text" must be this output; a line "…" in it stands for any number
// of lines. Each line of the blocks that are fenced with "go" or "yaml" must be a line of one of the example's files.
//
// The package defines the flag -update. With it, the tests write the output instead of comparing it.
package exampletest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the expected output again")

// page is the file that describes an example.
const page = "README.md"

// gap is the line of an output block that stands for any number of lines.
const gap = "…\n"

var fenced = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// Readme checks README.md in the working directory. It compares the output in it with the program's output, and the
// quoted code with the folder's files. Text that matches one of varying, such as a duration, may differ between runs
// and is not compared.
func Readme(t *testing.T, printed string, varying ...*regexp.Regexp) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	shown, err := outputOf(string(text))
	require.NoError(t, err)
	for _, p := range varying {
		printed, shown = p.ReplaceAllString(printed, "·"), p.ReplaceAllString(shown, "·")
	}
	err = compareOutput(shown, printed)
	if err != nil && *update && !strings.Contains("\n"+shown, "\n"+gap) && len(varying) == 0 {
		const begin = "```text\n"
		err = os.WriteFile(page, []byte(strings.Replace(string(text), begin+shown, begin+printed, 1)), 0o600)
	}
	assert.NoError(t, err)
	code, err := codeIn(".")
	require.NoError(t, err)
	for _, line := range quotedIn(string(text)) {
		assert.True(t, code[line], "README.md quotes a line that is in none of the example's files: %s", line)
	}
}

// Golden compares what the program printed with the text of a file.
func Golden(t *testing.T, file, printed string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(printed), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), printed)
}

// outputOf returns the page's output block.
func outputOf(text string) (string, error) {
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		if block[1] == "text" {
			return block[2], nil
		}
	}
	return "", errors.New("README.md has no block fenced with ```text")
}

// compareOutput returns an error unless printed contains the lines of shown in order, with other lines only where
// shown has a gap.
func compareOutput(shown, printed string) error {
	printed = strings.TrimRight(printed, "\n") + "\n"
	parts := strings.Split("\n"+shown, "\n"+gap)
	rest := "\n" + printed
	for i, part := range parts {
		if i > 0 {
			part = "\n" + part // strings.Split cut off the line end before the gap
		}
		part = strings.TrimSuffix(part, "\n")
		at := strings.Index(rest+"\n", part+"\n")
		switch {
		case part == "" || part == "\n":
			continue
		case at < 0, i == 0 && at > 0:
			return fmt.Errorf("README.md shows output that the program does not print there:\n%s\nThe program prints:%s", part, rest)
		}
		rest = rest[at+len(part):]
	}
	if last := parts[len(parts)-1]; last != "" && rest != "\n" {
		return fmt.Errorf("README.md lacks the end of the program's output:%s", rest)
	}
	return nil
}

// quotedIn returns the code lines that a page quotes, without indentation.
func quotedIn(text string) []string {
	var lines []string
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		if block[1] == "go" || block[1] == "yaml" {
			for line := range strings.Lines(block[2]) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

// codeIn returns the lines of a folder's Go and YAML files, without indentation, and the empty line.
func codeIn(folder string) (map[string]bool, error) {
	lines := map[string]bool{"": true}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !slices.Contains([]string{".go", ".yaml"}, filepath.Ext(entry.Name())) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			lines[strings.TrimSpace(line)] = true
		}
	}
	return lines, nil
}
