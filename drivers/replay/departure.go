package replay

import (
	"fmt"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
)

// DepartureKind says how a play left its recording.
type DepartureKind string

// How a play may leave its recording.
const (
	// CallDenied: a hook or a person denied the call, or a hook could not decide on it.
	CallDenied DepartureKind = "denied"
	// CallNotRun: the call did not run for another reason: its arguments cannot be read or break the schema, no tool
	// has its name, the run was stopped or cancelled.
	CallNotRun DepartureKind = "not_run"
	// CallRewritten: the call ran with other arguments; its answer is the one recorded for the original.
	CallRewritten DepartureKind = "rewritten"
	// CallMocked: a hook answered in the tool's place.
	CallMocked DepartureKind = "mocked"
	// AnswerChanged: the model was told another answer than was recorded.
	AnswerChanged DepartureKind = "answer_changed"
	// ReplyChanged: the model's turn was replaced.
	ReplyChanged DepartureKind = "reply_changed"
	// ContextChanged: what was said before a turn, by others than the model and its tools, is not what was recorded:
	// the input was denied or rewritten, a hook added something.
	ContextChanged DepartureKind = "context_changed"
	// TurnsLeft: the run ended before the recording did.
	TurnsLeft DepartureKind = "turns_left"
	// AskedForMore: the run wanted a turn that the recording does not have, and its model would not have taken.
	AskedForMore DepartureKind = "asked_for_more"
)

// Departure is a place where a play left its recording.
type Departure struct {
	Kind DepartureKind
	// Run and Turn count from zero; Turn is that of the recorded run.
	Run, Turn int
	// Call is the recorded id of the call, and Tool its tool; empty where it is not about a call.
	Call, Tool string
	// Worked is whether the call was answered without an error in the recording; false where it is not about a call.
	Worked bool
	// Detail is a sentence for a person.
	Detail string
}

func (d Departure) String() string {
	place := fmt.Sprintf("run %d, turn %d", d.Run+1, d.Turn+1)
	if d.Call != "" || d.Tool != "" {
		place += fmt.Sprintf(", call %s of %s", d.Call, d.Tool)
	}
	return fmt.Sprintf("%s: %s: %s", place, d.Kind, d.Detail)
}

// Departures returns where run i, counted from zero, left the recording, judged by the state that it began on, without its
// input, and the one that it ended in. A call has one departure at most. What a hook changed for one model call alone,
// the request and the messages that were shown in it, is not in a state, and not looked at.
func (x *Session) Departures(i int, before, final agent.State) []Departure {
	run, taken := &x.runs[i], stepReplies(final)
	signal := final.StopSignal().OrEmpty()
	var out []Departure
	for n, told := range toldBetween(before, final, taken) {
		if n > len(run.turns) {
			break // not a Driver's turns
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
			Kind: AskedForMore, Run: i, Turn: len(taken), Detail: "the run wanted to go on where the recording ends",
		})
	}
	return out
}

// toldBefore returns what others than the model and its tools said before turn n of a run, as recorded. After the last turn
// that was taken, it is what the end of the run let be heard.
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

// toldBetween returns what others than the model and its tools said before each step that was taken, and after the last.
func toldBetween(before, final agent.State, taken []agent.StepRecord) [][]agent.Message {
	told := [][]agent.Message{nil}
	answers := 0 // to the calls of the last reply, that are still to come
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

// difference returns the first difference between what was recorded and what was told.
func difference(want, got []agent.Message) string {
	for i, m := range got {
		if i == len(want) {
			return fmt.Sprintf("more was said, by %q: %.100q", m.Source(), m.Text())
		}
		if !sameWords(want[i], m) {
			return fmt.Sprintf("instead of %.100q, this was said: %.100q", want[i].Text(), m.Text())
		}
	}
	return fmt.Sprintf("this was not said: %.100q", want[len(got)].Text())
}

// compareStep returns where step n left the turn that it was to be.
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

// sameTurn compares two turns: the loop gives new ids to calls whose id is taken; that is no departure.
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
