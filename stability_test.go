package grapnel_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var quotedName = regexp.MustCompile("`([^`]+)`")

// packagesIn returns the packages in the first column of the table below a heading of docs/stability.md.
func packagesIn(page, heading string) []string {
	_, section, _ := strings.Cut(page, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, found := range quotedName.FindAllStringSubmatch(cells[1], -1) {
				names = append(names, found[1])
			}
		}
	}
	return names
}

// Every package that programs can import must be listed as stable or experimental.
func TestStabilityNamesEveryPublicPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("docs", "stability.md"))
	require.NoError(t, err)
	listed := append(packagesIn(string(text), "Stable"), packagesIn(string(text), "Experimental")...)
	public := lo.Filter(lo.Keys(layers), func(name string, _ int) bool {
		return name != "" && !layers[name].Shown && !layers[name].Planned && !strings.HasPrefix(name, "cmd/") &&
			!strings.Contains("/"+name+"/", "/internal/")
	})
	assert.ElementsMatch(t, public, listed, "docs/stability.md names each public package once, under Stable or Experimental")
}
