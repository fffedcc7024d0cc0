package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Session is a recording made ready to be played: its messages cut into runs, and each run into the input that
// began it and the turns that the model took. It is immutable and serves any number of plays at once.
//
// A run begins where a user speaks and nothing is under way. What a user said between a tool's answer and the
// model's next turn belongs to that turn, and is told just before it.
type Session struct {
	id    string
	setup []agent.Message // what stood before the first user message
	runs  []recordedRun
}

type recordedRun struct {
	input []agent.Message
	turns []turn
}

// turn is one recorded model turn with what was said between the last one and it, and the answers to its calls.
type turn struct {
	between []agent.Message
	message agent.Message
	answers []answer // one for each call
}

type answer struct {
	text     string
	failed   bool
	recorded bool // false: nobody answered the call
}

// NewSession makes a recorded run ready to be played. It is an error when a message has a role that the chat form
// does not know.
func NewSession(r *Record) (*Session, error) {
	x := &Session{id: r.ID}
	var run *recordedRun // the run under way
	var waiting []agent.Message
	underway := false // the model's last turn asked for something
	for i, m := range r.Messages {
		switch m.Role {
		case RoleSystem:
			if run == nil {
				x.setup = append(x.setup, agent.System(m.Content.Text))
				continue
			}
			waiting = append(waiting, agent.System(m.Content.Text).WithSource(sourceName))
		case RoleUser:
			if underway {
				waiting = append(waiting, agent.UserText(m.Content.Text).WithSource(sourceName))
				continue
			}
			if run == nil || len(run.turns) > 0 {
				x.runs = append(x.runs, recordedRun{})
				run = &x.runs[len(x.runs)-1]
			}
			run.input = append(run.input, agent.UserText(m.Content.Text))
		case RoleAssistant:
			if run == nil {
				x.runs = append(x.runs, recordedRun{})
				run = &x.runs[0]
			}
			t := newTurn(m)
			t.between, waiting = waiting, nil
			run.turns = append(run.turns, t)
			underway = len(t.answers) > 0
		case RoleTool:
			if run != nil {
				run.answered(m)
			}
		default:
			return nil, fmt.Errorf("replay %q: message %d has the role %q: expected system, user, assistant or tool", r.ID, i+1, m.Role)
		}
	}
	return x, nil
}

// sourceName marks messages that the recording put in on its own.
const sourceName = "recording"

func newTurn(m Message) turn {
	calls := make([]agent.ToolCall, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		calls[i] = agent.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}
	}
	return turn{message: agent.Assistant(m.Content.Text, calls...), answers: make([]answer, len(calls))}
}

// answered puts a tool's answer to the call it is for: the first call with that id, in the newest turn that has
// one, that nobody has answered. An answer to no call is left out.
func (r *recordedRun) answered(m Message) {
	if len(r.turns) == 0 {
		return
	}
	last := &r.turns[len(r.turns)-1]
	for i, c := range last.message.Calls() {
		if c.ID == m.ToolCallID && !last.answers[i].recorded {
			last.answers[i] = answer{text: m.Content.Text, failed: m.Error, recorded: true}
			return
		}
	}
}

// ID is the id of the recording.
func (x *Session) ID() string { return x.id }

// Runs is the number of runs in the recording.
func (x *Session) Runs() int { return len(x.runs) }

// Turns is the number of model turns in run i, counted from zero. It panics when i is out of range.
func (x *Session) Turns(i int) int { return len(x.runs[i].turns) }

// Start is a state to begin with: the system messages of the recording.
func (x *Session) Start() agent.State { return agent.NewState(x.setup...) }

// Input is the user messages that began run i, counted from zero. It panics when i is out of range.
func (x *Session) Input(i int) []agent.Message { return append([]agent.Message(nil), x.runs[i].input...) }

// Into returns ctx with the session in it: agents whose driver is a Driver then play it.
func (x *Session) Into(ctx context.Context) context.Context { return context.WithValue(ctx, sessionKey{}, x) }

type sessionKey struct{}

var errNoSession = errors.New("replay: there is no recording in the context: run the agent with Session.Play, or with a context from Session.Into")

func sessionIn(ctx context.Context) (*Session, error) {
	if x, ok := ctx.Value(sessionKey{}).(*Session); ok {
		return x, nil
	}
	return nil, errNoSession
}

// run is the recorded run that a running state is at.
func (x *Session) run(s agent.State) (*recordedRun, bool) {
	n := s.Run().Number - 1
	if n < 0 || n >= len(x.runs) {
		return nil, false
	}
	return &x.runs[n], true
}

// Play plays the whole recording with an agent: run after run, each on the state that the last one left. It ends
// early when a run fails or is cancelled, with that error and what was played until then.
func (x *Session) Play(ctx context.Context, a *agent.Agent) (Played, error) {
	played := Played{State: x.Start()}
	ctx = x.Into(ctx)
	for i := range x.runs {
		final, err := a.Run(ctx, played.State, x.runs[i].input...).Get()
		if broken, ok := errors.AsType[*agent.RunError](err); ok {
			final = broken.State
		}
		played.Steps = append(played.Steps, stepsOf(final)...)
		played.Departures = append(played.Departures, x.Departures(i, final)...)
		played.State = final
		played.Runs++
		if err != nil {
			return played, fmt.Errorf("replay %q: run %d: %w", x.id, i+1, err)
		}
	}
	return played, nil
}

func stepsOf(s agent.State) []agent.StepRecord {
	var out []agent.StepRecord
	for _, r := range s.RunSteps() {
		out = append(out, r)
	}
	return out
}

// Played is what came of playing a recording.
type Played struct {
	// State is the state that the last run ended in.
	State agent.State
	// Runs is the number of runs that were played.
	Runs int
	// Steps is all steps that were taken, in order.
	Steps []agent.StepRecord
	// Departures is where the play left the recording, in order. What comes after the
	// first is what the recorded model said to a world that was no longer there.
	Departures []Departure
}

// Left is where the play first left the recording; None when it never did.
func (p Played) Left() mo.Option[Departure] {
	if len(p.Departures) == 0 {
		return mo.None[Departure]()
	}
	return mo.Some(p.Departures[0])
}
