package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/pipeline"
)

// viewSpan is a part of a line with one colour: a mark of paint.go, or zero for none.
type viewSpan struct {
	text string
	mark rune
}

// viewLine is a line of a view.
type viewLine []viewSpan

// newViewLine returns a line of texts. A mark colours the text that follows it.
func newViewLine(parts ...any) (l viewLine) {
	var mark rune
	for _, part := range parts {
		switch part := part.(type) {
		case rune:
			mark = part
		case string:
			if text := strings.Join(strings.Fields(part), " "); part != "" {
				begin, end := lo.Ternary(part[0] == ' ', part[:len(part)-len(strings.TrimLeft(part, " "))], ""), ""
				if trimmed := strings.TrimRight(part, " "); text != "" {
					end = part[len(trimmed):]
				}
				l = append(l, viewSpan{begin + text + end, mark})
			}
			mark = 0
		}
	}
	return l
}

// fit returns the line with at most width columns.
func (l viewLine) fit(width int) viewLine {
	total := 0
	for _, s := range l {
		total += lipgloss.Width(s.text)
	}
	if total <= width {
		return l
	}
	var out viewLine
	left := max(width-1, 0)
	for _, s := range l {
		var kept strings.Builder
		for _, r := range s.text {
			w := lipgloss.Width(string(r))
			if w > left {
				return append(out, viewSpan{strings.TrimRight(kept.String(), " ") + "…", s.mark})
			}
			left -= w
			kept.WriteRune(r)
		}
		out = append(out, viewSpan{kept.String(), s.mark})
	}
	return out
}

