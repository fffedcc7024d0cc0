package runs

import (
	"cmp"
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

// hookCall is the end of a call of a hook, of an agent or around a run. A call around a run may have no end.
type hookCall struct {
	At    time.Time `json:"time"`
	Point string    `json:"point"`
	Hook  string    `json:"hook"`
	// Target is the type and the target of the action.
	Target string `json:"target,omitempty"`
	// Outcome is complete, blocked, failed, timeout, skipped or conflict, as in the names of events. Without an end, it is running, or
	// interrupted if the run has ended.
	Outcome    string `json:"outcome"`
	Decision   string `json:"decision,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Reason     string `json:"reason,omitempty"`
	Error      string `json:"error,omitempty"`
	// Policy is the on_error of a hook that has failed, as its file has it, or what followed after the failure.
	Policy string `json:"on_error,omitempty"`
	Call   string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Shadow bool   `json:"shadow,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Subagent is the run of the sub-agent that the call is about; empty for the run itself.
	Subagent agent.RunID `json:"subagent_run_id,omitempty"`

	title string // names the hook for people
}

// The outcomes of a hook without an end.
const (
	hookRunning     = "running"
	hookInterrupted = "interrupted"
)

// hookCallOf returns the call of a hook that an event is about: its end, or the beginning of one around a run. Ok is false for other events.
func hookCallOf(e durable.Event) (c hookCall, ok bool) {
	if outcome, isAround := strings.CutPrefix(e.Name, "hook_"); isAround {
		var h wire.HookEvent
		if json.Unmarshal(e.Data, &h) != nil {
			return c, false
		}
		c = hookCall{
			At: h.Timestamp, Point: h.HookType, Hook: h.Hook, Target: strings.TrimSpace(h.TargetType + " " + h.TargetName), Outcome: outcome,
			Decision: h.Action, Reason: h.BlockReason, Error: h.Error, Policy: cmp.Or(h.OnError, h.OnErrorBehavior),
			Before: string(h.Before), After: string(h.After), title: h.Title(),
		}
		if h.DurationMS != nil {
			c.DurationMS = *h.DurationMS
		}
		return c, true
	}
	outcome, isAgent := strings.CutPrefix(e.Name, "hook.")
	var h struct {
		hookCall

		Error struct {
			Text string `json:"text"`
		} `json:"error"`
		Policy string        `json:"policy"`
		Run    agent.RunID   `json:"run"`
		Origin *hooks.Origin `json:"origin"`
	}
	if !isAgent || outcome == "start" || json.Unmarshal(e.Data, &h) != nil {
		return c, false
	}
	c = h.hookCall
	c.Subagent = h.Run
	c.At, c.Outcome, c.Error, c.Policy, c.title = e.At, outcome, h.Error.Text, h.Policy, h.Point+" hook "+h.Hook
	if h.Origin != nil {
		if c.Target = strings.TrimSpace(h.Origin.Action + " " + h.Origin.Target); c.Target != "" {
			c.title += " (" + c.Target + ")"
		}
		if h.Policy != "" && h.Policy != "retry" {
			c.Policy = cmp.Or(h.Origin.OnFailure, h.Policy)
		}
	}
	return c, true
}

// String returns the call as a line for people.
func (c hookCall) String() string {
	text := c.title
	if c.Call != "" {
		text += fmt.Sprintf(" about %s (%s)", c.Tool, c.Call)
	}
	switch c.Outcome {
	case "start":
		return console.OneLine(text)
	case hookRunning, hookInterrupted:
		return console.OneLine(text + ": " + c.Outcome)
	}
	text += ": "
	switch {
	case c.Error != "" && c.Outcome == "skipped":
		text += "skipped"
	case c.Error != "" || c.Outcome == "failed" || c.Outcome == "timeout":
		text += c.Outcome
		if c.Policy != "" {
			text += ", on_error " + c.Policy
		}
	case c.Shadow:
		text += "in shadow: would " + c.Decision
	case c.Decision != "":
		text += c.Decision
	default:
		text += c.Outcome
	}
	text += ", " + timeline.FormatDuration(time.Duration(c.DurationMS)*time.Millisecond)
	text = strings.Join(lo.Compact([]string{text, c.Reason, c.Error}), ": ")
	if c.After != "" && c.After != c.Before {
		text += fmt.Sprintf(": changed %s to %s", c.Before, c.After)
	}
	return console.OneLine(text)
}

// hookCalls returns the hook calls in the run's event log, and how often each hook passed without its own event.
func hookCalls(ctx context.Context, k *storage.Store, run durable.Run) (all []hookCall, passes map[string]int, err error) {
	passes = map[string]int{}
	names := map[agent.RunID]string{} // names of sub-agents; the run's log has their events
	var open []hookCall               // calls around the run that have no outcome
	for after := int64(0); ; {
		list, err := k.Store.Events(ctx, run.ID, after, storage.Page)
		if err != nil || len(list) == 0 {
			return append(all, open...), passes, err
		}
		for _, e := range list {
			after = e.Seq
			var child struct {
				ID   agent.RunID `json:"subagent"`
				Name string      `json:"agent"`
			}
			if strings.HasPrefix(e.Name, "subagent.") && json.Unmarshal(e.Data, &child) == nil {
				names[child.ID] = child.Name
			}
			c, ok := hookCallOf(e)
			if c.Subagent == run.ID {
				c.Subagent = ""
			} else if c.Subagent != "" {
				c.title = fmt.Sprintf("%s (%s): %s", names[c.Subagent], storage.Short(c.Subagent), c.title)
			}
			if strings.HasPrefix(e.Name, "hook_") {
				open = slices.DeleteFunc(open, func(o hookCall) bool { return o.title == c.title })
			}
			switch {
			case !ok:
			case e.Name == wire.EventHookStart:
				c.Outcome = lo.Ternary(run.Status.Ended(), hookInterrupted, hookRunning)
				open = append(open, c)
			case e.Name == string(hooks.HookComplete) && c.Decision == string(hooks.Allow) && c.Reason == "":
				passes[c.Hook]++
			default:
				all = append(all, c)
			}
			addPasses(passes, e)
		}
	}
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
		console.WriteWrapped(r.Std.Out, "  "+c.At.Local().Format("15:04:05.000")+"  ", "                ", c.String())
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
	return nil
}

// isForbidden reports whether a coordinator refused a request because of the role of the token.
func isForbidden(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Status == http.StatusForbidden
}
