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
	behaviour      = regexp.MustCompile(`\b(IP|LH|SW|AP|CO|X)-(\d{1,3})\b`)
	behaviourRange = regexp.MustCompile(`\b(IP|LH|SW|AP|CO|X)-(\d+)(?:…(\d+))?`)
)

// docs/behaviours.md says which behaviours tests hold, and every test that holds one
// is on that page.
func TestBehavioursAreHeldByTests(t *testing.T) {
	page, err := os.ReadFile("docs/behaviours.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "\n## Held by tests\n")
	require.True(t, found)
	list, rest, _ := strings.Cut(rest, "\nWhere a line")
	promised := idsOn(list)
	require.NotEmpty(t, promised)
	_, elsewhere, _ := strings.Cut(rest, "\n## Do not apply\n")
	tested := idsInTests(t)
	for _, id := range slices.Sorted(maps.Keys(promised)) {
		assert.NotEmpty(t, tested[id], "docs/behaviours.md says that tests hold %s: none does", id)
	}
	for _, id := range slices.Sorted(maps.Keys(tested)) {
		assert.True(t, promised[id], "%s is held by %s: add it to docs/behaviours.md", id, tested[id])
	}
	// The last section speaks of what is there under other ids: only lists count.
	for line := range strings.Lines(elsewhere) {
		head, _, isList := strings.Cut(line, ":")
		if !isList || !strings.HasPrefix(line, "- ") {
			continue
		}
		for id := range idsOn(head) {
			assert.False(t, promised[id], "docs/behaviours.md has %s in two places", id)
		}
	}
}

// idsOn returns the ids on a page, ranges spelled out.
func idsOn(page string) map[string]bool {
	ids := map[string]bool{}
	for _, m := range behaviourRange.FindAllStringSubmatch(page, -1) {
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

// idsInTests returns the ids in the tests, with a file for each.
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
