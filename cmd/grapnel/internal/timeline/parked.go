package timeline

import (
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// showResume shows that a run continues, and from which step.
func (t *Timeline) showResume(s agent.State) {
	t.fresh()
	t.begun = true // the user's message was shown before
	t.paper.gap()
	since := FormatDuration(time.Since(s.Run().Started))
	t.paper.line(0, cyan, "resumed:", plain, fmt.Sprintf("after %s, %s after it began", Plural(s.RunStepCount(), "step"), since))
	if agent.Checkpoint(s).StepOpen() {
		t.paper.gap()
		t.paper.line(0, bold, fmt.Sprintf("step %d", s.RunStepCount()+1), dim, "goes on")
	}
}

// showWaits shows the calls that a run waits for.
func (t *Timeline) showWaits(s agent.State) {
	for _, i := range s.Interventions() {
		if i.Answer() == nil {
			t.showWait(i, time.Now())
		}
	}
	t.sum(s, yellow, Verdict(s, nil))
}

// Waits shows a call that waits for a person: the call, the model's original call if it is different, the hook that
// asks and its reason, and the remaining time.
func (t *Timeline) Waits(i agent.Intervention, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.showWait(i, now)
}

func (t *Timeline) showWait(i agent.Intervention, now time.Time) {
	t.asks(i.Call, i.Questions)
	if i.Call.Arguments != i.Original.Arguments {
		t.paper.line(4, dim, "the model asked for", dim, Clean(i.Original.Arguments))
	}
	text := OneLine(i.CallID())
	if i.Child.Agent != "" {
		text += " of " + OneLine(i.Child.Agent)
	}
	text += ", asked " + Ago(i.Asked, now)
	answer, onTimeout := i.Answer(), i.Questions.OnTimeout()
	switch left := i.Deadline.Sub(now); {
	case answer != nil:
		text += "; answered: " + answer.Verdict.String() + byWhom(OneLine(answer.By)) + describeReason(answer.Reason)
	case i.Deadline.IsZero():
	case left > 0:
		text += fmt.Sprintf("; in %s the default applies: %s", Rough(left), onTimeout)
	default:
		text += fmt.Sprintf("; its time has passed, so the default applies: %s", onTimeout)
	}
	t.paper.line(4, dim, "", dim, text)
}

// Ago returns the time since an event, in words.
func Ago(at, now time.Time) string {
	if d := now.Sub(at); d >= time.Second {
		return Rough(d) + " ago"
	}
	return "just now"
}

// Rough returns a duration in rounded words.
func Rough(d time.Duration) string {
	switch {
	case d < time.Minute:
		return Plural(max(int(d.Seconds()), 1), "second")
	case d < time.Hour:
		return Plural(int(d.Minutes()), "minute")
	case d < 48*time.Hour:
		return Plural(int(d.Hours()), "hour")
	}
	return Plural(int(d.Hours()/24), "day")
}

// Replay shows a stored run as it would have been shown while it ran, without the decisions of hooks.
func (t *Timeline) Replay(s agent.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fresh()
	for _, m := range s.Messages() {
		if m.Role() == agent.RoleAssistant {
			break
		}
		if m.Role() == agent.RoleUser && m.Source() == "" {
			t.paper.line(0, cyan, "you ", plain, firstLines(Clean(m.Text()), 6))
		}
	}
	for _, r := range s.RunSteps() {
		t.calls = nil
		t.streamed.Reset()
		t.paper.gap()
		t.paper.begin(bold, fmt.Sprintf("step %d", r.Index()-(s.StepCount()-s.RunStepCount())+1))
		t.text(r.Message().Text())
		t.paper.end()
		for _, result := range r.Results() {
			t.showCall(agent.ToolCallStarted{Call: result.Call(), Original: result.Original()})
			t.showResult(&result)
		}
		t.showUsage(r)
		if t.failure != nil {
			t.paper.line(2, red, "✗", red, OneLine(t.failure.Text))
			t.failure = nil
		}
	}
}
