package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
)

func newHooksList(std console.Streams) *cobra.Command {
	var asJSON, all bool
	var policies []string
	c := &cobra.Command{
		Use:   "list [FILE...]",
		Short: "Show which rules are in force here, from which files, in which order",
		Long: `Show the rules that would be in force for a run with these policy files, grouped by point
and in their order: the rules of the files first, then those of your own policy for all agents, policy.yaml in the folder
grapnel of your configuration (~/.config on Linux).`,
		Example: `  grapnel hooks list
  grapnel hooks list workspace.yaml
  grapnel hooks list --json workspace.yaml | jq '.rules[].id'`,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := agents.LoadPolicies(append(policies, args...), "", nil)
			if err != nil {
				return err
			}
			if p == nil {
				p = &policy.Policy{}
			}
			if asJSON {
				out := json.NewEncoder(std.Out)
				out.SetEscapeHTML(false) // conditions have &&
				return out.Encode(map[string]any{
					"policies": lo.CoalesceSliceOrEmpty(p.Names(), []string{}), "disabled": lo.CoalesceSliceOrEmpty(p.DisabledPolicies(), []string{}),
					"hash": p.Hash(), "rules": lo.CoalesceSliceOrEmpty(p.Rules(), []policy.Rule{}),
				})
			}
			return listRules(std.Out, p, all)
		},
	}
	c.Flags().StringArrayVarP(&policies, "policy", "p", nil, "a policy `file`, as the arguments are; may be given several times")
	c.Flags().BoolVar(&all, "all", false, "show the rules in full, with their conditions")
	c.Flags().BoolVar(&asJSON, "json", false, "write it as JSON")
	return c
}

// listRules writes the rules as a table for each point. Unless all is set, it omits rules that are never
// asked and writes their number.
func listRules(f *os.File, p *policy.Policy, all bool) error {
	if len(p.Names()) == 0 {
		_, err := fmt.Fprintf(f, "No policy is in force. Give one with --policy, or put one for all agents into %s.\n", timeline.Clean(agents.GlobalPolicy()))
		return err
	}
	width := console.ColumnsOf(f)
	if all {
		width = 0
	}
	never := map[string]bool{}
	warnings := p.Check()
	for _, w := range warnings {
		if w.Never {
			never[w.Rule] = true
		}
	}
	shown := lo.Filter(p.Rules(), func(r policy.Rule, _ int) bool { return all || !never[r.Hook()] })
	var text bytes.Buffer
	fmt.Fprintln(&text, agents.PolicyNote(p))
	writeRules(&text, shown, width, all)
	if hidden := len(p.Rules()) - len(shown); hidden > 0 {
		fmt.Fprintf(&text, "\n%d %s never asked: --all shows them, and hooks check explains why.\n", hidden, lo.Ternary(hidden == 1, "rule is", "rules are"))
	}
	for _, warning := range warnings {
		if warning.Code == "required" { // hooks check sees one file, but this warning needs all files
			fmt.Fprintf(&text, "\n%s\n", timeline.Clean(warning.String()))
		}
	}
	_, err := f.Write(text.Bytes())
	return err
}

// writeRules writes a table, or two lines for each rule if the table is wider than a terminal.
func writeRules(w io.Writer, rules []policy.Rule, width int, all bool) {
	var table bytes.Buffer
	out := console.NewTable(&table)
	at := hooks.PointName("")
	for _, r := range rules {
		if r.Point != at {
			at = r.Point
			fmt.Fprintf(out, "\n%s\n", at)
		}
		out.Row(fmt.Sprintf("  %d", r.Order), r.Hook(), whatItDoes(r), r.Mode, fmt.Sprintf("%s:%d", r.File, r.Line), aboutWhat(r, all))
	}
	_ = out.Flush() // into memory
	if lines := strings.Split(table.String(), "\n"); width == 0 || !lo.SomeBy(lines, func(l string) bool { return len([]rune(l)) > width }) {
		_, _ = w.Write(table.Bytes()) // as above
		return
	}
	at = ""
	for _, r := range rules {
		if r.Point != at {
			at = r.Point
			fmt.Fprintf(w, "\n%s\n", at)
		}
		fmt.Fprintln(w, console.Shorten(fmt.Sprintf("%3d  %s  %s  %s", r.Order, timeline.Clean(r.Hook()), whatItDoes(r), r.Mode), width))
		fmt.Fprintln(w, console.Shorten(fmt.Sprintf("     %s:%d  %s", timeline.Clean(r.File), r.Line, timeline.Clean(aboutWhat(r, all))), width))
	}
}

func whatItDoes(r policy.Rule) string {
	if r.Action != "" {
		return r.Action + lo.Ternary(r.Await, "", " (not awaited)")
	}
	return r.Decision
}

// mostAbout is the maximum length of a match or a condition in a list, in characters.
const mostAbout = 60

// aboutWhat returns the match and condition of a rule: a beginning of them unless all is set.
func aboutWhat(r policy.Rule, all bool) string {
	match, when := lo.CoalesceOrEmpty(r.Match, "everything"), r.When
	if !all {
		match, when = console.Shorten(match, mostAbout), console.Shorten(when, mostAbout)
	}
	about := match + lo.Ternary(when == "", "", "  when "+strings.Join(strings.Fields(when), " "))
	return about + lo.Ternary(r.Needs() == "", "", "  ("+r.Needs()+")")
}
