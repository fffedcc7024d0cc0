package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/pipeline"
)

// shownRun is the JSON form of a run in show --json.
type shownRun struct {
	listed

	// Questions are the questions to persons, including answered ones.
	Questions []agent.Intervention `json:"questions,omitempty"`
	// Doubt are the calls that have begun and whose outcome is unknown.
	Doubt  []string `json:"in_doubt,omitempty"`
	Answer string   `json:"answer,omitempty"`
	// Decisions are the recorded answers: who approved or rejected, and when, oldest first.
	Decisions []approval.Decision `json:"decisions,omitempty"`
	// Result is what the run ended with.
	Result *durable.Result `json:"result,omitempty"`
	// Parameters are the parameters of a run of a blueprint, as the hooks before the run have left them. Submitted are those of the request, if
	// hooks have changed them.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Submitted  json.RawMessage `json:"submitted_parameters,omitempty"`
	// RetryOf is the run that this one retries, and Retries are the runs that retry it. An operator let it pass PastHook, for the reason Because.
	RetryOf  agent.RunID   `json:"retry_of,omitempty"`
	Retries  []agent.RunID `json:"retries,omitempty"`
	PastHook string        `json:"past_hook,omitempty"`
	Because  string        `json:"because,omitempty"`
	// Hooks are the calls of hooks in the run and around it. HookPasses are how often a hook of the agent had no objection.
	Hooks      []coordinator.HookCall `json:"hooks,omitempty"`
	HookPasses map[string]int         `json:"hook_passes,omitempty"`
	// Children are the runs that the run has started, oldest first, except runs that call hooks.
	Children []listed `json:"children,omitempty"`
	// Limits are those of the job.
	Limits *shownLimits `json:"limits,omitempty"`
	// Began is the definition of the agent.
	Began *agents.Definition `json:"began_with,omitempty"`
}

