package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// entryPosition is the kind of the journal entries with a session's position. The newest one counts.
const entryPosition durable.EntryKind = "position"

// phase is the engine's next task.
type phase string

// The phases.
const (
	// phaseOpen fires the session's start.
	phaseOpen phase = "open"
	// phaseStart fires an iteration's start, and submits its run.
	phaseStart phase = "start"
	// phaseRun waits for an iteration's run.
	phaseRun phase = "run"
	// phaseParallel waits for the stages in a parallel block.
	phaseParallel phase = "parallel"
	// phaseAfter fires an iteration's end, and decides what follows.
	phaseAfter phase = "after"
	// phaseEnd fires the session's end, and ends its run.
	phaseEnd phase = "end"
)

// position is everything that the engine needs to continue a session. It is small, because each transition records it.
type position struct {
	cursor
	stageHistory
	usage
	children

	// Began is when the session began.
	Began time.Time `json:"began"`
	// AtMaximum is set when a stage has ended because it reached a maximum.
	AtMaximum bool `json:"at_maximum,omitempty"`
	// Context is text that hooks added for the next iteration.
	Context []string `json:"context,omitempty"`
	// Open are firings whose detached actions had not ended when the position was recorded.
	Open []openFiring `json:"open,omitempty"`
	// Trace is the session's first span: see labelTrace.
	Trace string `json:"trace,omitempty"`
	// End is how the session ends; nil before.
	End *ending `json:"end,omitempty"`
}

// cursor is the session's next task.
type cursor struct {
	Phase phase `json:"phase"`
	// Stage counts from zero, Iteration from one.
	Stage     int `json:"stage"`
	Iteration int `json:"iteration"`
	// Round counts how often stages have begun again.
	Round int `json:"round,omitempty"`
}

// stageHistory is what has happened in the current stage.
type stageHistory struct {
	// Restarts counts how often the stage has begun again.
	Restarts int `json:"restarts,omitempty"`
	// Before is the session's usage when the stage began.
	Before usedBefore `json:"before,omitzero"`
	// Failed are the iterations that have failed.
	Failed []int `json:"failed,omitempty"`
	// Confirmed counts the decisions in a row to stop.
	Confirmed int `json:"confirmed,omitempty"`
	// Error is why the last iteration has failed; nil if it has not. Cut is set when it failed because the stage had reached a maximum.
	Error *string `json:"error,omitempty"`
	Cut   bool    `json:"cut,omitempty"`
	// Decision is the last iteration's decision, Why its reason.
	Decision string `json:"decision,omitempty"`
	Why      string `json:"why,omitempty"`
	// Changed are the files that the last iteration changed.
	Changed []string `json:"changed,omitempty"`
	// StageTimeOver says that the stage's time was over when the last iteration ended.
	StageTimeOver bool `json:"stage_time_over,omitempty"`
}

// usage is what the session has used of its limits. All of it includes the waits until Counted.
type usage struct {
	// Spent is the usage by iterations and awaited pipelines, Waited the time for which the session has waited for gates.
	Spent   spending      `json:"spent,omitzero"`
	Waited  time.Duration `json:"waited,omitempty"`
	Counted time.Time     `json:"counted,omitzero"`
	// TimeOver says that the session's time was over when the last iteration ended.
	TimeOver bool `json:"time_over,omitempty"`
}

// children are the runs that the session waits for.
type children struct {
	// Child is the iteration's run.
	Child agent.RunID `json:"child,omitempty"`
	// Children are the runs for the stages in a parallel block. Waiting are the runs that have not ended.
	Children []agent.RunID `json:"children,omitempty"`
	Waiting  []agent.RunID `json:"waiting,omitempty"`
}

// usedBefore is a session's usage at one time.
type usedBefore struct {
	Cost   float64       `json:"cost,omitempty"`
	Waited time.Duration `json:"waited,omitempty"`
	At     time.Time     `json:"at"`
}

// firingAt identifies a firing.
type firingAt struct {
	Point     hooks.PointName `json:"point"`
	Stage     int             `json:"stage"`
	Iteration int             `json:"iteration,omitempty"`
	Round     int             `json:"round,omitempty"` // as in position
}

// openFiring is a firing with detached actions that have not ended.
type openFiring struct {
	firingAt

	// After is the number of an entry before all of the firing's records.
	After int64 `json:"after,omitempty"`
}

// spending is usage by a session's agents.
type spending struct {
	Steps  int     `json:"steps,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	Cost   float64 `json:"cost,omitempty"`
}

// Reason says why a session has ended.
type Reason string

// The reasons.
const (
	// Completed: all stages are complete.
	Completed Reason = "completed"
	// MaxIterations: all stages are complete, and at least one had reached its maximum iterations, cost or time.
	MaxIterations Reason = "max_iterations"
	// Aborted: a hook has ended the session.
	Aborted Reason = "aborted"
	// Failed: an iteration has failed, or the engine could not continue.
	Failed Reason = "failed"
	// LimitReached: the session has used up one of its limits.
	LimitReached Reason = "limit"
	// Cancelled: the session was cancelled. No hook is called.
	Cancelled Reason = "cancelled"
)

// ending is how a session ends.
type ending struct {
	Reason Reason `json:"reason"`
	// Text says more; empty for a completed session.
	Text string `json:"text,omitempty"`
}

// status returns the run's status and its reason.
func (e ending) status() (durable.Status, agent.StopReason) {
	switch e.Reason {
	case Completed, MaxIterations:
		return durable.StatusCompleted, agent.StopCompleted
	case Aborted:
		return durable.StatusStopped, agent.StopByHook
	case Cancelled:
		return durable.StatusCancelled, agent.StopUser
	case LimitReached:
		return durable.StatusStopped, agent.StopTimeLimit
	case Failed:
	}
	return durable.StatusFailed, agent.StopError
}

// entry returns the position's journal entry.
func (p position) entry() (durable.Entry, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return durable.Entry{}, fmt.Errorf("recording the position: %w", err)
	}
	return durable.Entry{Kind: entryPosition, Data: data}, nil
}

// lastTransition returns the number of the entry with which the session came to its position. A session that waits for a gate
// records the same position again.
func lastTransition(entries []durable.Entry) (seq int64) {
	var newest *cursor
	for _, e := range slices.Backward(entries) {
		if e.Kind != entryPosition {
			continue
		}
		var at cursor
		if json.Unmarshal(e.Data, &at) != nil || newest != nil && at != *newest {
			break
		}
		newest, seq = &at, e.Seq
	}
	return seq
}

// lastPosition returns the newest position in a journal; ok is false when there is none.
func lastPosition(entries []durable.Entry) (p position, ok bool, err error) {
	for _, e := range slices.Backward(entries) {
		if e.Kind == entryPosition {
			if err := json.Unmarshal(e.Data, &p); err != nil {
				return p, true, &brokenError{fmt.Errorf("reading the position in entry %d: %w", e.Seq, err)}
			}
			return p, true, nil
		}
	}
	return position{cursor: cursor{Phase: phaseOpen}}, false, nil
}
