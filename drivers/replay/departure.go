package replay

import (
	"fmt"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
)

// DepartureKind says how a play left its recording.
type DepartureKind string

// The kinds of departures.
const (
	// CallDenied: a hook or a person denied the call, or a hook failed to decide on it.
	CallDenied DepartureKind = "denied"
	// CallNotRun: the call did not run for another reason. Its arguments are malformed or violate the schema, no tool
	// has its name, or the run was stopped or cancelled.
	CallNotRun DepartureKind = "not_run"
	// CallRewritten: the call ran with other arguments. Its answer is the recorded answer to the original.
	CallRewritten DepartureKind = "rewritten"
	// CallMocked: a hook answered instead of the tool.
	CallMocked DepartureKind = "mocked"
	// AnswerChanged: the model received a different answer than the recorded one.
	AnswerChanged DepartureKind = "answer_changed"
	// ReplyChanged: the model's turn was replaced.
	ReplyChanged DepartureKind = "reply_changed"
	// ContextChanged: messages before a turn differ from the recording, and are not from the model or its tools. The
	// input was denied or rewritten, or a hook added a message.
	ContextChanged DepartureKind = "context_changed"
	// TurnsLeft: the run ended before the recording did.
	TurnsLeft DepartureKind = "turns_left"
	// AskedForMore: the run needed a turn after the end of the recording, where the recorded run had ended.
	AskedForMore DepartureKind = "asked_for_more"
)

// Departure is a place where a play left its recording.
type Departure struct {
	Kind DepartureKind
	// Run is the run's index, and Turn the turn's index in the recorded run. Both count from zero.
	Run, Turn int
	// Call is the recorded call ID, and Tool its tool. Both are empty when the departure is not about a call.
	Call, Tool string
	// Worked reports whether the recorded call was answered without an error. It is false when the departure is not
	// about a call.
	Worked bool
	// Detail describes the departure in one sentence.
	Detail string
}

func (d Departure) String() string {
	place := fmt.Sprintf("run %d, turn %d", d.Run+1, d.Turn+1)
	if d.Call != "" || d.Tool != "" {
		place += fmt.Sprintf(", call %s of %s", d.Call, d.Tool)
	}
	return fmt.Sprintf("%s: %s: %s", place, d.Kind, d.Detail)
}

// departures returns where run i, counted from zero, left the recording. before is the state at the run's beginning,
// without its input. final is the state at its end. A call has at most one departure. Hooks' changes to a single model
// call (the request and the messages shown in it) are not found, because a state does not contain them.
func (x *Session) departures(i int, before, final agent.State) []Departure {
	run, taken := &x.runs[i], stepReplies(final)
	signal := final.StopSignal()
	var out []Departure
	for n, told := range toldBetween(before, final, taken) {
		if n > len(run.turns) {
			break // another driver's turns
		}
		if want := run.toldBefore(n, len(taken), signal); !slices.EqualFunc(want, told, sameWords) {
			out = append(out, Departure{Kind: ContextChanged, Run: i, Turn: n, Detail: difference(want, told)})
		}
		if n < min(len(taken), len(run.turns)) {
			out = append(out, run.turns[n].compareStep(i, n, taken[n])...)
		}
	}
	switch left := len(run.turns) - len(taken); {
	case left > 0:
		out = append(out, Departure{Kind: TurnsLeft, Run: i, Turn: len(taken), Detail: fmt.Sprintf(
			"%d of %d turns were not played: the run is %s by %s (%s)",
			left, len(run.turns), final.Status(), signal.Source, signal.Reason)})
	case left < 0, signal.Reason == StopRecordingEnded && !run.underway():
		out = append(out, Departure{
			Kind: AskedForMore, Run: i, Turn: len(taken), Detail: "the run needed another turn, but the recording ends here",
		})
	}
	return out
}

// toldBefore returns the recorded messages before turn n that are not from the model or its tools. For the position
// after the last turn taken, it returns the messages that the run still reads when it ends with the signal.
func (r *recordedRun) toldBefore(n, taken int, signal agent.Signal) []agent.Message {
	var told []agent.Message
	if n == 0 {
		told = slices.Clone(r.input)
	}
	switch {
	case n < min(taken, len(r.turns)):
		told = append(told, r.turns[n].between...)
	case signal.Reason == StopRecordingEnded:
		told = append(told, r.rest...)
	}
	return told
}

// toldBetween returns the messages that are not from the model or its tools, before each step taken and after the last.
func toldBetween(before, final agent.State, taken []agent.StepRecord) [][]agent.Message {
	told := [][]agent.Message{nil}
	answers := 0 // missing answers to the last reply's calls
	for _, m := range final.MessagesFrom(before.MessageCount()) {
		n := len(told) - 1
		switch {
		case answers > 0:
			answers--
		case n < len(taken) && m.Equal(taken[n].Message()):
			answers = taken[n].ResultCount()
			told = append(told, nil)
		default:
			told[n] = append(told[n], m)
		}
	}
	for len(told) <= len(taken) { // the transcript was shortened
		told = append(told, nil)
	}
	return told
}

func sameWords(a, b agent.Message) bool { return a.Role() == b.Role() && a.Text() == b.Text() }

// difference describes the first difference between the recorded and the played messages.
func difference(want, got []agent.Message) string {
	for i, m := range got {
		if i == len(want) {
			return fmt.Sprintf("an additional message from %q: %.100q", m.Source(), m.Text())
		}
		if !sameWords(want[i], m) {
			return fmt.Sprintf("expected the message %.100q, got %.100q", want[i].Text(), m.Text())
		}
	}
	return fmt.Sprintf("missing the message %.100q", want[len(got)].Text())
}

// compareStep returns the differences between step n and the recorded turn.
func (t turn) compareStep(run, n int, step agent.StepRecord) []Departure {
	if !sameTurn(step.Message(), t.message) {
		return []Departure{{Kind: ReplyChanged, Run: run, Turn: n, Detail: "the model's turn was replaced"}}
	}
	var out []Departure
	for i, r := range step.Results() {
		call, a := t.message.Call(i), t.answers[i]
		d := Departure{Run: run, Turn: n, Call: call.ID, Tool: call.Name, Worked: a.recorded && !a.failed, Detail: r.Text()}
		switch {
		case r.Denied():
			d.Kind = CallDenied
		case r.Mocked():
			d.Kind = CallMocked
		case r.Status == agent.ToolNotExecuted, r.Status == agent.ToolUnknown:
			d.Kind = CallNotRun
		case r.Rewritten():
			d.Kind, d.Detail = CallRewritten, r.Original().Arguments+" became "+r.Call().Arguments
		case a.recorded && r.Text() != a.text:
			d.Kind = AnswerChanged
		default:
			continue
		}
		out = append(out, d)
	}
	return out
}

// sameTurn reports whether two turns are equal. It ignores new IDs that the loop gives to calls whose ID is taken.
func sameTurn(a, b agent.Message) bool {
	if a.Text() != b.Text() || a.CallCount() != b.CallCount() {
		return false
	}
	for i, c := range a.Calls() {
		if d := b.Call(i); c.Name != d.Name || c.Arguments != d.Arguments {
			return false
		}
	}
	return true
}
