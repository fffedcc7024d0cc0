package runs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/durable"
)

func (r *runs) newWatch() *cobra.Command {
	var after int64
	var asJSON bool
	c := &cobra.Command{
		Use:   "watch ID",
		Short: "Follow the events of a run until it ends",
		Long: `Write the stored events of a run, and those that follow, until the run has ended. Each event has a number;
--after continues after one, without loss or repetition. Passes of hooks are only counted.`,
		Example: `  grapnel runs watch run_7GHK2MWQ
  grapnel runs watch run_7GHK2MWQ --after 120 --json | jq -r 'select(.type == "hook.blocked") | .reason'`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			if after < 0 {
				return console.Usagef("--after is %d: it must be the number of an event, or 0", after)
			}
			return r.WithRun(c.Context(), args[0], func(k *storage.Store, about durable.Run) error {
				return r.watch(c.Context(), k, about.ID, after, asJSON)
			})
		},
	}
	c.Flags().Int64Var(&after, "after", 0, "the `number` of the last event that is already known")
	c.Flags().BoolVar(&asJSON, "json", false, "write each event as a JSON object (docs/streams.md)")
	return c
}

// watch writes the events of a run after the event with a number until the run and the hooks after it have ended. The events of these hooks
// are numbered on.
func (r *runs) watch(ctx context.Context, k *storage.Store, id agent.RunID, after int64, asJSON bool) error {
	follow := func(id agent.RunID, before int64) error {
		for e, err := range durable.Watch(ctx, k.Store, id, max(after-before, 0)) {
			if e.Seq += before; err == nil {
				err = r.writeEvent(e, asJSON)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := follow(id, 0); err != nil {
		return err
	}
	about, err := k.Store.Run(ctx, id)
	if err != nil {
		return err
	}
	hooks, err := coordinator.FinishRun(ctx, k.Store, id)
	if err != nil || hooks.ID == "" {
		return err
	}
	return follow(hooks.ID, about.Events)
}

// writeEvent writes an event as a line.
func (r *runs) writeEvent(e durable.Event, asJSON bool) error {
	object, err := events.Object(e)
	if err != nil {
		return err
	}
	text := string(object)
	if !asJSON {
		text = eventLine(e)
	}
	if _, err := fmt.Fprintln(r.Std.Out, text); err != nil {
		return fmt.Errorf("writing the events: %w", err)
	}
	return nil
}

// mostEventText is the maximum number of characters of the content of an event in a line for a person.
const mostEventText = 160

// eventLine returns an event as a line for a person.
func eventLine(e durable.Event) string {
	line := func(content string) string {
		return timeline.Clean(fmt.Sprintf("%5d  %s  %-20s %s", e.Seq, e.At.Local().Format("15:04:05.000"), e.Name, content))
	}
	if c, ok := coordinator.HookCallOf(e.Name, e.At, e.Data); ok {
		if c.Outcome == coordinator.HookRunning {
			return line(timeline.OneLine(c.Title))
		}
		return line(describeHook(c))
	}
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(e.Data, &fields) // events.Object has checked it
	delete(fields, "run")
	content := ""
	if len(fields) > 0 {
		text, _ := json.Marshal(fields) //nolint:errchkjson // it was JSON before
		if content = string(text); len([]rune(content)) > mostEventText {
			content = string([]rune(content)[:mostEventText]) + "…"
		}
	}
	return line(content)
}
