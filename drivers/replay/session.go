package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Session is a recording made ready to be played: its messages cut into runs, and each run into the input that
// began it and the turns that the model took. It is immutable and serves any number of plays at once.
//
// A run begins where a user speaks and nothing is under way. What was said between a tool's answer and the model's
// next turn belongs to that turn, and is told just before it. A model that spoke before any user did so in a run
// without input. Of content in parts, the text is played.
type Session struct {
	id    string
	model string
	setup []agent.Message // what stood before the first run
	runs  []recordedRun
}

// recordedRun is one run of the recording.
type recordedRun struct {
	input []agent.Message
	turns []turn
	rest  []agent.Message // what was said after the last turn
}

// turn is one recorded model turn with what was said between the last one and it, and the answers to its calls.
type turn struct {
	between []agent.Message
	message agent.Message
	answers []answer // one for each call
}

// answer is what a call was answered in the recording.
type answer struct {
	text     string
	failed   bool
	recorded bool // false: the call has no answer
}

// NewSession makes a recorded run ready to be played. It is an error when a message has a role that the chat form
// does not know. Answers to no call of their run are left out.
func NewSession(r *Record) (*Session, error) {
	x := &Session{id: r.ID, model: cmp.Or(r.Model, "replay")}
	for i, m := range r.Messages {
		switch m.Role {
		case RoleSystem, RoleDeveloper:
			x.addInstructions(agent.System(m.Content.Text))
		case RoleUser:
			x.addInput(agent.UserText(m.Content.Text))
		case RoleAssistant:
			x.addTurn(newTurn(m))
		case RoleTool:
			x.addAnswer(m)
		default:
			return nil, fmt.Errorf("replay %q: message %d has the role %q: expected system, developer, user, assistant or tool",
				r.ID, i+1, m.Role)
		}
	}
	return x, nil
}

func newTurn(m Message) turn {
	calls := make([]agent.ToolCall, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		calls[i] = agent.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}
	}
	return turn{message: agent.Assistant(m.Content.Text, calls...), answers: make([]answer, len(calls))}
}

// last returns the newest run, nil before the first.
func (x *Session) last() *recordedRun {
	if len(x.runs) == 0 {
		return nil
	}
	return &x.runs[len(x.runs)-1]
}

func (x *Session) begin(input ...agent.Message) { x.runs = append(x.runs, recordedRun{input: input}) }

func (x *Session) addInstructions(m agent.Message) {
	if run := x.last(); run != nil {
		run.addMessage(m)
		return
	}
	x.setup = append(x.setup, m)
}

func (x *Session) addInput(m agent.Message) {
	run := x.last()
	switch {
	case run == nil:
		x.begin(m)
	case len(run.turns) > 0 && !run.underway():
		rest := run.rest // goes over to the next run
		run.rest = nil
		x.begin(append(rest, m)...)
	default:
		run.addMessage(m)
	}
}

func (x *Session) addTurn(t turn) {
	if len(x.runs) == 0 {
		x.begin()
	}
	run := x.last()
	t.between, run.rest = run.rest, nil
	run.turns = append(run.turns, t)
}

// addAnswer puts a tool's answer to the call that it is for: in the newest turn of the run that has a call of that id
// which have no answer, the first such call.
func (x *Session) addAnswer(m Message) {
	run := x.last()
	if run == nil {
		return
	}
	for _, t := range slices.Backward(run.turns) {
		for i, c := range t.message.Calls() {
			if c.ID == m.ToolCallID && !t.answers[i].recorded {
				t.answers[i] = answer{text: m.Content.Text, failed: m.Error, recorded: true}
				return
			}
		}
	}
}

func (r *recordedRun) addMessage(m agent.Message) {
	if len(r.turns) == 0 {
		r.input = append(r.input, m)
		return
	}
	r.rest = append(r.rest, m)
}

// underway reports whether the model asked for something in its last turn, and would have spoken again.
func (r *recordedRun) underway() bool {
	return len(r.turns) == 0 || len(r.turns[len(r.turns)-1].answers) > 0
}

// ID returns the id of the recording.
func (x *Session) ID() string { return x.id }

// Runs returns the number of runs in the recording.
func (x *Session) Runs() int { return len(x.runs) }

// Turns returns the number of model turns in run i, counted from zero. It panics when i is out of range.
func (x *Session) Turns(i int) int { return len(x.runs[i].turns) }

// Start returns a state to begin with: the system messages of the recording.
func (x *Session) Start() agent.State { return agent.NewState(x.setup...) }

// Input returns what began run i, counted from zero: user messages, and system messages that came with them. It panics
// when i is out of range.
func (x *Session) Input(i int) []agent.Message { return slices.Clone(x.runs[i].input) }

// Into returns ctx with the session in it: agents whose driver is a Driver then play it.
func (x *Session) Into(ctx context.Context) context.Context {
	return context.WithValue(ctx, sessionKey{}, x)
}

type sessionKey struct{}

var errNoSession = errors.New("replay: there is no recording in the context: " +
	"run the agent with Session.Play, or with a context from Session.Into")

func sessionIn(ctx context.Context) (*Session, error) {
	if x, ok := ctx.Value(sessionKey{}).(*Session); ok {
		return x, nil
	}
	return nil, errNoSession
}

// run returns the recorded run that a running state is at, and the turn in it that is next. Model calls that failed are
// steps, but no turns.
func (x *Session) run(s agent.State) (run *recordedRun, next int, ok bool) {
	n := s.Run().Number - 1
	if n < 0 || n >= len(x.runs) {
		return nil, 0, false
	}
	next = s.RunStepCount()
	if s.RunFailures() > 0 {
		next = len(stepReplies(s))
	}
	return &x.runs[n], next, true
}

// stepReplies returns the steps of a run in which the model said something.
func stepReplies(s agent.State) []agent.StepRecord {
	var out []agent.StepRecord
	for _, step := range s.RunSteps() {
		if step.Message().Role() == agent.RoleAssistant {
			out = append(out, step)
		}
	}
	return out
}

// Play plays the whole recording with an agent: run after run, each on the state that the last one left. It ends
// early when a run fails or is cancelled, with that error and what was played until then. A run that was stopped or
// denied is followed by the next, as the user spoke again.
func (x *Session) Play(ctx context.Context, a *agent.Agent) (Played, error) {
	played := Played{State: x.Start()}
	ctx = x.Into(ctx)
	for i, run := range x.runs {
		final, err := a.Run(ctx, played.State, run.input...).Get()
		if broken, ok := errors.AsType[*agent.RunError](err); ok {
			final = broken.State
		}
		played.Departures = append(played.Departures, x.Departures(i, played.State, final)...)
		played.State = final
		played.Runs++
		if err != nil {
			return played, fmt.Errorf("replay %q: run %d: %w", x.id, i+1, err)
		}
	}
	return played, nil
}

// Played is what came of playing a recording.
type Played struct {
	// State is the state that the last run ended in, with the steps of all runs.
	State agent.State
	// Runs is the number of runs that were played, one that failed included.
	Runs int
	// Departures is where the play left the recording, in order. What comes after the
	// first is what the recorded model said to a world that was no longer there.
	Departures []Departure
}

// FirstDeparture returns where the play first left the recording; None when it never did.
func (p Played) FirstDeparture() mo.Option[Departure] {
	if len(p.Departures) == 0 {
		return mo.None[Departure]()
	}
	return mo.Some(p.Departures[0])
}
