package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/pipeline"
)

// sessionFrame is what a view of a session shows.
type sessionFrame struct {
	pipeline.SessionProgress

	now time.Time
	// flags follow the name of the session in the commands that the view shows.
	flags string
	// last is set for the frame that stays: the process of the session has ended.
	last bool
}

// The number of hooks in a view.
const maxViewHooks = 5

// render returns the lines of the view for a terminal. It has at most height lines, unless height is zero.
func (f *sessionFrame) render(width, height int) []console.ViewLine {
	head, stages, waits := f.head(width), f.stages(width), f.waits(width)
	actions := f.actions(width)
	gaps := true
	lines := func() (all []console.ViewLine) {
		all = append(all, head...)
		for _, section := range [][]console.ViewLine{stages, actions, waits} {
			if gaps && len(section) > 0 {
				all = append(all, "")
			}
			all = append(all, section...)
		}
		return all
	}
	// Empty lines go first, then the oldest hooks, then stages that do not run.
	gaps = height == 0 || len(lines()) <= height
	for height > 0 && len(lines()) > height && len(actions) > 2 {
		actions = slices.Delete(actions, 1, 2)
	}
	if over := len(lines()) - height; height > 0 && over > 0 {
		stages = f.fewerStages(stages, over)
	}
	if over := len(lines()) - height; height > 0 && over > 0 {
		actions = nil
	}
	all := lines()
	if height > 0 && len(all) > height { // the end says what the session waits for
		all = append(all[:1:1], all[len(all)-height+1:]...)
	}
	for i, l := range all {
		all[i] = l.Fit(width)
	}
	return all
}

// head returns the lines about the session as a whole.
func (f *sessionFrame) head(width int) []console.ViewLine {
	name := f.Pipeline
	if f.Session != f.Pipeline {
		name += " (" + f.Session + ")"
	}
	lines := []console.ViewLine{console.ViewLine(console.MarkText(name, console.MarkBold) + ": " + f.state())}
	if used := f.used(); used != "" {
		lines = append(lines, console.ViewLine("used: "+used))
	}
	if f.Error != "" && !f.Ended.IsZero() {
		lines = append(lines, console.WrapLine(console.MarkBad, "error: "+f.Error, width)...)
	}
	return lines
}

// state says what the session is doing and for how long.
func (f *sessionFrame) state() string {
	elapsed := console.WholeSeconds(f.now.Sub(f.Began))
	switch {
	case !f.Ended.IsZero():
		mark := lo.Ternary(f.Status.Status == durable.StatusCompleted, console.MarkGood, console.MarkBad)
		reason := cmp.Or(string(f.Reason), string(f.Status.Status))
		return console.MarkText("session ended: "+reason, mark) + " after " + console.ShortTime(f.Ended.Sub(f.Began))
	case f.Paused && f.Idle:
		return console.MarkText("paused", console.MarkDoubt) + "; grapnel pipeline resume " + f.Session + f.flags
	case len(openGates(f.Status)) > 0:
		return console.MarkText("waiting for an answer", console.MarkDoubt) + ", " + elapsed
	case f.Paused:
		return console.MarkText("pauses after this iteration", console.MarkDoubt) + ", " + elapsed
	case f.isSuspended():
		return console.MarkText("suspended", console.MarkDoubt) + "; start it again to continue it"
	}
	return console.MarkText("running", console.MarkGood) + ", " + elapsed
}

// isSuspended reports whether no process executes the session.
func (f *sessionFrame) isSuspended() bool {
	return f.Idle && f.Ended.IsZero() && (f.last || f.now.Sub(f.Updated) > idleTime)
}

// idleTime is how long a session may be between two processes.
const idleTime = 3 * time.Second

// used returns what the agents have used, and of which limits.
func (f *sessionFrame) used() string {
	steps, tokens, cost := f.Steps, f.Tokens, f.Cost
	for _, part := range f.Parts {
		steps, tokens, cost = steps+part.Steps, tokens+part.Tokens, cost+part.Cost
	}
	if steps == 0 && f.Limits == (agent.Limits{}) {
		return ""
	}
	all := []string{strconv.Itoa(steps), strconv.FormatInt(tokens, 10), fmt.Sprintf("$%.2f", cost)}
	for i, limit := range []string{
		lo.Ternary(f.Limits.Steps > 0, strconv.Itoa(f.Limits.Steps), ""), lo.Ternary(f.Limits.Tokens > 0, strconv.FormatInt(f.Limits.Tokens, 10), ""),
		lo.Ternary(f.Limits.Cost > 0, fmt.Sprintf("$%.2f", f.Limits.Cost), ""),
	} {
		if limit != "" {
			all[i] += " of " + limit
		}
	}
	text := all[0] + lo.Ternary(steps == 1 && f.Limits.Steps <= 0, " step, ", " steps, ") + all[1] + " tokens, " + all[2]
	if f.Limits.Time > 0 {
		text += ", at most " + console.ShortTime(f.Limits.Time)
	}
	return text
}

