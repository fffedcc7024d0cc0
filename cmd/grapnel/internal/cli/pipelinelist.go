package cli

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

func (p *pipelines) newList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the sessions of this folder",
		Long:    "List the sessions that were started in this folder, newest first.",
		Example: "  grapnel pipeline list",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r := &runs{std: p.std, at: p.at}
			return r.with(c.Context(), false, func(k *kept) error {
				all, err := k.listSessions(c.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(p.std.out, all)
				}
				return p.writeList(all)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write them as a JSON array")
	return c
}

// writeList writes sessions as a table.
func (p *pipelines) writeList(all []pipeline.Status) error {
	if len(all) == 0 {
		fmt.Fprintln(p.std.err, "grapnel: No session of this folder.")
		return nil
	}
	w := tabwriter.NewWriter(p.std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tPIPELINE\tSTATUS\tSTAGE\tITERATION\tUPDATED")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", s.Session, s.Pipeline, s.Status, s.Stage, s.Iteration, s.Updated.Local().Format(time.DateTime))
	}
	return w.Flush()
}

// listSessions returns the status of the sessions of this folder, newest first.
func (k *kept) listSessions(ctx context.Context) ([]pipeline.Status, error) {
	all := []pipeline.Status{}
	for f := (durable.Filter{Kind: durable.KindPipeline, Limit: page}); ; {
		found, err := k.store.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, about := range found {
			dir, err := sessionDir(about.Labels[pipeline.LabelSession])
			if err != nil {
				return nil, err
			}
			if about.Demands[sessionDemand] != sessionKey(dir) || about.Parent != "" {
				continue
			}
			status, err := pipeline.StatusOf(ctx, k.store, about)
			if err != nil {
				return nil, err
			}
			all = append(all, status)
		}
		if len(found) < page {
			return all, nil
		}
		f.Before = found[len(found)-1].ID
	}
}

func (p *pipelines) newLogs() *cobra.Command {
	var asJSON, follow bool
	c := &cobra.Command{
		Use:     "logs SESSION",
		Short:   "Write the events of a session",
		Long:    "Write the events of a session so far. With --follow, write those that come, too, until the session has ended.",
		Example: "  grapnel pipeline logs friday --follow",
		Args:    oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withSession(c.Context(), args[0], func(k *kept, about durable.Run) error {
				about.Events = 0
				run := &sessionRun{pipelines: p, sessionLook: sessionLook{asJSON: asJSON}, kept: k, about: about}
				if follow {
					return run.follow(c.Context())
				}
				for after := int64(0); ; {
					events, err := k.store.Events(c.Context(), about.ID, after, page)
					if err != nil || len(events) == 0 {
						return err
					}
					for _, e := range events {
						if err := run.writeEvent(e); err != nil {
							return err
						}
						after = e.Seq
					}
				}
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "write events as they come, until the session has ended")
	c.Flags().BoolVar(&asJSON, "json", false, "write each event as a JSON object (docs/pipelines.md)")
	return c
}
