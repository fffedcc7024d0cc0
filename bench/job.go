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
	Steps int `json:"steps"`
	// History is how many messages earlier turns left in the transcript: an even
	// number, since it is a question, calls with their results, and an answer.
	History int `json:"history"`
	// Calls is how many tool calls the model asks for in one step, to be run all at
	// once. Zero means one.
	Calls int `json:"calls"`
	// HookPairs is how many hooks that look, and change nothing, stand before the
	// tool call, and how many behind it.
	HookPairs int `json:"pairs"`
	// Hold, if not nil, is called in the first model call of a run, which does
	// not return before Hold does. It may be called by many runs at once.
	Hold func() `json:"-"`
	// InTool, if not nil, is called in every tool run, by many at once.
	InTool func() `json:"-"`
	// OffClock, if not nil, runs what is not part of the work, such as filling a
	// store with what earlier turns would have left in it. See [Script.OffClock].
	OffClock func(func()) `json:"-"`
}

// width returns how many calls a step has.
func (j Job) width() int { return max(1, j.Calls) }

func (j Job) check() error {
	switch {
	case j.Steps < 0:
		return fmt.Errorf("prepare job: %d steps: want none or more", j.Steps)
	case j.History < 0 || j.History%2 != 0:
		return fmt.Errorf("prepare job: a history of %d messages: want an even number", j.History)
	case j.Calls < 0:
		return fmt.Errorf("prepare job: %d calls in a step: want none or more", j.Calls)
	case j.HookPairs < 0:
		return fmt.Errorf("prepare job: %d hook pairs: want none or more", j.HookPairs)
	}
	return nil
}

// Contender is a framework, or the lack of one.
type Contender struct {
	// Name is what the tables call it.
	Name string
	// Module is the path of what is measured; empty for what is written here.
	Module string
	// NoHooks says of one that has no hooks around a tool call what it has instead.
	NoHooks string
	// AtOnce is how many calls of a step it runs at once at most. Zero means all.
	AtOnce int
	// Unordered is set where the results of a step stand in the transcript as their
	// calls ended, and not as the model asked. See [Script.AnyOrder].
	Unordered bool
	// Telemetry, if not nil, says that it is measured for what telemetry costs.
	Telemetry *Telemetry
	// Prepare builds, off the clock, what a program would build once. The
	// returned Run may be called many times; to read its Outcome's counts, one
	// call at a time.
	Prepare func(Job) (Run, error)
}

// Telemetry says what a contender that records itself is compared with.
type Telemetry struct {
	Without string `json:"without"` // the name of the same contender, not recording itself
	ByHand  string `json:"byHand"`  // of one that is instrumented by hand to record the same; empty for those
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
