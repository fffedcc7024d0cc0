package pipeline

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

func (p *pipelines) newList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the sessions of this folder",
		Long: `List the sessions that were started in this folder, newest first, and the pipelines that their hooks have started without
awaiting them.`,
		Example: "  grapnel pipeline list",
		Args:    console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.With(c.Context(), false, func(k *storage.Store) error {
				all, err := listSessions(c.Context(), k)
				if err != nil {
					return err
				}
				if asJSON {
					return console.WriteJSON(p.Std.Out, all)
				}
				return p.writeList(all)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write them as a JSON array")
	return c
}

// writeList writes sessions as a table.
func (p *pipelines) writeList(all []sessionReport) error {
	if len(all) == 0 {
		fmt.Fprintln(p.Std.Err, "grapnel: No sessions.")
		return nil
	}
	table := console.NewTable(p.Std.Out, "SESSION", "PIPELINE", "STATUS", "STAGE", "ITERATION", "UPDATED")
	for _, s := range all {
		table.Row(s.Session, s.Pipeline, s.State, s.Stage, s.Iteration, s.Updated)
	}
	return table.Flush()
}

// listSessions returns the sessions of this folder or of a coordinator, newest first.
func listSessions(ctx context.Context, k *storage.Store) ([]sessionReport, error) {
	all := []sessionReport{}
	for about, err := range k.Runs(ctx, durable.Filter{Kind: durable.KindPipeline}) {
		if err != nil {
			return nil, err
		}
		here, err := isOfFolder(about)
		if err != nil {
			return nil, err
		}
		if served := k.Served() && (isServed(about) || about.Labels[pipeline.LabelDetached] != ""); !here && !served {
			continue
		}
		report, err := report(ctx, k, about)
		if err != nil {
			return nil, err
		}
		all = append(all, report)
	}
	return all, nil
}

func (p *pipelines) newLogs() *cobra.Command {
	var asJSON, follow bool
	c := &cobra.Command{
		Use:   "logs SESSION",
		Short: "Write the events of a session",
		Long: `Write the events of a session so far, with those of its parallel stages and of the pipelines that its hooks have started. With
--follow, write those that come, too, until the session has ended.`,
		Example: "  grapnel pipeline logs friday --follow",
		Args:    oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withSession(c.Context(), args[0], func(k *storage.Store, about durable.Run) error {
				about.Events = 0
				run := &sessionRun{pipelines: p, sessionLook: sessionLook{asJSON: asJSON}, kept: k, about: about}
				if follow {
					return run.follow(c.Context())
				}
				return run.writeRest(c.Context())
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "write events as they come, until the session has ended")
	c.Flags().BoolVar(&asJSON, "json", false, "write each event as a JSON object (docs/pipelines.md)")
	return c
}
