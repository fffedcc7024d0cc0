package replay

import (
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
)

// DepartureKind says how a play left its recording.
type DepartureKind string

// How a play may leave its recording.
const (
	// CallDenied: a hook or a person denied the call.
	CallDenied DepartureKind = "denied"
	// CallNotRun: the call did not run for another reason: its arguments cannot be read or break the schema, no tool
	// has its name, the run was stopped or cancelled.
	CallNotRun DepartureKind = "not_run"
	// CallRewritten: the call ran with other arguments; its answer is the one recorded for the original.
	CallRewritten DepartureKind = "rewritten"
	// CallMocked: a hook answered in the tool's place.
	CallMocked DepartureKind = "mocked"
	// AnswerChanged: the model was told something else than was recorded.
	AnswerChanged DepartureKind = "answer_changed"
	// ReplyChanged: the model's turn was replaced.
	ReplyChanged DepartureKind = "reply_changed"
	// TurnsLeft: the run ended before the recording did.
	TurnsLeft DepartureKind = "turns_left"
	// AskedForMore: the run wanted a turn that the recording does not have.
	AskedForMore DepartureKind = "asked_for_more"
)

// Departure is a place where a play left its recording.
type Departure struct {
	Kind DepartureKind
	// Run and Turn count from zero; Turn is that of the recorded run.
	Run, Turn int
	// Call is the id of the call, and Tool its tool; empty where it is not about a call.
	Call, Tool string
	// Detail is a sentence for a person.
	Detail string
}

func (d Departure) String() string {
	place := fmt.Sprintf("run %d, turn %d", d.Run+1, d.Turn+1)
	if d.Call != "" {
		place += fmt.Sprintf(", call %s of %s", d.Call, d.Tool)
	}
	return fmt.Sprintf("%s: %s: %s", place, d.Kind, d.Detail)
}

// Departures is where run i, counted from zero, left the recording, judged by the state that it ended in.
func (x *Session) Departures(i int, final agent.State) []Departure {
	var out []Departure
	run := x.runs[i]
	taken := 0
	for n, step := range final.RunSteps() {
		if n >= len(run.turns) {
			break
		}
		taken++
		out = append(out, run.turns[n].departures(i, n, step)...)
	}
	signal := final.StopSignal().OrEmpty()
	switch {
	case taken < len(run.turns):
		out = append(out, Departure{
			Kind: TurnsLeft, Run: i, Turn: taken,
			Detail: fmt.Sprintf("%d of %d turns were not played: the run is %s by %s (%s)", len(run.turns)-taken, len(run.turns), final.Status(), signal.Source, signal.Reason),
		})
	case signal.Reason == StopRecordingEnded && !run.openEnd():
		out = append(out, Departure{Kind: AskedForMore, Run: i, Turn: taken, Detail: "the run wanted to go on where the recording ends"})
	}
	return out
}

// openEnd reports whether the recorded run itself breaks off where the model would have spoken next.
func (r recordedRun) openEnd() bool {
	return len(r.turns) == 0 || len(r.turns[len(r.turns)-1].answers) > 0
}

func (t turn) departures(run, n int, step agent.StepRecord) []Departure {
	if !step.Message().Equal(t.message) && !sameCalls(step.Message(), t.message) {
		return []Departure{{Kind: ReplyChanged, Run: run, Turn: n, Detail: "the model's turn was replaced"}}
	}
	var out []Departure
	for i, r := range step.Results() {
		d := Departure{Run: run, Turn: n, Call: r.CallID, Tool: r.Tool, Detail: r.Text()}
		switch {
		case r.Denied():
			d.Kind = CallDenied
		case r.Mocked():
			d.Kind = CallMocked
		case r.Status == agent.ToolNotExecuted:
			d.Kind = CallNotRun
		case r.Rewritten():
			d.Kind, d.Detail = CallRewritten, r.Original.Arguments+" became "+r.Call.Arguments
		case t.answers[i].recorded && r.Text() != t.answers[i].text:
			d.Kind, d.Detail = AnswerChanged, "by "+r.DecidedBy
		default:
			continue
		}
		out = append(out, d)
	}
	return out
}

// sameCalls: the loop gives new ids to calls whose id is taken; that is no departure.
func sameCalls(a, b agent.Message) bool {
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
