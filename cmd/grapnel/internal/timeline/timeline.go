package timeline

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

// Config configures a timeline.
type Config struct {
	// Out is the output. Write errors are ignored.
	Out io.Writer
	// Width returns the current number of columns; nil means 80. Values below 30 count as 30, above 120 as
	// 120.
	Width func() int
	// Colour reports whether Out supports colours.
	Colour bool
	// Input shows the user's messages, too.
	Input bool
}

// Timeline is an agent.Observer that shows events to a person.
type Timeline struct {
	mu    sync.Mutex
	paper paper
	input bool

	streamed  strings.Builder          // text of the current reply
	reasoning int                      // bytes of reasoning shown
	decided   map[string][]hooks.Event // decisions by call
	quarters  map[string]int           // progress of calls in quarters
	told      map[string]bool          // calls whose result the decisions of hooks already show
	calls     []string                 // ids of running calls
	names     map[string]string        // tool names by call
	failure   *agent.Failure           // failure of the last step
	noted     bool                     // the last line is a note
	begun     bool                     // the model was called in this run
	totals
}

// totals counts the calls of a run.
type totals struct{ called, denied, rewritten, failed int }

var _ agent.Observer = (*Timeline)(nil)

// New returns a timeline.
func New(c Config) *Timeline {
	if c.Width == nil {
		c.Width = func() int { return 80 }
	}
	return &Timeline{paper: paper{out: c.Out, width: c.Width, colour: c.Colour}, input: c.Input}
}

// Note writes a message of the program itself.
func (t *Timeline) Note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paper.line(0, dim, "", yellow, Clean(text))
	t.noted = true
}

// mostReasoning is the maximum length of the reasoning that is shown before a reply, in bytes.
const mostReasoning = 600

// Delta shows a piece of a reply.
func (t *Timeline) Delta(d agent.Delta) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.Reasoning != "" && t.reasoning < mostReasoning {
		piece := d.Reasoning
		if t.reasoning += len(piece); t.reasoning >= mostReasoning {
			piece = strings.ToValidUTF8(piece[:max(len(piece)-(t.reasoning-mostReasoning), 0)], "") + "…"
		}
		t.paper.say(dim, piece)
	}
	if d.Text != "" {
		t.text(d.Text)
	}
}

func (t *Timeline) text(text string) {
	if t.reasoning > 0 && t.streamed.Len() == 0 {
		t.paper.flush()
		t.paper.say(plain, "\n")
	}
	t.streamed.WriteString(text)
	t.paper.say(plain, text)
}

// stalledText says that the store does not accept what the run writes.
func stalledText(e durable.StoreStalled) string {
	why := "it does not answer"
	if e.Err != nil {
		why = OneLine(e.Err.Error())
	}
	return "the run waits for its store: " + why
}

// Observe shows an event.
func (t *Timeline) Observe(_ context.Context, e agent.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := e.(type) {
	case agent.RunStarted:
		t.fresh()
	case agent.RunResumed:
		t.showResume(e.State)
	case agent.RunParked:
		t.showWaits(e.State)
	case durable.NotifyFailed:
		t.paper.line(2, red, "!", red, "sending the notice that the run waits failed: "+OneLine(e.Err.Error()))
	case durable.StoreStalled:
		t.paper.line(2, red, "!", red, stalledText(e))
	case durable.StoreRecovered:
		t.paper.line(2, green, "✓", green, "the store accepts writes again, after "+FormatDuration(e.After))
	case agent.StepStarted:
		t.paper.end()
		t.calls = nil
	case agent.InferenceStarted:
		t.showInput(e)
	case agent.InferenceCompleted:
		t.showReply(e)
	case processor.Retrying:
		text := fmt.Sprintf("attempt %d failed: %s; trying again in %s", e.Attempt, OneLine(e.Err.Error()), FormatDuration(e.Wait))
		t.paper.line(2, yellow, "⟳", yellow, text)
	case agent.ToolCallStarted:
		t.showCall(e)
	case agent.ApprovalCompleted:
		if e.Approval.TimedOut() { // the person's answer is on the screen already
			t.paper.line(4, yellow, "!", yellow, fmt.Sprintf("the time for an answer about %s has passed: %s", e.Call.Name, e.Approval.Verdict))
		}
	case mcp.ProgressReported:
		t.progress(e)
	case agent.ToolCallCompleted:
		t.showResult(&e.Result)
	case agent.StepCompleted:
		t.showUsage(e.Record)
	case agent.Judged:
		if t.failure != nil && !e.Evaluation.Stops() { // otherwise the verdict shows it
			t.paper.line(2, red, "✗", red, OneLine(t.failure.Text))
		}
		t.failure = nil
	case hooks.Event:
		t.hook(e)
	case agent.RunCompleted:
		t.showEnd(e)
	default:
		t.capability(e)
	}
}

