package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// Session is a recording that is ready to be played. Its messages are divided into runs, and each run into its input
// and the model's turns. It is immutable and can serve any number of plays at the same time.
//
// A run begins with a user message when no other run is in progress. Messages between a tool's answer and the model's
// next turn belong to that turn, and are added just before it. Model turns before the first user message are a run
// without input. If a message's content is a list of parts, only the text is played.
type Session struct {
	id    string
	model string
	setup []agent.Message // the messages before the first run
	runs  []recordedRun
}

// recordedRun is one run in the recording.
type recordedRun struct {
	input []agent.Message
	turns []turn
	rest  []agent.Message // the messages after the last turn
}

// turn is one recorded model turn. It includes the messages since the previous turn, and the answers to its calls.
type turn struct {
	between []agent.Message
	message agent.Message
	answers []answer // one for each call
}

// answer is the recorded answer to a call.
type answer struct {
	text     string
	failed   bool
	recorded bool // false: the call has no answer
}

// NewSession prepares a recorded run for playing. It returns an error when a message has an unknown role. It omits
// answers that do not belong to a call in their run.
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
		rest := run.rest // belongs to the next run
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

// addAnswer stores a tool's answer in the run's newest turn that has an unanswered call with its ID: in the first such
// call.
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

// underway reports whether the model's last turn has tool calls, so that the model would take another turn.
func (r *recordedRun) underway() bool {
	return len(r.turns) == 0 || len(r.turns[len(r.turns)-1].answers) > 0
}

// ID returns the recording's ID.
func (x *Session) ID() string { return x.id }

// Runs returns the number of runs in the recording.
func (x *Session) Runs() int { return len(x.runs) }

// Turns returns the number of model turns in run i, counted from zero. It panics when i is out of range.
func (x *Session) Turns(i int) int { return len(x.runs[i].turns) }

// Start returns the state for the beginning of a play: the recording's system messages.
func (x *Session) Start() agent.State { return agent.NewState(x.setup...) }

// Input returns the input for run i, counted from zero: user messages, and the system messages that came with them. It
// panics when i is out of range.
func (x *Session) Input(i int) []agent.Message { return slices.Clone(x.runs[i].input) }

// Into returns ctx with the session in it, for agents whose driver is a Driver.
func (x *Session) Into(ctx context.Context) context.Context {
	return context.WithValue(ctx, sessionKey{}, x)
}

type sessionKey struct{}

var errNoSession = errors.New("replay: no recording in the context: " +
	"run the agent with Session.Play, or with a context from Session.Into")

func sessionIn(ctx context.Context) (*Session, error) {
	if x, ok := ctx.Value(sessionKey{}).(*Session); ok {
		return x, nil
	}
	return nil, errNoSession
}

// run returns the recorded run that corresponds to a running state, and its next turn's index. Failed model calls are
// steps, but not turns.
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

// stepReplies returns a run's steps that have a model reply.
func stepReplies(s agent.State) []agent.StepRecord {
	var out []agent.StepRecord
	for _, step := range s.RunSteps() {
		if step.Message().Role() == agent.RoleAssistant {
			out = append(out, step)
		}
	}
	return out
}

// Play plays the whole recording with an agent. Each run continues the previous run's final state. When a run fails or
// is cancelled, Play returns that error and the runs played so far. After a run that was stopped or denied, Play
// continues with the next run, because the recorded user sent another message.
func (x *Session) Play(ctx context.Context, a *agent.Agent) (Played, error) {
	played := Played{State: x.Start()}
	for i := range x.runs {
		final, departures, err := x.PlayRun(ctx, a, i, played.State)
		played.State, played.Departures = final, append(played.Departures, departures...)
		played.Runs++
		if err != nil {
			return played, fmt.Errorf("replay %q: run %d: %w", x.id, i+1, err)
		}
	}
	return played, nil
}

// PlayRun plays run i, counted from zero, with an agent. It returns the final state, also when the run fails, and where
// the play left the recording. Before is the state at the beginning: Start, or the previous run's final state. It panics
// when i is out of range.
func (x *Session) PlayRun(ctx context.Context, a *agent.Agent, i int, before agent.State) (agent.State, []Departure, error) {
	final, err := a.Run(x.Into(ctx), before, x.runs[i].input...).Get()
	if broken, ok := errors.AsType[*agent.RunError](err); ok {
		final = broken.State
	}
	return final, x.departures(i, before, final), err
}

// Played is the result of playing a recording.
type Played struct {
	// State is the last run's final state, with the steps of all runs.
	State agent.State
	// Runs is the number of played runs, including a failed one.
	Runs int
	// Departures are the places where the play left the recording, in order. After the first one, the recorded model no
	// longer reacts to this agent's actions.
	Departures []Departure
}

// FirstDeparture returns where the play first left the recording. It returns false if the play never did.
func (p Played) FirstDeparture() (Departure, bool) {
	return lo.First(p.Departures)
}
