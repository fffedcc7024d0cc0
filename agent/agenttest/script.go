package agenttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// ErrExhausted is returned when the script has no turn for a model call.
var ErrExhausted = errors.New("the script is exhausted")

// Driver plays a script: see Script. It is safe for concurrent use.
type Driver struct {
	turns   []Turn
	then    *Turn // for all further steps
	eachRun bool

	mu    sync.Mutex
	asked []Asking
	tries map[string]int // by model call
}

var _ agent.Streamer = (*Driver)(nil)

// Asking records one call of a Driver.
type Asking struct {
	Run agent.Run
	// Step is the number of the step in its run, counted from zero.
	Step int
	// Inference is the ID of the model call.
	Inference string
	Messages  []agent.Message
	Request   agent.Request
}

// Transcript returns the messages that the driver was shown, a line for each message
// and call.
func (a Asking) Transcript() string { return formatTranscript(slices.All(a.Messages)) }

// Script returns a driver that plays the turns in order: step n of a session plays turn n. When the script has no turn
// for a step, the model call fails with ErrExhausted. The driver streams text word by word and call arguments in
// pieces.
func Script(turns ...Turn) *Driver {
	return &Driver{turns: slices.Clone(turns), tries: map[string]int{}}
}

// Then sets the turn that follows the last one in all further steps, and returns the driver. Call it before the driver
// is used.
func (d *Driver) Then(turn Turn) *Driver {
	d.then = &turn
	return d
}

// EachRun makes the script start again in each run of a session, and returns the driver. Call it before the driver is
// used.
func (d *Driver) EachRun() *Driver {
	d.eachRun = true
	return d
}

// Calls returns the driver's calls, in order.
func (d *Driver) Calls() []Asking {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked)
}

// Next plays the next turn.
func (d *Driver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	if ctx.Err() != nil {
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	turn, position, err := d.turn(s)
	if err != nil {
		return mo.Err[agent.Step](err)
	}
	return mo.TupleToResult(turn.take(ctx, s, position))
}

// Stream plays the next turn in pieces.
func (d *Driver) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	result := d.Next(ctx, s)
	step, err := result.Get()
	if err != nil {
		return result
	}
	for _, delta := range splitMessage(step.Message) {
		if ctx.Err() != nil {
			return mo.Err[agent.Step](context.Cause(ctx))
		}
		emit(delta)
	}
	return result
}

// turn returns the turn for s, and records the call.
func (d *Driver) turn(s agent.State) (Turn, int, error) {
	asking := Asking{Run: s.Run(), Step: s.RunStepCount(), Inference: agent.Checkpoint(s).InferenceID(), Request: s.Request()}
	for _, m := range s.Messages() {
		asking.Messages = append(asking.Messages, m)
	}
	position := s.StepCount()
	if d.eachRun {
		position = s.RunStepCount()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, asking)
	turn := lo.FromPtr(d.then)
	switch {
	case position < len(d.turns):
		turn = d.turns[position]
	case d.then == nil:
		return Turn{}, 0, fmt.Errorf("%w: it has %d turns, and run %q asks for turn %d: add turns, or a last one with Then",
			ErrExhausted, len(d.turns), asking.Run.ID, position+1)
	}
	if len(turn.tries) > 0 {
		n := d.tries[asking.Inference]
		d.tries[asking.Inference]++
		turn = turn.tries[min(n, len(turn.tries)-1)]
	}
	return turn, position, nil
}

// pieceOfArguments is the length in bytes of one piece when call arguments are streamed. Runes stay whole.
const pieceOfArguments = 8

// splitMessage returns a message in pieces, as a stream delivers it.
func splitMessage(m agent.Message) []agent.Delta {
	var out []agent.Delta
	for _, part := range m.Content().Parts() {
		for word := range strings.SplitAfterSeq(part.Text, " ") {
			switch {
			case word == "":
			case part.Kind == agent.PartText:
				out = append(out, agent.Delta{Text: word})
			case part.Kind == agent.PartReasoning:
				out = append(out, agent.Delta{Reasoning: word})
			}
		}
	}
	for i, call := range m.Calls() {
		piece, rest := call, call.Arguments
		for first := true; first || rest != ""; first = false {
			n := min(pieceOfArguments, len(rest))
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			piece.Arguments, rest = rest[:n], rest[n:]
			out = append(out, agent.Delta{Call: piece, CallIndex: i})
			piece = agent.ToolCall{Index: i}
		}
	}
	return out
}