// fresh resets the values of the previous run.
func (t *Timeline) fresh() {
	t.begun, t.totals, t.calls, t.names, t.quarters = false, totals{}, nil, map[string]string{}, map[string]int{}
	t.decided, t.told = map[string][]hooks.Event{}, map[string]bool{}
}

// showInput shows the user's message and the beginning of a step.
func (t *Timeline) showInput(e agent.InferenceStarted) {
	if m := e.State.LastMessage(); t.input && !t.begun && m.Role() == agent.RoleUser && m.Source() == "" {
		if t.noted {
			t.paper.gap()
		}
		t.paper.line(0, cyan, "you ", plain, firstLines(Clean(m.Text()), 6))
	}
	t.begun = true
	t.streamed.Reset()
	t.reasoning, t.noted = 0, false
	t.paper.gap()
	t.paper.begin(bold, fmt.Sprintf("step %d", e.Step+1))
}

// showReply shows the rest of a reply that has not been shown yet.
func (t *Timeline) showReply(e agent.InferenceCompleted) {
	if text := e.Reply.Message.Text(); text != t.streamed.String() {
		if t.streamed.Len() > 0 {
			t.paper.say(plain, "\n")
		}
		t.text(text)
	}
	t.paper.end()
}

// showCall shows a call and the decisions about it before it runs.
func (t *Timeline) showCall(e agent.ToolCallStarted) {
	t.called++
	t.calls = append(t.calls, e.Call.ID)
	t.names[e.Call.ID] = e.Call.Name
	t.paper.line(2, cyan, "▸ "+OneLine(e.Call.Name), plain, shortenText(describeArguments(e.Original), 3*t.paper.columns()/2))
	told := false
	for _, d := range t.decided[e.Call.ID] {
		told = told || d.Decision == hooks.Rewrite && d.After == e.Call.Arguments
	}
	t.decisions(e.Call.ID)
	if e.Call.Arguments == e.Original.Arguments {
		return
	}
	t.rewritten++
	if !told { // by a person, or in a stored run
		t.paper.line(4, yellow, "✎", yellow, "with changed arguments: "+shortenText(describeArguments(e.Call), 3*t.paper.columns()/2))
	}
}

// decisions shows the new decisions about a call.
func (t *Timeline) decisions(id string) {
	for _, e := range t.decided[id] {
		t.decision(4, e)
		t.told[id] = t.told[id] || e.Decision == hooks.Deny || e.Decision == hooks.Mock || e.Err != nil
	}
	delete(t.decided, id)
}

// showResult shows the result of a call.
func (t *Timeline) showResult(r *agent.ToolResult) {
	t.decisions(r.CallID())
	mark, look, words := "✓", green, "ok"
	switch {
	case r.Denied():
		t.denied++
		mark, look, words = "✗", red, describeRefusal(r)
	case r.Mocked():
		mark, look, words = "◦", yellow, "answered by "+cmp.Or(OneLine(r.DecidedBy), "a hook")
	case r.Reason == agent.ReasonWithheld:
		mark, look, words = "✂", red, lo.Ternary(r.Executed(), "result withheld", "not run, result withheld")
	case r.Status == agent.ToolUnknown:
		t.failed++
		mark, look, words = "?", yellow, agent.NotRepeated
	case r.IsError():
		t.failed++
		mark, look, words = "!", yellow, lo.Ternary(r.Executed(), "failed", "not run")
	}
	if r.Attempts > 1 {
		words += fmt.Sprintf(" · %d attempts", r.Attempts)
	}
	if r.Duration >= time.Millisecond {
		words += " · " + FormatDuration(r.Duration)
	}
	if len(t.calls) > 1 { // the result must name its call
		words = OneLine(r.Tool()) + " " + words
	}
	t.calls = lo.Without(t.calls, r.CallID())
	if !t.told[r.CallID()] || r.Executed() {
		t.paper.line(4, look, mark, look, words)
	}
	if text := strings.TrimSpace(Clean(agent.ToolAnswer(r).ToolText())); text != "" && !r.Denied() {
		t.result(text)
	}
}

// progress shows the progress of a call, in quarters.
func (t *Timeline) progress(e mcp.ProgressReported) {
	quarter := -1
	if e.Total > 0 {
		quarter = int(4 * e.Progress / e.Total)
	}
	if last, known := t.quarters[e.Call.ID]; known && last == quarter {
		return
	}
	t.quarters[e.Call.ID] = quarter
	how := lo.Ternary(e.Total > 0, fmt.Sprintf("%g of %g", e.Progress, e.Total), fmt.Sprintf("%g", e.Progress))
	t.paper.line(4, dim, "…", dim, strings.TrimSpace(how+" "+OneLine(e.Message)))
}