// stages returns a line for each stage, and for each stage of a parallel block.
func (f *sessionFrame) stages(width int) (lines []console.ViewLine) {
	longest := 0
	for _, s := range f.Stages {
		longest = max(longest, timeline.Width(s.Name))
		for _, part := range s.Parts {
			longest = max(longest, timeline.Width(part.Name)+2)
		}
	}
	longest = min(longest, max(width/3, 8))
	for _, s := range f.Stages {
		lines = append(lines, f.stageLine(s, "", longest))
		for _, part := range s.Parts {
			lines = append(lines, f.stageLine(part, "  ", longest-2))
		}
	}
	return lines
}

// stageLine returns the line of a stage.
func (f *sessionFrame) stageLine(s pipeline.StageProgress, indent string, longest int) console.ViewLine {
	sign, mark, nameMark, text := "○", console.MarkFaint, console.MarkFaint, "not started, "+untilComplete(s)
	switch s.State {
	case pipeline.StagePending:
	case pipeline.StageRunning:
		sign, mark, nameMark, text = "▶", console.MarkChange, console.MarkBold, f.runningText(s)
	case pipeline.StageComplete:
		sign, mark, nameMark, text = "✓", console.MarkGood, 0, "done"+afterIterations(s)
	case pipeline.StageFailed:
		sign, mark, nameMark, text = "✗", console.MarkBad, console.MarkBold, "ended"
		if s.Iteration > 0 {
			text = fmt.Sprintf("ended in iteration %d of %d", s.Iteration, s.MaxIterations)
		}
		if f.Reason != "" {
			text = string(f.Reason) + ", " + text
		}
	}
	if s.State == pipeline.StagePending {
		text = console.MarkText(text, console.MarkFaint)
	}
	return console.ViewLine(indent + console.MarkText(sign+" ", mark) + column(s.Name, nameMark, longest) + text)
}

// column returns a name as a column of a width, with the space behind it.
func column(name string, mark rune, width int) string {
	pad := strings.Repeat(" ", max(width-timeline.Width(name), 0)+2)
	return string(console.ViewLine(console.MarkText(name, mark)).Fit(width)) + pad
}

// runningText says what a stage is doing.
func (f *sessionFrame) runningText(s pipeline.StageProgress) string {
	if len(s.Parts) > 0 {
		ended := lo.CountBy(s.Parts, func(p pipeline.StageProgress) bool {
			return p.State == pipeline.StageComplete || p.State == pipeline.StageFailed
		})
		return fmt.Sprintf(lo.Ternary(f.isSuspended(), "suspended", "running")+", %d of %d stages have ended", ended, len(s.Parts))
	}
	at := fmt.Sprintf("iteration %d of %d", s.Iteration, s.MaxIterations)
	switch {
	case f.waitsIn(s.Name):
		return "waiting after " + at
	case f.Paused && f.Idle:
		return "paused after " + at
	case f.isSuspended():
		return "suspended in " + at
	case s.IterationBegan.IsZero():
		return at + " has ended, hooks run"
	case s.Steps > 0:
		at += fmt.Sprintf(", step %d", s.Steps)
	}
	return "running " + at + ", " + console.WholeSeconds(f.now.Sub(s.IterationBegan))
}

// untilComplete says when a stage will be complete.
func untilComplete(s pipeline.StageProgress) string {
	if len(s.Parts) > 0 {
		return fmt.Sprintf("%d stages at the same time", len(s.Parts))
	}
	return s.Note
}

// waitsIn reports whether the session waits for a gate in a stage.
func (f *sessionFrame) waitsIn(stage string) bool {
	return lo.SomeBy(append([]pipeline.Status{f.Status}, f.Parts...), func(s pipeline.Status) bool {
		return s.Stage == stage && lo.SomeBy(s.WaitsFor, func(g pipeline.WaitingGate) bool { return g.For != durable.WaitChild })
	})
}

// afterIterations says after how many iterations a stage was complete, and why.
func afterIterations(s pipeline.StageProgress) string {
	counted := timeline.Plural(s.Iteration, "iteration")
	switch {
	case len(s.Parts) > 0:
		return ""
	case s.Note == counted:
		return " after " + counted
	case s.Iteration == 0:
		return ", " + s.Note
	}
	return " after " + counted + ", " + s.Note
}

