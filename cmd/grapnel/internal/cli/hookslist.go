package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
)

func newHooksList(std streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list [FILE...]",
		Short: "Show which rules are in force here, from which files, in which order",
		Long: `Show the rules that would be in force for a run with these policy files, by the point at which they are asked
and in that order: those of the files first, then those of your own policy for all agents, policy.yaml in the folder
grapnel of your configuration (~/.config on Linux).`,
		Example: `  grapnel hooks list
  grapnel hooks list workspace.yaml
  grapnel hooks list --json workspace.yaml | jq '.rules[].id'`,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := loadPolicies(args, nil)
			if err != nil {
				return err
			}
			if p == nil {
				p = &policy.Policy{}
			}
			if asJSON {
				return json.NewEncoder(std.out).Encode(map[string]any{
					"policies": lo.CoalesceSliceOrEmpty(p.Names(), []string{}), "disabled": lo.CoalesceSliceOrEmpty(p.DisabledPolicies(), []string{}),
					"hash": p.Hash(), "rules": lo.CoalesceSliceOrEmpty(p.Rules(), []policy.Rule{}),
				})
			}
			return listRules(std.out, p)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write it as JSON")
	return c
}

// listRules writes the rules as a table for each point.
func listRules(w io.Writer, p *policy.Policy) error {
	if len(p.Names()) == 0 {
		_, err := fmt.Fprintf(w, "No policy is in force. Give one with --policy, or put one for all agents into %s.\n", timeline.Clean(globalPolicy()))
		return err
	}
	fmt.Fprintln(w, policyNote(p))
	at := hooks.PointName("")
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range p.Rules() {
		if r.Point != at {
			at = r.Point
			fmt.Fprintf(out, "\n%s\n", at)
		}
		fmt.Fprintf(out, "  %d\t%s\t%s\t%s\t%s:%d\t%s\n", r.Order, timeline.Clean(r.Hook()), whatItDoes(r), r.Mode,
			timeline.Clean(r.File), r.Line, timeline.Clean(aboutWhat(r)))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, warning := range p.Check() {
		if warning.Code == "required" { // hooks check sees one file, and this is about several
			fmt.Fprintf(w, "\n%s\n", timeline.Clean(warning.String()))
		}
	}
	return nil
}

func whatItDoes(r policy.Rule) string {
	if r.Action != "" {
		return r.Action + lo.Ternary(r.Await, "", " (not awaited)")
	}
	return r.Decision
}

// aboutWhat returns the beginning of a description: the whole of it stands in the file, and in --json.
func aboutWhat(r policy.Rule) string {
	text := shortenText(lo.CoalesceOrEmpty(r.Match, "everything"))
	return text + lo.Ternary(r.When == "", "", "  when "+shortenText(r.When))
}

func shortenText(text string) string {
	const most = 60 // letters
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}
