package runs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/near"
)

func (r *runs) newDenyTools() *cobra.Command {
	var by, reason string
	var asJSON bool
	c := &cobra.Command{
		Use:   "deny-tools on | off | show",
		Short: "Deny every tool in all runs of the store, immediately",
		Long: `Deny every tool of every run of the store, or end that. Running runs obey at
their next call; a call that already runs is not stopped. The models see the reason.`,
		Example: `  grapnel runs deny-tools on --reason "the build machine is on fire"
  grapnel runs deny-tools off`,
		ValidArgs: []string{"on", "off", "show"},
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return console.Usagef("%s needs one argument: on, off or show", c.CommandPath())
			}
			if slices.Contains(c.ValidArgs, args[0]) {
				return nil
			}
			meant, ok := near.Name(args[0], []string{"on", "off", "show"})
			if ok {
				meant = " (did you mean " + meant + "?)"
			}
			return console.Usagef("%s: expected on, off or show, got %q%s", c.CommandPath(), args[0], meant)
		},
		RunE: func(c *cobra.Command, args []string) error {
			return r.With(c.Context(), args[0] == "on", func(k *storage.Store) error {
				if args[0] != "show" {
					sw := durable.Switch{On: args[0] == "on", Reason: reason, By: by, Since: time.Now().UTC()}
					if err := k.Control.SetDenyTools(c.Context(), sw); err != nil {
						return err
					}
				}
				return r.showSwitch(c.Context(), k, asJSON)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, as `text` that models are told")
	c.Flags().StringVar(&by, "by", console.UserName(), "`name` to record as the author")
	c.Flags().BoolVar(&asJSON, "json", false, "write the state of the switch as a JSON object")
	return c
}

func (r *runs) showSwitch(ctx context.Context, k *storage.Store, asJSON bool) error {
	sw, err := k.Store.DenyTools(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return console.WriteJSON(r.Std.Out, sw)
	}
	text := "Hooks decide about tools"
	if sw.On {
		text = "Every tool is denied"
	}
	if !sw.Since.IsZero() {
		text += fmt.Sprintf(", since %s, by %s", console.LocalTime(sw.Since), sw.By)
	}
	if sw.Reason != "" {
		text += ": " + sw.Reason
	}
	fmt.Fprintf(r.Std.Out, "%s.\n", timeline.Clean(text))
	return nil
}
