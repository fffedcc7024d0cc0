package library_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// tally counts what policies decide about lines.
type tally struct {
	lines, denied, asked int
	rules                map[string]int
	stopped              []string
}

// judgeLines counts what the policies decide about each line together.
func judgeLines(t *testing.T, policies []hooks.Set, lines []string) tally {
	t.Helper()
	sum := tally{rules: map[string]int{}}
	for _, line := range lines {
		deny, ask := "", ""
		for _, set := range policies {
			for _, e := range fireLine(t, set, line).Events {
				switch e.Decision {
				case hooks.Deny:
					deny += " " + e.Hook
				case hooks.Ask:
					ask += " " + e.Hook
				default:
					continue
				}
				sum.rules[fmt.Sprint(e.Hook, " ", e.Decision)]++
			}
		}
		sum.lines++
		switch {
		case deny != "":
			sum.denied++
		case ask != "":
			sum.asked++
		default:
			continue
		}
		sum.stopped = append(sum.stopped, line+" <-"+deny+ask)
	}
	return sum
}

// listedLines returns the lines of a list, without comments.
func listedLines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool { return l == "" || strings.HasPrefix(l, "# ") })
}

// workPolicies returns the three policies for a new folder with some files, and the folder.
func workPolicies(t *testing.T, names ...string) ([]hooks.Set, string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append(names, "src/a.go", "cmd/app/main.go", "logs/a.log", "a.txt", "go.mod", ".git/HEAD") {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
	}
	t.Chdir(dir)
	return []hooks.Set{shipped(t, "workspace", map[string]any{"workspace": dir}), shipped(t, "safe-shell", nil), shipped(t, "secrets", nil)}, dir
}

// Ordinary lines pass workspace, safe-shell and secrets, and dangerous lines do not. The table has both directions:
// make shell-report prints it.
func TestOrdinaryLines(t *testing.T) {
	ordinary := map[string][]string{}
	for _, name := range []string{"tuning", "holdout"} {
		ordinary[name] = listedLines(t, filepath.Join("testdata", "ordinary", name+".txt"))
	}
	dangerous := map[string][]string{"listed": listedLines(t, filepath.Join("testdata", "ordinary", "dangerous.txt"))}
	if os.Getenv("GRAPNEL_SHELL_REPORT") != "" {
		parts.Recordings(t)
		for _, l := range append(lines(t, "shell-dangerous.jsonl"), lines(t, "shell-benign.jsonl")...) {
			switch l.Label {
			case "benign", "benign_lookalike":
				ordinary["recorded"] = append(ordinary["recorded"], l.Cmd)
			case "dangerous", "evasive", "unparseable":
				dangerous["recorded"] = append(dangerous["recorded"], l.Cmd)
			}
		}
	}
	t.Setenv("HOME", "/home/user") // a home below the folder for temporary files would be readable
	policies, dirs := map[string][]hooks.Set{}, map[string]string{}
	policies["ordinary "], dirs["ordinary "] = workPolicies(t, "README.md")
	policies["dangerous "], dirs["dangerous "] = workPolicies(t, "existing", ".env")

	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "lines\tnumber\tdenied\tasked\tallowed\tstopped %\t")
	stopped := map[string]tally{}
	for kind, lists := range map[string]map[string][]string{"ordinary ": ordinary, "dangerous ": dangerous} {
		for _, name := range slices.Sorted(maps.Keys(lists)) {
			t.Chdir(dirs[kind])
			sum := judgeLines(t, policies[kind], lists[name])
			stopped[kind+name] = sum
			fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%.1f\t\n", kind+name, sum.lines, sum.denied, sum.asked, sum.lines-sum.denied-sum.asked,
				100*float64(sum.denied+sum.asked)/float64(sum.lines))
		}
	}
	if os.Getenv("GRAPNEL_SHELL_REPORT") != "" {
		require.NoError(t, out.Flush())
		for _, name := range slices.Sorted(maps.Keys(stopped)) {
			for _, rule := range slices.Sorted(maps.Keys(stopped[name].rules)) {
				fmt.Printf("%s: %s: %d\n", name, rule, stopped[name].rules[rule])
			}
		}
	}
	for name, limit := range map[string]int{"tuning": 9, "holdout": 13} {
		sum := stopped["ordinary "+name]
		assert.LessOrEqual(t, sum.denied+sum.asked, limit, "%s:\n%s", name, strings.Join(sum.stopped, "\n"))
	}
	listed := stopped["dangerous listed"]
	assert.Equal(t, listed.lines, listed.denied+listed.asked, "only these lines are stopped:\n%s", strings.Join(listed.stopped, "\n"))
}