// describeRefusal describes why a call was not allowed to run.
func describeRefusal(r *agent.ToolResult) string {
	by := OneLine(r.DecidedBy)
	_, why, _ := strings.Cut(r.Text(), r.DecidedBy+": ") // after "denied by" and the like
	why = Clean(why)
	switch r.Reason {
	case agent.ReasonNobodyToAsk:
		return "not run: no person is here to approve"
	case agent.ReasonRejected:
		return "not run: " + cmp.Or(by, "a person") + " rejected it" + describeReason(why)
	case agent.ReasonHookFailed:
		return "not run: " + cmp.Or(by, "a hook") + " could not decide" + describeReason(strings.TrimPrefix(why, "the hook could not decide: "))
	}
	return "denied by " + cmp.Or(by, "a hook") + describeReason(why)
}

// mostLines is the maximum number of lines of a result that are shown.
const mostLines = 4

// result shows the beginning of a result, each of its lines on one line.
func (t *Timeline) result(text string) {
	lines := strings.Split(text, "\n")
	if width := t.paper.columns() - 6; len(lines) == 1 { // usually a sentence
		lines = wrapText(shortenText(text, mostLines*width), width)
	}
	for _, line := range lines[:min(len(lines), mostLines)] {
		t.paper.end()
		t.paper.raw(strings.TrimRight("      "+t.paper.paint(dim, shortenText(line, t.paper.columns()-6)), " ") + "\n")
	}
	if more := len(lines) - mostLines; more > 0 {
		t.paper.line(6, dim, "", dim, "… "+Plural(more, "more line"))
	}
}

// firstLines returns the first lines of a text.
func firstLines(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) <= most {
		return strings.Join(lines, "\n")
	}
	return strings.Join(lines[:most], "\n") + "\n… " + Plural(len(lines)-most, "more line")
}

// showUsage shows the usage of a step.
func (t *Timeline) showUsage(r agent.StepRecord) {
	t.failure = r.Failure()
	words := lo.Compact([]string{formatUsage(r.Usage()), lo.Ternary(r.Duration() < time.Millisecond, "", FormatDuration(r.Duration()))})
	if len(words) > 0 {
		t.paper.line(2, plain, "", dim, strings.Join(words, " · "))
	}
}

// showEnd shows why the run ended, and its totals.
func (t *Timeline) showEnd(e agent.RunCompleted) {
	s := e.State
	look, text := yellow, Verdict(s, e.Err)
	switch s.Status() {
	case agent.StatusDone:
		look = green
	case agent.StatusFailed, agent.StatusDenied:
		look = red
	}
	if len(t.calls) > 0 && s.Status() == agent.StatusCancelled {
		text += " (while " + OneLine(t.names[t.calls[0]]) + " ran)"
	}
	t.sum(s, look, text)
}

// sum shows the status of a run and its totals.
func (t *Timeline) sum(s agent.State, look style, text string) {
	status, why, _ := strings.Cut(text, ": ")
	t.paper.gap()
	t.paper.line(0, look, status+":", plain, why)
	sums := []string{Plural(s.RunStepCount(), "step"), Plural(t.called, "call")}
	for _, n := range []struct {
		count int
		word  string
	}{{t.denied, "denied"}, {t.rewritten, "rewritten"}, {t.failed, "failed"}} {
		if n.count > 0 {
			sums = append(sums, fmt.Sprintf("%d %s", n.count, n.word))
		}
	}
	if used := formatUsage(s.RunUsage()); used != "" {
		sums = append(sums, used)
	}
	t.paper.line(0, dim, "", dim, strings.Join(append(sums, FormatDuration(time.Since(s.Run().Started))), " · "))
}

// Question shows a call that needs approval in full, with the questions about it.
func (t *Timeline) Question(c agent.ToolCall, q agent.Questions) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asks(c, q)
}

func (t *Timeline) asks(c agent.ToolCall, questions agent.Questions) {
	for _, q := range questions {
		by := ""
		switch {
		case q.Kind == agent.QuestionDoubt:
			by = "this call may have happened" + describeReason(q.Reason)
		case q.Input != nil:
			by = OneLine(q.Reason)
		case q.Gate != nil:
			by = OneLine(q.By) + " waits for a " + OneLine(q.Gate.Kind) + describeReason(q.Reason)
		case q.By != "":
			by = OneLine(q.By) + " asks for approval" + describeReason(q.Reason)
		}
		text := cmp.Or(by, "this needs approval")
		if q.Restricted() {
			text += "; " + OneLine(q.Needs())
		}
		if a := q.Decision(); a != nil && questions.Decision() == nil { // one of several questions
			text += "; answered: " + a.Verdict.String() + byWhom(OneLine(a.By)) + describeReason(a.Reason)
		}
		t.paper.line(2, yellow, "?", yellow, text)
	}
	t.paper.line(4, cyan, OneLine(c.Name), plain, Clean(c.Arguments))
}
