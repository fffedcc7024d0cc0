package runs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/durable"
)

// RunKinds are the kinds of stored runs. Programs may have others.
var RunKinds = []durable.Kind{
	durable.KindAgent, durable.KindCommand, durable.KindPipeline, coordinator.KindHooks, coordinator.KindCallback,
}

// listed is a run in a list.
type listed struct {
	durable.Run

	// DurationMS is how long the run took, with all that it has waited for; zero while it has not ended.
	DurationMS int64 `json:"duration_ms,omitempty"`
	// Error is why the run failed, was stopped or was blocked, BlockedBy the hook that has blocked it. Changes and FailedHooks say what hooks
	// around the run have changed, and which have failed.
	Error       string   `json:"error,omitempty"`
	BlockedBy   string   `json:"blocked_by,omitempty"`
	Changes     []string `json:"changes,omitempty"`
	FailedHooks []string `json:"failed_hooks,omitempty"`
	// Waiting are the calls that wait for a person.
	Waiting []listedCall `json:"waiting,omitempty"`
	// Unserved is set for a ready run that no worker looks for.
	Unserved bool `json:"unserved,omitempty"`
}

type listedCall struct {
	Call string `json:"call"`
	// Wait is the ID that an answer names.
	Wait string `json:"wait"`
	Tool string `json:"tool"`
	// Kind is what the run waits for, and Child the run whose end it waits for.
	Kind  durable.WaitKind `json:"kind"`
	Child agent.RunID      `json:"child,omitempty"`
	// File is the file that a gate waits for.
	File string `json:"file,omitempty"`
}

// waitTexts are what a run waits for, before the name of the call.
var waitTexts = map[durable.WaitKind]string{
	durable.WaitApproval: "for approval of ", durable.WaitDoubt: "for a decision whether to repeat ", durable.WaitInput: "for input for ",
	durable.WaitCallback: "for a callback about ", durable.WaitFile: "for a file about ", durable.WaitCommand: "for a command about ",
	durable.WaitChild: "for the end of run ", durable.WaitTime: "for a time: ",
}

// describeWaits returns what a run waits for, in words.
func describeWaits(calls []listedCall) string {
	var texts []string
	kinds := lo.Uniq(lo.Map(calls, func(c listedCall, _ int) durable.WaitKind { return c.Kind }))
	for _, kind := range kinds {
		names := lo.FilterMap(calls, func(c listedCall, _ int) (string, bool) { return c.name(), c.Kind == kind })
		text, known := waitTexts[kind]
		if !known {
			text = "for " + string(kind) + " "
		}
		texts = append(texts, text+strings.Join(names, ", "))
	}
	return "waits " + strings.Join(texts, ", and ")
}

// name returns what is waited for: the tool and the id of its call, the child, or the id of the wait.
func (c listedCall) name() string {
	switch {
	case c.Child != "":
		return string(c.Child)
	case c.Tool == "":
		return c.Call
	}
	name := c.Tool + " (" + c.Call + ")"
	if c.File != "" {
		name += ": " + timeline.Clean(c.File)
	}
	return name
}

// fileOf returns the file that a wait's gate waits for; empty for other waits and for data that cannot be read.
func fileOf(w durable.Wait) string {
	about, err := durable.InterventionOf(w)
	if q, isGate := durable.GateOf(w, about); err == nil && isGate {
		return storage.GateFile(*q.Gate)
	}
	return ""
}

// filtering are the flags that select runs.
type filtering struct {
	status             []string
	kind, label, since string
	decision, text     string
	hooks              bool
	filter             durable.Filter
}

func (f *filtering) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.status, "status", nil, "only runs with this status: "+strings.Join(console.TextsOf(durable.Statuses), ", "))
	flags.StringVar(&f.kind, "kind", "", "only runs of this kind: "+strings.Join(console.TextsOf(RunKinds), ", "))
	flags.StringVar(&f.filter.Name, "name", "", "only runs of the agent or command with this `name`")
	flags.StringVar(&f.label, "label", "", "only runs with this label, as `NAME=VALUE`")
	flags.BoolVar(&f.filter.Blocked, "blocked", false, "only runs that a hook has blocked")
	flags.StringVar(&f.decision, "decision", "", "only runs in which a hook has decided this: "+strings.Join(console.TextsOf(durable.Decisions), ", "))
	flags.StringVar(&f.filter.Hook, "hook", "", "only runs in which the hook with this `name` has decided")
	flags.StringVar(&f.filter.By, "by", "", "only runs that this person or service has submitted, by `name`")
	flags.BoolVar(&f.filter.Top, "top", false, "only runs that no other run has started")
	flags.StringVar(&f.text, "text", "", "only runs with this `text` in their ID, name, labels, input or result, as the list shows them")
	flags.BoolVar(&f.hooks, "hooks", false, "also runs that hooks have started, and those that call the hooks after a run")
	flags.StringVar((*string)(&f.filter.Session), "session", "", "only runs of this session")
	flags.StringVar((*string)(&f.filter.Parent), "parent", "", "only runs that this run has started")
	flags.StringVar(&f.since, "since", "", "only runs created since this `time`: a duration such as 12h or 7d, or an RFC 3339 time")
	flags.IntVarP(&f.filter.Limit, "limit", "n", 20, "the maximum number of runs")
}

