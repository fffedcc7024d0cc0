package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Job is the work that every contender does in one run.
type Job struct {
	// Steps is the number of tool calls by the model before it answers.
	Steps int `json:"steps"`
	// History is the number of messages that earlier turns left in the transcript. It is even, because it counts a
	// question, calls with their results, and an answer.
	History int `json:"history"`
	// Calls is the number of tool calls by the model in one step, which run concurrently. Zero means one.
	Calls int `json:"calls"`
	// HookPairs is the number of hooks before the tool call, and of hooks after it. These hooks only observe.
	HookPairs int `json:"pairs"`
	// Hold, if not nil, is called in the first model call of a run, which waits until Hold returns. Runs may call it
	// concurrently.
	Hold func() `json:"-"`
	// InTool, if not nil, is called in every tool run, possibly concurrently.
	InTool func() `json:"-"`
	// OffClock, if not nil, runs code that is not part of the measured work, such as filling a store with the data of
	// earlier turns. See [Script.OffClock].
	OffClock func(func()) `json:"-"`
}

// width returns the number of calls of a step.
func (j Job) width() int { return max(1, j.Calls) }

func (j Job) check() error {
	switch {
	case j.Steps < 0:
		return fmt.Errorf("prepare job: %d steps: must not be negative", j.Steps)
	case j.History < 0 || j.History%2 != 0:
		return fmt.Errorf("prepare job: a history of %d messages: must be an even number", j.History)
	case j.Calls < 0:
		return fmt.Errorf("prepare job: %d calls in a step: must not be negative", j.Calls)
	case j.HookPairs < 0:
		return fmt.Errorf("prepare job: %d hook pairs: must not be negative", j.HookPairs)
	}
	return nil
}

// Contender is a framework, or a loop without one.
type Contender struct {
	// Name is the name of the contender in tables.
	Name string
	// Module is the path of the measured module; it is empty for code of this module.
	Module string
	// NoHooks describes what the contender has instead of hooks around a tool call; it is empty if it has hooks.
	NoHooks string
	// AtOnce is the maximum number of calls of a step that the contender runs concurrently. Zero means all.
	AtOnce int
	// Unordered is set if the contender adds results to the transcript in the order in which the calls ended, not in
	// call order. See [Script.AnyOrder].
	Unordered bool
	// Telemetry, if not nil, means that the cost of telemetry is measured.
	Telemetry *Telemetry
	// Prepare builds, off the clock, everything that a program would build once. The returned Run may be called many
	// times. To read the counts of its Outcome, make one call at a time.
	Prepare func(Job) (Run, error)
}

// Telemetry names the contenders with which a contender that records telemetry is compared.
type Telemetry struct {
	Without string `json:"without"` // the name of the same contender without telemetry
	ByHand  string `json:"byHand"`  // the name of a contender instrumented by hand to record the same; empty for such a contender itself
}

// Run does the job once.
type Run func(context.Context) (Outcome, error)

// Outcome is the result of one run. Creating it is cheap; reading it is not.
type Outcome struct {
	ModelCalls int
	ToolRuns   int
	HookCalls  int
	Sum        int // the sum of all tool results

	// Transcript yields the final transcript including the history: the messages of the last model call, then the
	// answer.
	Transcript iter.Seq[Message]
}

// ErrUnknownTool is the error of a contender's loop for a call of an unknown tool.
var ErrUnknownTool = errors.New("unknown tool")
