package library_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/library"
)

var update = flag.Bool("update", false, "write the golden file")

// A version keeps its rules: testdata/rules.txt lists each version's rules, including the rules of included policies.
// If this fails, give the policy a new version, keep the old text as NAME@VERSION.yaml, and run the test with
// -update.
func TestAVersionKeepsItsRules(t *testing.T) {
	var b strings.Builder
	for _, name := range library.Names() {
		for _, version := range library.Versions(name) {
			pinned := library.Prefix + name + "@" + version
			p, err := policy.LoadFiles(pinned)
			require.NoError(t, err)
			assert.Equal(t, []string{library.Prefix + name}, p.Names(), "the key policy of %s", pinned)
			fmt.Fprintln(&b, pinned)
			for _, r := range p.Rules() {
				assert.Empty(t, r.Action, "%s: rules of the library have no actions: their results would share names with those of users", r.Hook())
				assert.NotRegexp(t, `-[0-9]+$`, r.ID, "%s has no id", r.Hook())
				fmt.Fprintf(&b, "  %s %s %s\n", r.Hook(), r.Point, cmp.Or(r.Decision, r.Action))
			}
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/rules.txt", []byte(b.String()), 0o600))
	}
	golden, err := os.ReadFile("testdata/rules.txt")
	require.NoError(t, err)
	assert.Equal(t, string(golden), b.String())
}
