package grapnel_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	behaviour = regexp.MustCompile(`\b(IP|LH|SW|AP|CO|X)-(\d{1,3})\b`)
	// A line begins with the ids of the behaviours that it states: "- IP-25, IP-26: …".
	behaviourLine = regexp.MustCompile(`^- ((?:(?:IP|LH|SW|AP|CO|X)-\d{2,3}, )*(?:IP|LH|SW|AP|CO|X)-\d{2,3}): (.+)$`)
	// A line about behaviours that are not kept begins with their ids: "- AP-01…06, AP-38…44: …".
	behaviourRange = regexp.MustCompile(`\b(IP|LH|SW|AP|CO|X)-(\d+)(?:…(\d+))?`)
)

// docs/behaviours.md must state each behaviour that tests check in exactly one line.
func TestBehavioursAreHeldByTests(t *testing.T) {
	text, err := os.ReadFile("docs/behaviours.md")
	require.NoError(t, err)
	held, elsewhere, found := strings.Cut(string(text), "\n## Rules that do not apply\n")
	require.True(t, found)

	tested, promised := idsInTests(t), map[string]bool{}
	for line := range strings.Lines(held) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		m := behaviourLine.FindStringSubmatch(line)
		if !assert.NotNil(t, m, "docs/behaviours.md: expected ids and a sentence: %s", line) {
			continue
		}
		assert.True(t, strings.HasSuffix(m[2], "."), "docs/behaviours.md: the line of %s is no sentence", m[1])
		for id := range strings.SplitSeq(m[1], ", ") {
			assert.False(t, promised[id], "docs/behaviours.md states %s twice", id)
			assert.NotEmpty(t, tested[id], "docs/behaviours.md states %s, which no test holds", id)
			promised[id] = true
		}
	}
	require.NotEmpty(t, promised)
	for _, id := range slices.Sorted(maps.Keys(tested)) {
		assert.True(t, promised[id], "%s is held by %s: add its line to docs/behaviours.md", id, tested[id])
	}

	for line := range strings.Lines(elsewhere) {
		ids, _, _ := strings.Cut(line, ":")
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		for id := range idsIn(ids) {
			assert.False(t, promised[id], "docs/behaviours.md has %s as a tested rule and as one that does not apply", id)
		}
	}
}

// idsIn returns the ids in a text, including all ids of ranges.
func idsIn(text string) map[string]bool {
	ids := map[string]bool{}
	for _, m := range behaviourRange.FindAllStringSubmatch(text, -1) {
		first, _ := strconv.Atoi(m[2])
		last := first
		if m[3] != "" {
			last, _ = strconv.Atoi(m[3])
		}
		for n := first; n <= last; n++ {
			ids[idOf(m[1], n)] = true
		}
	}
	return ids
}

func idOf(system string, n int) string { return fmt.Sprintf("%s-%02d", system, n) }

// idsInTests returns the ids in the tests, each with a file that mentions it.
func idsInTests(t *testing.T) map[string]string {
	t.Helper()
	ids := map[string]string{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") || path == "behaviours_test.go":
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range behaviour.FindAllStringSubmatch(string(text), -1) {
			n, _ := strconv.Atoi(m[2])
			ids[idOf(m[1], n)] = path
		}
		return err
	}))
	return ids
}
