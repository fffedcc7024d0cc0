package runs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/durable"
)

func (r *runs) newPause() *cobra.Command {
	var by string
	c := &cobra.Command{
		Use:   "pause ID",
		Short: "Pause a run",
		Long: `Pause a run: the process that executes it stops after the current step, and no process continues it until
"grapnel runs resume". A command that runs is not interrupted.`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			return r.signal(c.Context(), args[0], durable.Signal{Kind: durable.SignalPause, By: by}, "%s is paused after its current step.")
		},
	}
	registerBy(c, &by)
	return c
}

func (r *runs) newTell() *cobra.Command {
	var by string
	c := &cobra.Command{
		Use:   "tell ID TEXT",
		Short: "Add a message to the conversation of a run",
		Long: `Add a message to the conversation of a run of an agent: the model reads it in the next step. TEXT may be "-"
for standard input.`,
		Example: `  grapnel runs tell run_7GHK2MWQ "Use the staging server."`,
		Args:    console.Takes(2, console.Unlimited, "needs the ID of a run and a text"),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := console.PromptOf(args[1:], r.Std.In)
			if err == nil && text == "" {
				err = fmt.Errorf("%s: the text is empty", c.CommandPath())
			}
			if err != nil {
				return console.Usage(err)
			}
			return r.signal(c.Context(), args[0], durable.Signal{Kind: durable.SignalContext, Text: text, By: by}, "%s is told before its next step.")
		},
	}
	registerBy(c, &by)
	return c
}

func registerBy(c *cobra.Command, by *string) {
	c.Flags().StringVar(by, "by", console.UserName(), "`name` to record as the sender")
}

// signal sends a signal to a run that has not ended.
func (r *runs) signal(ctx context.Context, id string, s durable.Signal, sent string) error {
	return r.WithRun(ctx, id, func(k *storage.Store, about durable.Run) error {
		switch {
		case about.Status.Ended():
			return fmt.Errorf("run %s has already ended with status %s", about.ID, about.Status)
		case s.Kind == durable.SignalContext && about.Kind != durable.KindAgent:
			return console.Usagef("run %s is a run of a %s, which has no conversation", about.ID, about.Kind)
		case s.Kind == durable.SignalContext:
			if err := k.CheckKey(ctx, about); err != nil {
				return err
			}
		}
		if err := k.Control.Signal(ctx, about.ID, s); err != nil {
			return err
		}
		fmt.Fprintf(r.Std.Err, sent+"\n", storage.Short(about.ID))
		return nil
	})
}