// shownLimits is the JSON form of the limits of a job.
type shownLimits struct {
	Steps  int     `json:"steps,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	Cost   float64 `json:"cost,omitempty"`
	// Time is a Go duration.
	Time string `json:"time,omitempty"`
}

func newShownLimits(l agent.Limits) *shownLimits {
	if l == (agent.Limits{}) {
		return nil
	}
	out := &shownLimits{Steps: l.Steps, Tokens: l.Tokens, Cost: l.Cost}
	if l.Time != 0 {
		out.Time = l.Time.String()
	}
	return out
}

func (l *shownLimits) String() string {
	if l == nil {
		return ""
	}
	var words []string
	if l.Steps != 0 {
		words = append(words, timeline.Plural(l.Steps, "step"))
	}
	if l.Tokens != 0 {
		words = append(words, fmt.Sprintf("%d tokens", l.Tokens))
	}
	if l.Cost != 0 {
		words = append(words, fmt.Sprintf("$%g", l.Cost))
	}
	if l.Time != "" {
		words = append(words, l.Time)
	}
	return strings.Join(words, ", ")
}

func (r *runs) newShow() *cobra.Command {
	var asJSON, journal, asPage bool
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show a run: its steps, its status, what it waits for",
		Long: `Show a run: its steps, its status, and what it waits for. With --web, the command prints an address that signs you in
once, on this machine, to the page of the run, which changes nothing. It serves the page until it is interrupted. Of a coordinator, it
prints the address of the page.`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			return r.WithRun(c.Context(), args[0], func(k *storage.Store, about durable.Run) error {
				if asPage {
					return r.showWeb(c.Context(), k, about)
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
	c.Flags().BoolVar(&asPage, "web", false, "serve its page on this machine until interrupted, and print the address")
	c.MarkFlagsMutuallyExclusive("web", "json")
	c.MarkFlagsMutuallyExclusive("web", "journal")
	return c
}

// readDecisions returns the answers about a run, oldest first.
func readDecisions(ctx context.Context, k *storage.Store, id agent.RunID, begun bool) ([]approval.Decision, error) {
	records, err := k.Store.AuditRecords(ctx, durable.AuditFilter{Kind: durable.AuditAnswer, Run: id})
	if err != nil && !isForbidden(err) { // answers are in the audit log, which viewers cannot read
		return nil, err
	}
	slices.Reverse(records)
	all := approval.DecisionsOf(records)
	if !begun {
		return all, nil
	}
	told, err := decisionsInMemory(ctx, k, id, all)
	all = append(all, told...)
	slices.SortStableFunc(all, func(a, b approval.Decision) int { return a.At.Compare(b.At) })
	return all, err
}

func (r *runs) show(ctx context.Context, k *storage.Store, about durable.Run, asJSON bool) error {
	all, err := listRuns(ctx, k, about)
	if err != nil {
		return err
	}
	out := shownRun{listed: all[0]}
	if err := r.parameters(ctx, k, &out); err != nil {
		return err
	}
	if err := hookTimeline(ctx, k, &out); err != nil {
		return err
	}
	_, limits, err := durable.InputOf(ctx, k.Store, about.ID)
	if err != nil {
		return err
	}
	out.Limits = newShownLimits(limits)
	var s agent.State
	begun := about.Kind == durable.KindAgent
	if begun {
		s, err = durable.Load(ctx, k.Store, about.ID)
		if begun = !errors.Is(err, durable.ErrNotBegun) && !isForbidden(err); begun && err != nil {
			return err
		}
		if isForbidden(err) {
			fmt.Fprintf(r.Std.Err, "grapnel: The steps are not shown: %s\n", timeline.Clean(err.Error()))
		}
	}
	out.Questions, out.Doubt = s.Interventions(), agent.Checkpoint(s).CallsInDoubt()
	if about.Status == durable.StatusWaiting && !begun {
		if out.Questions, err = readQuestions(ctx, k, about.ID); err != nil {
			return err
		}
	}
	if out.Children, err = listChildren(ctx, k, about.ID); err != nil {
		return err
	}
	d, known := agents.DefinitionKey.From(s)
	if known {
		out.Began = &d
	}
	if about.Status.Ended() {
		result, err := durable.ResultOf(ctx, k.Store, about.ID)
		if err != nil {
			return err
		}
		out.Result = &result
		out.Answer = s.Answer()
	}
	if out.Decisions, err = readDecisions(ctx, k, about.ID, begun); err != nil {
		return err
	}
	if asJSON {
		return console.WriteJSON(r.Std.Out, out)
	}
	now := time.Now()
	r.showHead(out, now)
	if known {
		console.WriteWrapped(r.Std.Out, "", "  ", fmt.Sprintf("in %s: grapnel run %s", d.Dir, d.Summary()))
	}
	r.showDecisions(out.Decisions)
	r.showHooks(out)
	r.showChildren(out.Children, now)
	if begun {
		r.showSteps(k, out, s, now)
		return nil
	}
	switch {
	case out.Result != nil:
		r.showResult(out)
	case len(out.Questions) > 0:
		r.showQuestions(k, out, now)
	case about.Kind == durable.KindAgent && about.Attempts > 0:
		fmt.Fprintln(r.Std.Out, "It was interrupted before its input was accepted.")
	}
	return nil
}

// showDecisions shows the answers about a run.
func (r *runs) showDecisions(decisions []approval.Decision) {
	for _, d := range decisions {
		line := storage.DecisionLine(d)
		if d.Preview != "" {
			line = timeline.Clean(console.Shorten(d.Preview, storage.MostPreview)) + ": " + line
		}
		console.WriteWrapped(r.Std.Out, "", "  ", line)
	}
}

// readQuestions returns the questions that a run without an agent waits for.
func readQuestions(ctx context.Context, k *storage.Store, id agent.RunID) (all []agent.Intervention, err error) {
	waits, err := k.Store.Waits(ctx, id)
	for _, w := range waits {
		if w.Answer != nil || w.Kind == durable.WaitChild || w.Kind == durable.WaitTime {
			continue
		}
		i, err := durable.InterventionOf(w)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, err
}

// listChildren returns the runs that a run has started, oldest first.
func listChildren(ctx context.Context, k *storage.Store, id agent.RunID) ([]listed, error) {
	found, err := k.Store.List(ctx, durable.Filter{Parent: id, Limit: storage.Page})
	if err != nil {
		return nil, err
	}
	slices.Reverse(found)
	return listRuns(ctx, k, lo.Reject(found, func(r durable.Run, _ int) bool {
		return r.Kind == coordinator.KindHooks || r.Kind == coordinator.KindCallback
	})...)
}

// showChildren shows the runs that a run has started.
func (r *runs) showChildren(children []listed, now time.Time) {
	if len(children) > 0 {
		fmt.Fprintln(r.Std.Out, "runs")
	}
	for _, l := range children {
		text := fmt.Sprintf("%s  %s %s: %s", storage.Short(l.ID), l.Kind, timeline.OneLine(l.Name), l.Status)
		if standing := l.standing(now); standing != "" {
			text += ": " + standing
		}
		console.WriteWrapped(r.Std.Out, "  ", "    ", text)
	}
}

// showQuestions shows what a run without an agent waits for, and how people answer.
func (r *runs) showQuestions(k *storage.Store, out shownRun, now time.Time) {
	fmt.Fprintln(r.Std.Out)
	t := r.timeline()
	for _, i := range out.Questions {
		t.Waits(i, now)
	}
	people := lo.Filter(out.Questions, func(i agent.Intervention, _ int) bool {
		return !lo.SomeBy(i.Questions, func(q agent.Question) bool { return q.Gate != nil })
	})
	if len(people) > 0 && !out.Paused {
		fmt.Fprintln(r.Std.Out, "\n"+k.HowToAnswer(out.ID, people))
	}
}

// timeline returns a timeline on standard output.
func (r *runs) timeline() *timeline.Timeline {
	width := func() int { return console.WidthOf(r.Std.Out) }
	return timeline.New(timeline.Config{Out: r.Std.Out, Width: width, Colour: console.WantsColour(r.Std.Out, "auto")})
}

// decisionsInMemory returns the decisions about calls that were made while the run was in memory, such as those of the
// person at the terminal and of waivers: those in the events of the run that are not among the recorded ones.
func decisionsInMemory(ctx context.Context, k *storage.Store, id agent.RunID, recorded []approval.Decision) (all []approval.Decision, err error) {
	for e, err := range k.Events(ctx, id) {
		if err != nil {
			return nil, err
		}
		var told struct {
			Call struct {
				Arguments string `json:"arguments"`
			} `json:"call"`
			Answers []approval.Decision `json:"answers"`
		}
		if e.Name != (agent.ApprovalCompleted{}).EventName() || json.Unmarshal(e.Data, &told) != nil { // of another version
			continue
		}
		for _, d := range told.Answers {
			d.Run, d.Preview = id, approval.Arguments(told.Call.Arguments).Preview()
			if d.At.IsZero() {
				d.At = e.At
			}
			if !slices.ContainsFunc(recorded, func(known approval.Decision) bool {
				return known.Verdict == d.Verdict && known.At.Sub(d.At).Abs() < time.Millisecond
			}) {
				all = append(all, d)
			}
		}
	}
	return all, nil
}

// showHead shows the summary of a run.
func (r *runs) showHead(out shownRun, now time.Time) {
	about := out.Run
	title := fmt.Sprintf("%s  %s", about.ID, about.Status)
	if standing := out.standing(now); standing != "" {
		title += fmt.Sprintf("  (%s)", standing)
	}
	console.WriteWrapped(r.Std.Out, "", "  ", title)
	heard := "last heard of " + timeline.Ago(about.Updated, now)
	if out.DurationMS > 0 {
		heard = fmt.Sprintf("took %s, ended %s", timeline.FormatDuration(time.Duration(out.DurationMS)*time.Millisecond), timeline.Ago(about.Updated, now))
	}
	console.WriteWrapped(r.Std.Out, "", "  ", fmt.Sprintf("%s %s, began %s, %s, %s, %s", about.Kind, about.Name,
		console.LocalTime(about.Created), timeline.Plural(about.Steps, "step"), timeline.Plural(about.Attempts, "attempt"), heard))
	show := func(name, value string) {
		if value != "" {
			console.WriteWrapped(r.Std.Out, "", "  ", strings.TrimPrefix(name+" "+value, " "))
		}
	}
	show("phase", string(about.Phase))
	show("stage", about.Labels[durable.LabelStage])
	show("iteration", about.Labels[durable.LabelIteration])
	show("labels", console.LabelText(givenLabels(about.Labels)))
	show("demands", console.LabelText(givenLabels(about.Demands)))
	instant := func(name string, at time.Time) {
		if !at.IsZero() {
			show(name, console.LocalTime(at))
		}
	}
	instant("not before", about.NotBefore)
	instant("start by", about.StartBy)
	instant("deadline", about.Deadline)
	if about.Status == durable.StatusWaiting {
		instant("waits until", about.AnswerBy)
	}
	if len(out.Submitted) > 0 {
		show("submitted parameters", string(out.Submitted))
	}
	show("parameters", string(out.Parameters))
	show("retry of", string(out.RetryOf))
	if out.PastHook != "" {
		show("past the hook", out.PastHook+": "+out.Because)
	}
	for _, id := range out.Retries {
		show("tried again as", string(id))
	}
	show("limits", out.Limits.String())
	if about.Status == durable.StatusWaiting && out.Limits != nil && out.Limits.Time != "" {
		show("", "The limit of time does not count while the run waits.")
	}
	show("idempotency key", about.IdempotencyKey)
	if about.Priority != 0 {
		show("priority", strconv.Itoa(int(about.Priority)))
	}
}

// givenLabels returns the labels that a user chose. The coordinator and pipelines set the others.
func givenLabels(labels map[string]string) map[string]string {
	return lo.OmitBy(labels, func(name, _ string) bool {
		return name == pipeline.LabelPipeline || strings.HasPrefix(name, "coordinator.") || strings.HasPrefix(name, "pipeline.")
	})
}

// showResult shows what a run ended with that has no steps to show.
func (r *runs) showResult(out shownRun) {
	result := *out.Result
	if result.ExitCode != nil {
		fmt.Fprintf(r.Std.Out, "exit code %d\n", *result.ExitCode)
	}
	for _, text := range []string{result.Text, string(result.Data)} {
		if text = strings.TrimRight(text, "\n"); text != "" {
			fmt.Fprintf(r.Std.Out, "\n%s\n", timeline.Clean(text))
		}
	}
	if result.Error != "" {
		fmt.Fprintln(r.Std.Out)
		console.WriteWrapped(r.Std.Out, "", "", result.Error)
	}
	if result.Cut {
		fmt.Fprintln(r.Std.Out, "\nThe output was longer than what is stored.")
	}
}

// showSteps shows the steps of a run of an agent, and how it ended or what it waits for.
func (r *runs) showSteps(k *storage.Store, out shownRun, s agent.State, now time.Time) {
	fmt.Fprintln(r.Std.Out)
	t := r.timeline()
	t.Replay(s)
	for _, i := range out.Questions {
		t.Waits(i, now)
	}
	for _, id := range out.Doubt {
		fmt.Fprintf(r.Std.Out, "  The call %s began before the run was interrupted, and its outcome is unknown.\n", timeline.Clean(id))
	}
	if out.Status.Ended() {
		fmt.Fprintln(r.Std.Out)
		console.WriteWrapped(r.Std.Out, "", "  ", timeline.Verdict(s, nil))
		return
	}
	if s.Parked() && !out.Paused {
		fmt.Fprintln(r.Std.Out, "\n"+k.HowToGoOn(s))
	}
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

func (r *runs) showJournal(ctx context.Context, k *storage.Store, id agent.RunID, asJSON bool) error {
	entries, err := k.Store.Entries(ctx, id, 0)
	if err != nil {
		return err
	}
	if asJSON {
		all := make([]entryShown, len(entries))
		for i, e := range entries {
			all[i] = shownEntry(e)
		}
		return console.WriteJSON(r.Std.Out, all)
	}
	table := tabwriter.NewWriter(r.Std.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, e := range entries {
		fmt.Fprintf(table, "%d\t%s\t%d bytes\t", e.Seq, e.At.Local().Format("2006-01-02 15:04:05.000"), len(e.Data))
		fmt.Fprintf(table, "  %s\n", strings.TrimSpace(timeline.Clean(string(e.Kind)+" "+e.Key)))
	}
	return table.Flush()
}
