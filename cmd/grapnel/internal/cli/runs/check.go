package runs

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/history"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// checkFlags are the flags of "grapnel runs check".
type checkFlags struct {
	since         string
	ended, asJSON bool
}

func (r *runs) newCheck() *cobra.Command {
	var o checkFlags
	c := &cobra.Command{
		Use:   "check [RUN...]",
		Short: "Check the histories of runs of a coordinator",
		Long: `Read the runs of a coordinator with their events, and check that no event is missing or there twice, that
each decision of a hook was recorded once, that a run has the parameters that its hooks have returned,
and that it has ended once, as its events say. Without RUN, all runs are checked.

The command reads the runs at --server, for which the variable ` + storage.TokenVariable + ` has a token with the role
viewer, or those of a store: of a backup, for example.

It exits with 1 if something is wrong, and writes a line for each problem. Hooks around runs that have failed are
no contradiction: they are listed on standard error.`,
		Example: `  GRAPNEL_TOKEN=grp_… grapnel runs check --server http://127.0.0.1:8420
  grapnel runs check --store backup.db --ended`,
		RunE: func(c *cobra.Command, args []string) error {
			return r.With(c.Context(), false, func(k *storage.Store) error { return r.check(c.Context(), k.Client, &o, args) })
		},
	}
	f := c.Flags()
	f.StringVar(&o.since, "since", "", "only runs created since this `time`: a duration such as 12h or 7d, or an RFC 3339 time")
	f.BoolVar(&o.ended, "ended", false, "a run that has not ended is a problem, too")
	f.BoolVar(&o.asJSON, "json", false, "write the problems as a JSON array")
	return c
}

// check checks runs, or all of them.
func (r *runs) check(ctx context.Context, c *client.Client, o *checkFlags, ids []string) error {
	query := url.Values{"limit": {strconv.Itoa(storage.Page)}, "hook_runs": {"true"}}
	if o.since != "" {
		since, err := console.InstantOf("--since", o.since, time.Now(), -1)
		if err != nil {
			return console.Usage(err)
		}
		query.Set("since", since.UTC().Format(time.RFC3339Nano))
	}
	var all history.Checker
	add := func(id agent.RunID) error {
		d, events, err := readHistory(ctx, c, id)
		if err != nil {
			return err
		}
		if all.Add(d, events); o.ended {
			all.RequireEnds(d.Run)
		}
		return nil
	}
	for _, id := range ids {
		if err := add(agent.RunID(id)); err != nil {
			return storage.ExplainError(err)
		}
	}
	for len(ids) == 0 {
		list, err := c.Runs(ctx, query)
		if err != nil {
			return storage.ExplainError(err)
		}
		for _, run := range list.Runs {
			if err := add(run.RunID); err != nil {
				return storage.ExplainError(err)
			}
		}
		if list.Next == "" {
			break
		}
		query.Set("before", list.Next)
	}
	return r.reportProblems(&all, o)
}

// readHistory reads a run and all of its events. They are read after the run, so that those of a run that has ended are complete.
func readHistory(ctx context.Context, c *client.Client, id agent.RunID) (wire.RunDetail, []wire.EventView, error) {
	d, err := c.Run(ctx, id)
	if err != nil {
		return d, nil, err
	}
	var events []wire.EventView
	for {
		more, err := c.Events(ctx, id, lastSeq(events), storage.Page)
		if err != nil {
			return d, nil, err
		}
		events = append(events, more...)
		if len(more) < storage.Page {
			break
		}
	}
	if d.Status == wire.Completed || d.Status == wire.Failed || d.Status == wire.Stopped {
		return d, events, nil
	}
	again, err := c.Run(ctx, id) // it may have gone on while the events were read
	if err == nil && (again.Status != d.Status || len(again.Hooks) != len(d.Hooks) || !again.UpdatedAt.Equal(d.UpdatedAt)) {
		return readHistory(ctx, c, id)
	}
	return again, events, err
}

func lastSeq(events []wire.EventView) int64 {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Seq
}

// reportProblems writes what is wrong, and returns an error if something is.
func (r *runs) reportProblems(all *history.Checker, o *checkFlags) error {
	problems := all.Problems()
	if o.asJSON {
		if err := console.WriteJSON(r.Std.Out, append([]history.Problem{}, problems...)); err != nil {
			return err
		}
	} else {
		for _, p := range problems {
			fmt.Fprintf(r.Std.Out, "%s %s: %s\n", timeline.Clean(string(p.Run)), timeline.Clean(p.Agent), timeline.Clean(p.Text))
		}
	}
	for _, n := range all.Failures() { // of what was checked, nothing is wrong with these
		fmt.Fprintf(r.Std.Err, "%s %s: %s\n", timeline.Clean(string(n.Run)), timeline.Clean(n.Agent), timeline.Clean(timeline.OneLine(n.Text)))
	}
	failed := ""
	if n := len(all.Failures()); n > 0 {
		failed = fmt.Sprintf(" (%d hooks have failed)", n)
	}
	fmt.Fprintf(r.Std.Err, "Checked %d runs (%d have not ended) with %d events and %d events of hooks%s: %s.\n", all.Runs, all.Open,
		all.Events, all.Hooks, failed, lo.Ternary(len(problems) == 0, "no problem", fmt.Sprintf("%d problems", len(problems))))
	if len(problems) > 0 {
		return console.Exit(console.ExitFailed)
	}
	return nil
}
