package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Job is the work that every contender does in one run.
type Job struct {
	// Steps is how many times the model asks for a tool call before it answers.
	Steps int
	// History is how many messages earlier turns left in the transcript: an even
	// number, since it is a question, calls with their results, and an answer.
	History int
	// HookPairs is how many hooks that look, and change nothing, stand before the
	// tool call, and how many behind it.
	HookPairs int
	// Hold, if not nil, is called in the first model call of a run, which does
	// not return before Hold does. It may be called by many runs at once.
	Hold func()
}

func (j Job) check() error {
	switch {
	case j.Steps < 0:
		return fmt.Errorf("prepare job: %d steps: want none or more", j.Steps)
	case j.History < 0 || j.History%2 != 0:
		return fmt.Errorf("prepare job: a history of %d messages: want an even number", j.History)
	case j.HookPairs < 0:
		return fmt.Errorf("prepare job: %d hook pairs: want none or more", j.HookPairs)
	}
	return nil
}

// Contender is a framework, or the lack of one.
type Contender struct {
	// Name is what the tables call it.
	Name string
	// Prepare builds, off the clock, what a program would build once. The
	// returned Run may be called many times; to read its Outcome's counts, one
	// call at a time.
	Prepare func(Job) (Run, error)
}

// Run does the job once.
type Run func(context.Context) (Outcome, error)

// Outcome is what one run left behind. Reading it costs; making it does not.
type Outcome struct {
	ModelCalls int
	ToolRuns   int
	HookCalls  int
	Sum        int // of all tool results

	// Transcript yields the final transcript, history included: what the model
	// was shown in its last call, then its answer.
	Transcript iter.Seq[Message]
}

// ErrUnknownTool is what a contender's loop says of a call that names no tool.
var ErrUnknownTool = errors.New("unknown tool")
