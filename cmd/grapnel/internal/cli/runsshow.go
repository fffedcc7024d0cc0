package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
)

// shownRun is the JSON form of a run in show --json.
type shownRun struct {
	listed

	// Questions are the questions to persons, including answered ones.
	Questions []agent.Intervention `json:"questions,omitempty"`
	// Doubt are the calls that have begun and whose outcome is unknown.
	Doubt  []string     `json:"in_doubt,omitempty"`
	Answer string       `json:"answer,omitempty"`
	Usage  *agent.Usage `json:"usage,omitempty"`
	// Began is the definition of the agent.
	Began *definition `json:"began_with,omitempty"`
}

func (r *runs) newShow() *cobra.Command {
	var asJSON, journal bool
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show a run: its steps, its status, what it waits for",
		Args:  someRun,
		RunE: func(c *cobra.Command, args []string) error {
			return r.with(c.Context(), false, func(k *kept) error {
				about, err := k.find(c.Context(), args[0])
				if err != nil {
					return err
				}
				if journal {
					return r.showJournal(c.Context(), k, about.ID, asJSON)
				}
				return r.show(c.Context(), k, about, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write it as a JSON object")
	c.Flags().BoolVar(&journal, "journal", false, "list the entries of its journal instead")
	return c
}

func (r *runs) show(ctx context.Context, k *kept, about durable.Run, asJSON bool) error {
	l, err := k.listRun(ctx, about)
	if err != nil {
		return err
	}
	s, err := durable.Load(ctx, k.store, about.ID)
	unbegun := errors.Is(err, durable.ErrNotBegun)
	if err != nil && !unbegun {
		return err
	}
	out := shownRun{listed: l, Questions: s.Interventions(), Doubt: agent.Checkpoint(s).CallsInDoubt()}
	d, known := definitionKey.From(s)
	if known {
		out.Began = &d
	}
	if asJSON {
		if u := s.RunUsage(); u != (agent.Usage{}) {
			out.Usage = &u
		}
		if about.Status.Terminal() {
			out.Answer = s.Answer()
		}
		return writeJSON(r.std.out, out)
	}
	now := time.Now()
	fmt.Fprintf(r.std.out, "%s  %s", timeline.Clean(string(about.ID)), about.Status)
	if standing := l.standing(now); standing != "" {
		fmt.Fprintf(r.std.out, "  (%s)", timeline.Clean(standing))
	}
	fmt.Fprintf(r.std.out, "\nagent %s, began %s, %d steps, last heard of %s\n", timeline.Clean(about.Agent),
		about.Created.Local().Format("2006-01-02 15:04:05"), about.Steps, timeline.Ago(about.Updated, now))
	if known {
		fmt.Fprintf(r.std.out, "in %s: grapnel run %s\n", timeline.Clean(d.Dir), timeline.Clean(d.summary()))
	}
	if unbegun {
		fmt.Fprintln(r.std.out, "It was interrupted before its input was accepted.")
		return nil
	}
	fmt.Fprintln(r.std.out)
	t := timeline.New(timeline.Config{Out: r.std.out, Width: func() int { return widthOf(r.std.out) }, Colour: wantsColour(r.std.out, "auto")})
	t.Replay(s)
	for _, i := range out.Questions {
		t.Waits(i, now)
	}
	for _, id := range out.Doubt {
		fmt.Fprintf(r.std.out, "  The call %s began before the run was interrupted, and its outcome is unknown.\n", timeline.Clean(id))
	}
	if about.Status.Terminal() {
		fmt.Fprintf(r.std.out, "\n%s\n", timeline.Clean(timeline.Verdict(s, nil)))
		return nil
	}
	if s.Parked() {
		fmt.Fprintln(r.std.out, "\n"+k.howToGoOn(s))
	}
	return nil
}

// entryShown is a journal entry with its data as JSON, not as bytes.
type entryShown struct {
	durable.Entry

	Data json.RawMessage `json:"data,omitempty"`
}

func shownEntry(e durable.Entry) entryShown {
	out := entryShown{Entry: e}
	if json.Valid(e.Data) {
		out.Data = e.Data
	} else if len(e.Data) > 0 { // data of Keeper.Once, which may be anything
		out.Data, _ = json.Marshal(e.Data) //nolint:errchkjson // bytes become base64
	}
	return out
}

func (r *runs) showJournal(ctx context.Context, k *kept, id agent.RunID, asJSON bool) error {
	entries, err := k.store.Entries(ctx, id, 0)
	if err != nil {
		return err
	}
	if asJSON {
		all := make([]entryShown, len(entries))
		for i, e := range entries {
			all[i] = shownEntry(e)
		}
		return writeJSON(r.std.out, all)
	}
	table := tabwriter.NewWriter(r.std.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, e := range entries {
		fmt.Fprintf(table, "%d\t%s\t%d bytes\t", e.Seq, e.At.Local().Format("2006-01-02 15:04:05.000"), len(e.Data))
		fmt.Fprintf(table, "  %s\n", strings.TrimSpace(timeline.Clean(string(e.Kind)+" "+e.Key)))
	}
	return table.Flush()
}