// build returns the filter of the flags.
func (f *filtering) build(now time.Time) (_ durable.Filter, err error) {
	out := f.filter
	if out.Limit <= 0 {
		return out, fmt.Errorf("--limit is %d: it must be above zero", out.Limit)
	}
	for _, text := range f.status {
		status, err := console.OneOf("--status", "status", text, durable.Statuses)
		if err != nil {
			return out, err
		}
		out.Status = append(out.Status, status)
	}
	if f.decision != "" {
		if out.Decision, err = console.OneOf("--decision", "decision", f.decision, durable.Decisions); err != nil {
			return out, err
		}
	}
	out.Kind = durable.Kind(f.kind)
	if f.label != "" {
		name, value, err := console.LabelOf("--label", f.label)
		if err != nil {
			return out, err
		}
		out.Label = durable.Label{Name: name, Value: value}
	}
	if f.since != "" {
		out.Since, err = console.InstantOf("--since", f.since, now, -1)
	}
	return out, err
}

func (r *runs) newList() *cobra.Command {
	var f filtering
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the stored runs, newest first",
		Example: "  grapnel runs list --status waiting,running\n  grapnel runs list --json | jq -r '.[] | select(.waiting) | .id'",
		Args:    console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			filter, err := f.build(time.Now())
			if err != nil {
				return console.Usage(err)
			}
			return r.With(c.Context(), false, func(k *storage.Store) error { return r.list(c.Context(), k, &f, filter, asJSON) })
		},
	}
	f.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "write them as a JSON array")
	return c
}

// hides reports whether a run is one of hooks that the flags do not ask for.
func (f *filtering) hides(r durable.Run) bool {
	switch {
	case f.hooks || f.kind != "" || f.filter.Parent != "" || f.filter.Session != "":
		return false
	case r.Kind == coordinator.KindHooks || r.Kind == coordinator.KindCallback:
		return true
	}
	return r.Traits.Hook != "" && f.filter.Name == ""
}

// find returns the runs that the flags select, and how many it has left out.
func (f *filtering) find(ctx context.Context, store durable.Lister, filter durable.Filter) (found []durable.Run, hidden int, err error) {
	limit := filter.Limit
	if f.text != "" {
		filter.Limit = storage.Page
	}
	for {
		list, err := store.List(ctx, filter)
		if err != nil {
			return nil, 0, err
		}
		for _, one := range list {
			filter.Before = one.ID
			if !one.HasText(f.text) {
				continue
			}
			if f.hides(one) {
				hidden++
				continue
			}
			if found = append(found, one); len(found) == limit {
				return found, hidden, nil
			}
		}
		if len(list) < filter.Limit {
			return found, hidden, nil
		}
		filter.Limit = storage.Page
	}
}

