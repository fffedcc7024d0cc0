package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// describeHook returns a call of a hook as a line for people.
func describeHook(c coordinator.HookCall) string {
	text := c.Title
	if c.Call != "" {
		text += fmt.Sprintf(" about %s (%s)", c.Tool, c.Call)
	}
	text += ": " + c.Words()
	if c.Outcome == coordinator.HookRunning || c.Outcome == coordinator.HookInterrupted {
		return timeline.OneLine(text)
	}
	text += ", " + timeline.FormatDuration(time.Duration(c.DurationMS)*time.Millisecond)
	text = strings.Join(lo.Compact([]string{text, c.Reason, c.Error}), ": ")
	if c.After != "" && c.After != c.Before {
		text += fmt.Sprintf(": changed %s to %s", c.Before, c.After)
	}
	return timeline.OneLine(text)
}

// hookCalls returns the hook calls in the run's event log, and how often each hook passed without its own event.
func hookCalls(ctx context.Context, k *storage.Store, run durable.Run) (all []coordinator.HookCall, passes map[string]int, err error) {
	passes = map[string]int{}
	names := map[agent.RunID]string{} // names of sub-agents; the run's log has their events
	var open []coordinator.HookCall   // calls around the run that have no outcome
	for e, err := range k.Events(ctx, run.ID) {
		if err != nil {
			return nil, nil, err
		}
		var child struct {
			ID   agent.RunID `json:"subagent"`
			Name string      `json:"agent"`
		}
		if strings.HasPrefix(e.Name, "subagent.") && json.Unmarshal(e.Data, &child) == nil {
			names[child.ID] = child.Name
		}
		c, ok := coordinator.HookCallOf(e.Name, e.At, e.Data)
		if c.Subagent == run.ID {
			c.Subagent = ""
		} else if c.Subagent != "" {
			c.Title = fmt.Sprintf("%s (%s): %s", names[c.Subagent], storage.Short(c.Subagent), c.Title)
		}
		if c.Around {
			open = slices.DeleteFunc(open, func(o coordinator.HookCall) bool { return o.Title == c.Title })
		}
		switch {
		case !ok:
		case c.Outcome == coordinator.HookRunning:
			if run.Status.Ended() {
				c.Outcome = coordinator.HookInterrupted
			}
			open = append(open, c)
		case e.Name == string(hooks.HookComplete) && c.Decision == string(hooks.Allow) && c.Reason == "":
			passes[c.Hook]++
		default:
			all = append(all, c)
		}
		addPasses(passes, e)
	}
	return append(all, open...), passes, nil
}

// addPasses adds the passes that an event has counted.
func addPasses(passes map[string]int, e durable.Event) {
	counts := map[string]int{}
	if e.Name != durable.EventCounts || json.Unmarshal(e.Data, &counts) != nil {
		return
	}
	for name, n := range counts {
		if hook, ok := strings.CutSuffix(name, " pass"); ok {
			passes[hook] += n
		}
	}
}

// hookTimeline adds the calls of hooks in a run and around it.
func hookTimeline(ctx context.Context, k *storage.Store, out *shownRun) (err error) {
	if out.Hooks, out.HookPasses, err = hookCalls(ctx, k, out.Run); err != nil {
		return err
	}
	after, err := coordinator.FinishRun(ctx, k.Store, out.ID)
	if err != nil || after.ID == "" {
		return err
	}
	more, _, err := hookCalls(ctx, k, after)
	out.Hooks = append(out.Hooks, more...)
	return err
}

// showHooks shows the calls of hooks.
func (r *runs) showHooks(out shownRun) {
	if len(out.Hooks)+len(out.HookPasses) == 0 {
		return
	}
	fmt.Fprintln(r.Std.Out, "hooks")
	for _, c := range out.Hooks {
		console.WriteWrapped(r.Std.Out, "  "+c.At.Local().Format("15:04:05.000")+"  ", "                ", describeHook(c))
	}
	for _, name := range slices.Sorted(maps.Keys(out.HookPasses)) {
		console.WriteWrapped(r.Std.Out, "  ", "    ", fmt.Sprintf("%s: passed %s", name, times(out.HookPasses[name])))
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// parameters adds the parameters of a run of a blueprint: as they were submitted, and as the hooks before the run have left them.
func (r *runs) parameters(ctx context.Context, k *storage.Store, out *shownRun) error {
	d, err := k.Client.Run(ctx, out.ID)
	if errors.Is(err, durable.ErrNotFound) {
		return nil // a run of another kind
	}
	if err != nil { // its blueprint may be of a newer version: the rest is shown
		fmt.Fprintf(r.Std.Err, "grapnel: The parameters are not shown: %s\n", timeline.Clean(err.Error()))
		return nil
	}
	out.Parameters, out.Submitted = d.Parameters, d.OriginalParameters
	out.RetryOf, out.PastHook, out.Because = d.RetryOf, d.PastHook, d.Because
	out.Retries = lo.Map(d.Retries, func(r wire.Run, _ int) agent.RunID { return r.RunID })
	return nil
}

// isForbidden reports whether a coordinator refused a request because of the role of the token.
func isForbidden(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Status == http.StatusForbidden
}