// paint returns the line as text for a terminal.
func (l viewLine) paint(colours bool) string {
	var b strings.Builder
	for _, s := range l {
		if s.mark == 0 {
			b.WriteString(s.text)
			continue
		}
		b.WriteString(markText(s.text, s.mark))
	}
	return strings.TrimRight(paintText(b.String(), colours), " ")
}

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
func (f *sessionFrame) render(width, height int) []viewLine {
	head, stages, waits := f.head(width), f.stages(width), f.waits(width)
	actions := f.actions(width)
	gaps := true
	lines := func() (all []viewLine) {
		all = append(all, head...)
		for _, section := range [][]viewLine{stages, actions, waits} {
			if gaps && len(section) > 0 {
				all = append(all, nil)
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
		all[i] = l.fit(width)
	}
	return all
}

// head returns the lines about the session as a whole.
func (f *sessionFrame) head(width int) []viewLine {
	name := f.Pipeline
	if f.Session != f.Pipeline {
		name += " (" + f.Session + ")"
	}
	lines := []viewLine{append(newViewLine(markBold, name, ": "), f.state()...)}
	if used := f.used(); used != "" {
		lines = append(lines, newViewLine("used: "+used))
	}
	if f.Error != "" && !f.Ended.IsZero() {
		lines = append(lines, wrapLine(markBad, "error: "+f.Error, width)...)
	}
	return lines
}

// state says what the session is doing and for how long.
func (f *sessionFrame) state() viewLine {
	elapsed := wholeSeconds(f.now.Sub(f.Began))
	switch {
	case !f.Ended.IsZero():
		mark := lo.Ternary(f.Status.Status == durable.StatusCompleted, markGood, markBad)
		return newViewLine(mark, "session ended: "+cmp.Or(string(f.Reason), string(f.Status.Status)), " after "+shortTime(f.Ended.Sub(f.Began)))
	case f.Paused && f.Idle:
		return newViewLine(markDoubt, "paused", "; grapnel pipeline resume "+f.Session+f.flags)
	case len(openGates(f.Status)) > 0:
		return newViewLine(markDoubt, "waiting for an answer", ", "+elapsed)
	case f.Paused:
		return newViewLine(markDoubt, "pauses after this iteration", ", "+elapsed)
	case f.isSuspended():
		return newViewLine(markDoubt, "suspended", "; start it again to continue it")
	}
	return newViewLine(markGood, "running", ", "+elapsed)
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
	all := []string{fmt.Sprint(steps), fmt.Sprint(tokens), fmt.Sprintf("$%.2f", cost)}
	for i, limit := range []string{
		lo.Ternary(f.Limits.Steps > 0, fmt.Sprint(f.Limits.Steps), ""), lo.Ternary(f.Limits.Tokens > 0, fmt.Sprint(f.Limits.Tokens), ""),
		lo.Ternary(f.Limits.Cost > 0, fmt.Sprintf("$%.2f", f.Limits.Cost), ""),
	} {
		if limit != "" {
			all[i] += " of " + limit
		}
	}
	text := all[0] + " steps, " + all[1] + " tokens, " + all[2]
	if f.Limits.Time > 0 {
		text += ", at most " + shortTime(f.Limits.Time)
	}
	return text
}

// stages returns a line for each stage, and for each stage of a parallel block.
func (f *sessionFrame) stages(width int) (lines []viewLine) {
	longest := 0
	for _, s := range f.Stages {
		longest = max(longest, lipgloss.Width(s.Name))
		for _, part := range s.Parts {
			longest = max(longest, lipgloss.Width(part.Name)+2)
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
func (f *sessionFrame) stageLine(s pipeline.StageProgress, indent string, longest int) viewLine {
	sign, mark, nameMark, text := "○", markFaint, markFaint, "not started, "+untilComplete(s)
	switch s.State {
	case pipeline.StagePending:
	case pipeline.StageRunning:
		sign, mark, nameMark, text = "▶", markChange, markBold, f.runningText(s)
	case pipeline.StageComplete:
		sign, mark, nameMark, text = "✓", markGood, 0, "done"+afterIterations(s)
	case pipeline.StageFailed:
		sign, mark, nameMark, text = "✗", markBad, markBold, "ended"
		if s.Iteration > 0 {
			text = fmt.Sprintf("ended in iteration %d of %d", s.Iteration, s.MaxIterations)
		}
		if f.Reason != "" {
			text = string(f.Reason) + ", " + text
		}
	}
	line := newViewLine(indent)
	name := newViewLine(nameMark, s.Name).fit(longest)
	pad := strings.Repeat(" ", max(longest-lipgloss.Width(s.Name), 0)+2)
	line = append(line, viewSpan{sign + " ", mark})
	line = append(line, name...)
	line = append(line, viewSpan{pad, 0})
	textMark := rune(0)
	if s.State == pipeline.StagePending {
		textMark = markFaint
	}
	return append(line, newViewLine(textMark, text)...)
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
	return "running " + at + ", " + wholeSeconds(f.now.Sub(s.IterationBegan))
}

// untilComplete says when a stage will be complete.
func untilComplete(s pipeline.StageProgress) string {
	switch {
	case len(s.Parts) > 0:
		return fmt.Sprintf("%d stages at the same time", len(s.Parts))
	case strings.HasSuffix(s.Note, " iterations") && !strings.Contains(s.Note, ","):
		return plural(s.MaxIterations, "iteration")
	}
	return strings.Replace(s.Note, " 1 times in a row", "", 1)
}

// waitsIn reports whether the session waits for a gate in a stage.
func (f *sessionFrame) waitsIn(stage string) bool {
	return lo.SomeBy(append([]pipeline.Status{f.Status}, f.Parts...), func(s pipeline.Status) bool {
		return s.Stage == stage && lo.SomeBy(s.WaitsFor, func(g pipeline.WaitingGate) bool { return g.For != durable.WaitChild })
	})
}

// afterIterations says after how many iterations a stage was complete, and why.
func afterIterations(s pipeline.StageProgress) string {
	counted := fmt.Sprintf("%d iterations", s.Iteration)
	switch {
	case len(s.Parts) > 0:
		return ""
	case s.Note == counted:
		return " after " + plural(s.Iteration, "iteration")
	case s.Iteration == 0:
		return ", " + s.Note
	}
	return " after " + plural(s.Iteration, "iteration") + ", " + s.Note
}

// plural returns a number with its noun.
func plural(n int, noun string) string {
	return fmt.Sprintf("%d %s%s", n, noun, lo.Ternary(n == 1, "", "s"))
}

// fewerStages replaces at least a number of lines by one: those of complete stages, then those of stages that have not begun.
func (f *sessionFrame) fewerStages(lines []viewLine, over int) []viewLine {
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
		kept = append([]viewLine{newViewLine(markGood, "✓ ", plural(done, "stage")+" done")}, lines[first:]...)
	}
	if len(lines)-len(kept) < over && len(lines)-last > 1 {
		kept = append(kept[:len(kept)-(len(lines)-last)], newViewLine(markFaint, "○ "+plural(pending, "stage")+" not started"))
	}
	return kept
}

// pointKeys are the names of points in pipeline files.
var pointKeys = map[hooks.PointName]string{
	hooks.SessionStart: "on_session_start", hooks.IterationStart: "on_iteration_start", hooks.IterationComplete: "on_iteration_complete",
	hooks.IterationFailed: "on_error", hooks.StageComplete: "on_stage_complete", hooks.SessionComplete: "on_session_complete",
}

// actions returns the lines of the last hooks.
func (f *sessionFrame) actions(width int) (lines []viewLine) {
	shown := lo.Filter(f.Actions, func(a pipeline.ActionProgress, _ int) bool {
		return !a.Ended.IsZero() || !f.isOpenGate(a) // the gate is shown as what the session waits for
	})
	shown = shown[max(0, len(shown)-maxViewHooks):]
	if len(shown) == 0 {
		return nil
	}
	longest := min(lo.Max(lo.Map(shown, func(a pipeline.ActionProgress, _ int) int { return lipgloss.Width(hookName(a)) })), max(width/3, 8))
	lines = append(lines, newViewLine(markFaint, "last hooks"))
	for _, a := range shown {
		sign, mark, text := "✓", markGood, "succeeded in "+shortTime(a.Ended.Sub(a.Began))
		switch {
		case a.Ended.IsZero() && f.isSuspended():
			sign, mark, text = "○", markFaint, "has not ended"
		case a.Ended.IsZero():
			sign, mark, text = "▶", markChange, "running, "+wholeSeconds(f.now.Sub(a.Began))
		case a.Error != "":
			sign, mark, text = "✗", markBad, "failed: "+a.Error
		}
		where := a.Stage
		if a.Iteration > 0 {
			where += fmt.Sprintf(" %d", a.Iteration)
		}
		line := append(viewLine{{sign + " ", mark}}, newViewLine(hookName(a)).fit(longest)...)
		line = append(line, viewSpan{strings.Repeat(" ", max(longest-lipgloss.Width(hookName(a)), 0)+2), 0})
		lines = append(lines, append(line, newViewLine(text, markFaint, "  ("+where+")")...))
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
func (f *sessionFrame) waits(width int) (lines []viewLine) {
	if !f.Ended.IsZero() {
		return nil
	}
	for _, g := range openGates(f.Status) {
		waitsFor, approve := "waits for a "+string(g.For), g.For == durable.WaitApproval
		if approve {
			waitsFor = "waits for a person"
		}
		lines = append(lines, wrapLine(markDoubt, waitsFor+lo.Ternary(g.Reason == "", "", ": "+g.Reason), width)...)
		if !g.Deadline.IsZero() {
			lines = append(lines, newViewLine("  until "+g.Deadline.Local().Format("2006-01-02 15:04")+", "+shortTime(g.Deadline.Sub(f.now))+" left"))
		}
		if approve {
			lines = append(lines, wrapLine(markBold, "  grapnel pipeline approve "+f.Session+f.flags, width)...)
		}
		lines = append(lines, wrapLine(markBold, "  grapnel pipeline reject "+f.Session+f.flags, width)...)
	}
	return lines
}

// wrapLine returns a text as lines of at most width columns. Further lines are indented.
func wrapLine(mark rune, text string, width int) (lines []viewLine) {
	line := text[:len(text)-len(strings.TrimLeft(text, " "))]
	indent, empty := line+"  ", true
	for word := range strings.FieldsSeq(text) {
		if !empty && lipgloss.Width(line)+1+lipgloss.Width(word) > width {
			lines = append(lines, viewLine{{line, mark}})
			line, empty = indent, true
		}
		line, empty = line+lo.Ternary(empty, "", " ")+word, false
	}
	return append(lines, viewLine{{line, mark}})
}

// wholeSeconds returns the time for which something has been running.
func wholeSeconds(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	return shortTime(d)
}

// shortTime returns a duration in at most two units.
func shortTime(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}