func (r *runs) list(ctx context.Context, k *storage.Store, f *filtering, filter durable.Filter, asJSON bool) error {
	found, hidden, err := f.find(ctx, k.Store, filter)
	if err != nil {
		return err
	}
	if len(found) == 0 && f.kind != "" {
		if _, err := console.OneOf("--kind", "kind", f.kind, RunKinds); err != nil { // no program has such runs here, either
			return console.Usage(err)
		}
	}
	all, err := listRuns(ctx, k, found...)
	if err != nil {
		return err
	}
	if asJSON {
		return console.WriteJSON(r.Std.Out, all)
	}
	if len(all) == 0 {
		fmt.Fprintf(r.Std.Err, "No such run in %s.%s\n", k.Address, lo.Ternary(hidden > 0, fmt.Sprintf(" --hooks adds %d runs of hooks.", hidden), ""))
		return nil
	}
	var rows strings.Builder
	table := console.NewTable(&rows, "RUN", "STATUS", "KIND", "NAME", "STEPS", "BEGAN", "TOOK", "")
	now := time.Now()
	for _, l := range all {
		took := ""
		if l.DurationMS > 0 {
			took = timeline.FormatDuration(time.Duration(l.DurationMS) * time.Millisecond)
		}
		table.Row(storage.Short(l.ID), l.Status, l.Kind, timeline.OneLine(l.Name), l.Steps, timeline.Ago(l.Created, now), took, "")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i, row := range strings.Split(strings.TrimSuffix(rows.String(), "\n"), "\n") {
		standing := ""
		if i > 0 {
			standing = timeline.Clean(all[i-1].standing(now))
		}
		r.listRow(strings.TrimRight(row, " "), row, standing)
	}
	return nil
}

// listRow writes the row of a run with what is to be said about it: below the row where the terminal is too narrow.
func (r *runs) listRow(row, padded, standing string) {
	switch {
	case standing == "":
		fmt.Fprintln(r.Std.Out, row)
	case !console.IsTerminal(r.Std.Out) || timeline.Width(padded+standing) <= console.WidthOf(r.Std.Out):
		fmt.Fprintln(r.Std.Out, padded+standing)
	default:
		fmt.Fprintln(r.Std.Out, row)
		console.WriteWrapped(r.Std.Out, "    ", "    ", standing)
	}
}

// unservedAfter is how long a queue counts as served after a worker last looked for its runs. Workers record that they
// look about every thirty seconds.
const unservedAfter = 70 * time.Second

// listRuns returns the list entries of runs.
func listRuns(ctx context.Context, k *storage.Store, found ...durable.Run) ([]listed, error) {
	all := make([]listed, len(found))
	var keys []durable.Key
	for i, about := range found {
		all[i].Run = about
		if about.Status == durable.StatusReady {
			keys = append(keys, about.Needs().Key())
		}
		if about.Status.Ended() {
			all[i].DurationMS = max(about.Updated.Sub(about.Created).Milliseconds(), 1)
		}
		ending, err := coordinator.EndingOf(ctx, k.Store, about)
		if err != nil {
			return nil, err
		}
		all[i].Error, all[i].BlockedBy, all[i].Changes, all[i].FailedHooks = ending.Reason, ending.BlockedBy, ending.Changes, ending.FailedHooks
		if about.Status != durable.StatusWaiting {
			continue
		}
		questions, err := k.Control.Waits(ctx, about.ID)
		if _, encrypted := errors.AsType[*durable.DecryptError](err); err != nil && !encrypted { // the list shows no data
			return nil, err
		}
		for _, q := range questions {
			if q.Answer == nil {
				all[i].Waiting = append(all[i].Waiting, listedCall{q.Subject, q.ID, q.Tool, q.Kind, q.Child, fileOf(q)})
			}
		}
	}
	if len(keys) == 0 {
		return all, nil
	}
	served, err := k.Store.QueueServices(ctx, lo.Uniq(keys)...)
	if err != nil {
		return nil, err
	}
	for i, l := range all {
		all[i].Unserved = l.Status == durable.StatusReady && !byCommandLine(l.Run) &&
			time.Since(served[l.Needs().Key()].LastPoll) > unservedAfter
	}
	return all, nil
}

// byCommandLine reports whether the run was begun by a command such as "grapnel run", which resumes it, too.
func byCommandLine(r durable.Run) bool { return r.Demands[storage.BeganDemand] != "" }

// standing describes the state of a run in addition to its status.
func (l listed) standing(now time.Time) string {
	switch {
	case l.Status.Ended():
		return l.ending()
	case l.CancelCause != "":
		return "will be cancelled: " + l.CancelReason
	case l.Paused && l.Status == durable.StatusWaiting:
		return "paused"
	case l.Paused:
		return "pauses after its step"
	case len(l.Waiting) > 0:
		text := describeWaits(l.Waiting)
		if left := l.AnswerBy.Sub(now); left > 0 && !l.AnswerBy.IsZero() {
			text += ", for " + timeline.Rough(left)
		} else if !l.AnswerBy.IsZero() {
			text += ", expired"
		}
		return text
	case l.Status == durable.StatusPending && !l.NotBefore.IsZero():
		return "not before " + console.LocalTime(l.NotBefore)
	case l.Owner != "" && l.Expires.After(now):
		return "held by " + l.Owner
	case l.Unserved:
		return "no worker serves " + l.Needs().String()
	case byCommandLine(l.Run):
		return "to be resumed"
	}
	return ""
}

// mostReason is the maximum length of a reason in a list, in characters. "grapnel runs show" shows all of it.
const mostReason = 400

// ending says on one line why the run has ended, and which hooks around it have failed.
func (l listed) ending() string {
	text, code := timeline.OneLine(withoutExcerpt(l.Error)), string(l.Reason)
	switch {
	case l.Status == durable.StatusCompleted && l.Reason == agent.StopEmptyReply:
		text = "no answer: the reply is empty"
	case l.Status == durable.StatusCompleted:
	case l.BlockedBy != "":
		_, why, _ := strings.Cut(text, ": ") // after "Blocked by on_run_start hook"
		text = "blocked by " + l.BlockedBy + ": " + why
	case l.Blocked:
		text = strings.TrimSuffix("blocked: "+lo.Ternary(text == "", code, text), ": ")
	case text == "":
		text = code
	case l.Status == durable.StatusStopped && !strings.Contains(text, code):
		text += " (" + code + ")"
	}
	for _, note := range slices.Concat(l.Changes, l.FailedHooks) {
		if note = timeline.OneLine(note); !strings.Contains(text, note) {
			text = strings.TrimPrefix(text+"; "+note, "; ")
		}
	}
	return console.Shorten(text, mostReason)
}

// excerpt matches the lines of a file below a mistake in it.
var excerpt = regexp.MustCompile(`(?m)\n *(\d+ )?\|.*$`)

// withoutExcerpt returns an error text without lines of files.
func withoutExcerpt(text string) string { return excerpt.ReplaceAllString(text, "") }
