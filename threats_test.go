package grapnel_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// linkedTest is a link of docs/threat-model.md to a test: its name and its file.
var linkedTest = regexp.MustCompile(`\[((?:Test|Fuzz)\w+)\]\(([^)]+)\)`)

// missingTests returns the tests that a page links to but that are not in the linked file. It also returns the number
// of links to tests on the page.
func missingTests(folder, page string) (missing []string, links int) {
	for _, found := range linkedTest.FindAllStringSubmatch(page, -1) {
		links++
		text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(found[2])))
		if err != nil || !strings.Contains(string(text), "\nfunc "+found[1]+"(") {
			missing = append(missing, found[1])
		}
	}
	return missing, links
}

// Every test that the threat model names must exist, and every control that it names under "Defences" must have a
// test or a command.
func TestThreatModelNamesItsTests(t *testing.T) {
	text, err := os.ReadFile("docs/threat-model.md")
	require.NoError(t, err)
	missing, links := missingTests("docs", string(text))
	assert.Empty(t, missing, "docs/threat-model.md links to tests that are not there")
	assert.Greater(t, links, 40)

	_, held, found := strings.Cut(string(text), "\n## Defences\n")
	require.True(t, found)
	held, _, found = strings.Cut(held, "\n## Known gaps\n")
	require.True(t, found)
	for line := range strings.Lines(held) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| control |") {
			_, proof, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			assert.Regexp(t, "\\[Test|^`(make|scripts/)", proof, "docs/threat-model.md has no test for: %s", line)
		}
	}
}

func TestMissingTestsAreFound(t *testing.T) {
	missing, links := missingTests(".", "[TestNone](threats_test.go) [TestMissingTestsAreFound](threats_test.go) [TestX](none_test.go) [a](b)")
	assert.Equal(t, []string{"TestNone", "TestX"}, missing)
	assert.Equal(t, 3, links)
}
