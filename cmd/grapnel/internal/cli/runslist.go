package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// statuses are the possible statuses of a stored run.
var statuses = []agent.Status{
	agent.StatusRunning, agent.StatusParked, agent.StatusDone, agent.StatusStopped, agent.StatusFailed, agent.StatusDenied,
	agent.StatusCancelled, agent.StatusInterrupted,
}

// listed is a run in a list.
type listed struct {
	durable.Run

	// Waiting are the calls that wait for a person.
	Waiting []listedCall `json:"waiting,omitempty"`
}

type listedCall struct {
	Call string `json:"call"`
	Tool string `json:"tool"`
}

func (r *runs) newList() *cobra.Command {
	var filter durable.Filter
	var status []string
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the stored runs, newest first",
		Example: "  grapnel runs list --status parked,running\n  grapnel runs list --json | jq -r '.[] | select(.waiting) | .id'",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, text := range status {
				s, err := statusOf(text)
				if err != nil {
					return &usageError{err}
				}
				filter.Status = append(filter.Status, s)
			}
			return r.with(c.Context(), false, func(k *kept) error { return r.list(c.Context(), k, filter, asJSON) })
		},
	}
	known := lo.Map(statuses, func(s agent.Status, _ int) string { return string(s) })
	c.Flags().StringSliceVar(&status, "status", nil, "only runs with this status: "+strings.Join(known, ", "))
	c.Flags().StringVar(&filter.Agent, "agent", "", "only runs of the agent of this `name`")
	c.Flags().IntVarP(&filter.Limit, "limit", "n", 20, "the maximum number of runs")
	c.Flags().BoolVar(&asJSON, "json", false, "write them as a JSON array")
	return c
}

func statusOf(text string) (agent.Status, error) {
	if s := agent.Status(text); lo.Contains(statuses, s) {
		return s, nil
	}
	near, ok := yamlfile.Nearest(text, lo.Map(statuses, func(s agent.Status, _ int) string { return string(s) }))
	return "", fmt.Errorf("--status: unknown status %q%s", text, lo.Ternary(ok, fmt.Sprintf(" (did you mean %q?)", near), ""))
}

func (r *runs) list(ctx context.Context, k *kept, filter durable.Filter, asJSON bool) error {
	if filter.Limit <= 0 {
		return &usageError{fmt.Errorf("--limit is %d: it must be above zero", filter.Limit)}
	}
	found, err := k.store.List(ctx, filter)
	if err != nil {
		return err
	}
	all := make([]listed, len(found))
	for i, about := range found {
		if all[i], err = k.listRun(ctx, about); err != nil {
			return err
		}
	}
	if asJSON {
		return writeJSON(r.std.out, all)
	}
	if len(all) == 0 {
		fmt.Fprintf(r.std.err, "No such run in %s.\n", k.place)
		return nil
	}
	table := tabwriter.NewWriter(r.std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RUN\tSTATUS\tAGENT\tSTEPS\tBEGAN\t")
	for _, l := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", timeline.Clean(short(l.ID)), l.Status, timeline.Clean(l.Agent), l.Steps,
			timeline.Ago(l.Created, time.Now()), timeline.Clean(l.standing(time.Now())))
	}
	return table.Flush()
}

// listRun returns the list entry of a run.
func (k *kept) listRun(ctx context.Context, about durable.Run) (listed, error) {
	l := listed{Run: about}
	if about.Status != agent.StatusParked {
		return l, nil
	}
	questions, err := k.store.Questions(ctx, about.ID)
	for _, q := range questions {
		if q.Answer == nil {
			l.Waiting = append(l.Waiting, listedCall{q.Call, q.Tool})
		}
	}
	return l, err
}

// standing describes the state of a run in addition to its status.
func (l listed) standing(now time.Time) string {
	switch {
	case l.Status.Terminal() && l.Status != agent.StatusDone:
		return string(l.Reason)
	case l.Status.Terminal():
		return ""
	case l.CancelReason != "":
		return "will be cancelled: " + l.CancelReason
	case len(l.Waiting) > 0:
		text := "waits for approval of " + strings.Join(lo.Map(l.Waiting, func(c listedCall, _ int) string { return c.Tool + " (" + c.Call + ")" }), ", ")
		if left := l.Deadline.Sub(now); left > 0 && !l.Deadline.IsZero() {
			text += ", for " + timeline.Rough(left)
		}
		return text
	case l.Owner != "" && l.Expires.After(now):
		return "held by " + l.Owner
	}
	return "to be resumed"
}