// fewerStages replaces at least a number of lines by one: those of complete stages, then those of stages that have not begun.
func (f *sessionFrame) fewerStages(lines []console.ViewLine, over int) []console.ViewLine {
	first, last, done, pending := 0, len(lines), 0, 0
	for _, s := range f.Stages {
		if s.State != pipeline.StageComplete {
			break
		}
		first, done = first+1+len(s.Parts), done+1
	}
	for _, s := range slices.Backward(f.Stages) {
		if s.State != pipeline.StagePending {
			break
		}
		last, pending = last-1-len(s.Parts), pending+1
	}
	kept := slices.Clone(lines)
	if first > 1 {
		above := console.ViewLine(console.MarkText("✓ ", console.MarkGood) + timeline.Plural(done, "stage") + " done")
		kept = append([]console.ViewLine{above}, lines[first:]...)
	}
	if len(lines)-len(kept) < over && len(lines)-last > 1 {
		below := console.ViewLine(console.MarkText("○ "+timeline.Plural(pending, "stage")+" not started", console.MarkFaint))
		kept = append(kept[:len(kept)-(len(lines)-last)], below)
	}
	return kept
}

// pointKeys are the names of points in pipeline files.
var pointKeys = map[hooks.PointName]string{
	hooks.SessionStart: "on_session_start", hooks.IterationStart: "on_iteration_start", hooks.IterationComplete: "on_iteration_complete",
	hooks.IterationFailed: "on_error", hooks.StageComplete: "on_stage_complete", hooks.SessionComplete: "on_session_complete",
}

// actions returns the lines of the last hooks.
func (f *sessionFrame) actions(width int) (lines []console.ViewLine) {
	shown := lo.Filter(f.Actions, func(a pipeline.ActionProgress, _ int) bool {
		return !a.Ended.IsZero() || !f.isOpenGate(a) // the gate is shown as what the session waits for
	})
	shown = shown[max(0, len(shown)-maxViewHooks):]
	if len(shown) == 0 {
		return nil
	}
	longest := min(lo.Max(lo.Map(shown, func(a pipeline.ActionProgress, _ int) int { return timeline.Width(hookName(a)) })), max(width/3, 8))
	lines = append(lines, console.ViewLine(console.MarkText("last hooks", console.MarkFaint)))
	for _, a := range shown {
		sign, mark, text := "✓", console.MarkGood, "succeeded in "+console.ShortTime(a.Ended.Sub(a.Began))
		switch {
		case a.Ended.IsZero() && f.isSuspended():
			sign, mark, text = "○", console.MarkFaint, "has not ended"
		case a.Ended.IsZero():
			sign, mark, text = "▶", console.MarkChange, "running, "+console.WholeSeconds(f.now.Sub(a.Began))
		case a.Error != "":
			sign, mark, text = "✗", console.MarkBad, "failed: "+a.Error
		}
		where := a.Stage
		if a.Iteration > 0 {
			where += fmt.Sprintf(" %d", a.Iteration)
		}
		line := console.MarkText(sign+" ", mark) + column(hookName(a), 0, longest) + text + console.MarkText("  ("+where+")", console.MarkFaint)
		lines = append(lines, console.ViewLine(line))
	}
	return lines
}

// isOpenGate reports whether an action is a gate that the session waits for.
func (f *sessionFrame) isOpenGate(a pipeline.ActionProgress) bool {
	return lo.SomeBy(openGates(f.Status), func(g openGate) bool { return g.Hook == a.Hook })
}

// hookName returns the name of a hook in its file; for a hook without one, its point and its number there.
func hookName(a pipeline.ActionProgress) string {
	rule := a.Hook[strings.LastIndex(a.Hook, "/")+1:]
	if number, ok := strings.CutPrefix(rule, string(a.Point)+"-"); ok {
		return cmp.Or(pointKeys[a.Point], string(a.Point)) + " #" + number
	}
	return rule
}

// waits returns what the session waits for, and the commands that answer it.
func (f *sessionFrame) waits(width int) (lines []console.ViewLine) {
	if !f.Ended.IsZero() {
		return nil
	}
	for _, g := range openGates(f.Status) {
		card := " " + console.ShellWord(storage.ShortWait(g.Wait))
		waitsFor, approve := "waits for a "+string(g.For), g.For == durable.WaitApproval
		if approve {
			waitsFor = "waits for a person"
		}
		lines = append(lines, console.WrapLine(console.MarkDoubt, waitsFor+lo.Ternary(g.Reason == "", "", ": "+g.Reason), width)...)
		if !g.Deadline.IsZero() {
			until := "  until " + g.Deadline.Local().Format("2006-01-02 15:04") + ", " + console.ShortTime(g.Deadline.Sub(f.now)) + " left"
			lines = append(lines, console.ViewLine(until))
		}
		if approve {
			lines = append(lines, console.WrapLine(console.MarkBold, "  grapnel pipeline approve "+f.Session+card+f.flags, width)...)
		}
		lines = append(lines, console.WrapLine(console.MarkBold, "  grapnel pipeline reject "+f.Session+card+f.flags, width)...)
	}
	return lines
}
