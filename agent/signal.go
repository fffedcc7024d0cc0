package agent

import (
	"fmt"

	"github.com/grapnel-go/grapnel/internal/reserved"
)

// Status says whether a run has begun and how it ended.
type Status string

// The run statuses. All except StatusRunning, StatusParked and the empty status are terminal.
const (
	// StatusNew: no run has used the state yet.
	StatusNew Status = ""
	// StatusRunning: the run has begun and has not ended.
	StatusRunning Status = "running"
	// StatusParked: the run waits for a person's answer or to be resumed, and none of its code is executing: see
	// Agent.Resume.
	StatusParked Status = "parked"
	// StatusDone: the model gave its final answer.
	StatusDone Status = "done"
	// StatusStopped: a hook, a limit or the caller stopped the run.
	StatusStopped Status = "stopped"
	// StatusFailed: an error ended the run.
	StatusFailed Status = "failed"
	// StatusDenied: a hook did not accept the input.
	StatusDenied Status = "denied"
	// StatusCancelled: the run's context was cancelled.
	StatusCancelled Status = "cancelled"
	// StatusInterrupted: a person was asked and rejected a call.
	StatusInterrupted Status = "interrupted"
)

// Terminal reports whether a run with this status has ended.
func (s Status) Terminal() bool {
	return s != StatusNew && s != StatusRunning && s != StatusParked
}

// StopReason is a one-word code for why a run ended.
type StopReason string

// This module's reasons. Programs can use other reasons, which rank with StopByHook.
//
// The first four end a run as done. StopCompleted is a final answer. StopFinishReason is a final answer that the model
// did not end by itself. Its detail finishReason is a FinishReason, such as "length" or "content_filter".
// StopEmptyReply is an empty final reply. StopContinuations ends a run after more requests to continue than allowed.
// Its details are continuations and maxContinuations. The detail emptyReply is true for every reason if the reply is
// empty.
const (
	StopCompleted     StopReason = "completed"
	StopFinishReason  StopReason = "finish_reason"
	StopEmptyReply    StopReason = "empty_reply"
	StopContinuations StopReason = "continuations_exhausted"
	StopRequested     StopReason = "stop_requested"
	StopByHook        StopReason = "hook"
	StopRetryLimit    StopReason = "retry_limit"
	StopStepsLimit    StopReason = "steps_limit"
	StopTimeLimit     StopReason = "time_limit"
	StopTokenLimit    StopReason = "token_limit"
	StopCostLimit     StopReason = "cost_limit"
	StopDenied        StopReason = "denied"
	StopRejected      StopReason = "rejected"
	StopError         StopReason = "error"
	StopUser          StopReason = "user_requested"
)

var stopRank = map[StopReason]int{
	StopCompleted: 1, StopFinishReason: 2, StopEmptyReply: 3, StopContinuations: 4, StopRequested: 5,
	StopRetryLimit: 7, StopStepsLimit: 8, StopTimeLimit: 9, StopTokenLimit: 10, StopCostLimit: 11,
	StopDenied: 12, StopRejected: 13, StopError: 14, StopUser: 15,
}

// rank orders reasons. The reason with the highest rank determines how the run ends.
func (r StopReason) rank() int {
	if n, ok := stopRank[r]; ok {
		return n
	}
	if r == "" {
		return 0
	}
	return stopRank[StopRequested] + 1 // StopByHook and unknown reasons
}

// Soft reports whether the run ends by itself for this reason, so that a criterion can still ask for another step.
func (r StopReason) Soft() bool { return r != "" && r.rank() <= stopRank[StopRequested] }

// Signal requests a run's end, with the reason and the source. It is a plain value. Details must not be modified
// afterwards.
type Signal struct {
	Reason StopReason `json:"reason"`
	// Message is a sentence for a person.
	Message string `json:"message,omitempty"`
	// Source names the hook, criterion or person that stopped the run.
	Source string `json:"source,omitempty"`
	// Details are values such as currentSteps and maxSteps: see the reasons. Numbers are of type json.Number in a state
	// that was read from JSON.
	Details map[string]any `json:"details,omitempty"`
}

// StoppedBy returns the hook or person that stopped the run. It is empty for the framework's own limits and criteria, such
// as continuation.Steps, because Message says all about them.
func (s Signal) StoppedBy() string {
	if reserved.Holds(s.Source + ".") {
		return ""
	}
	return s.Source
}

// A SignalError is a stop as an error. It can be the cause of a cancelled context, or the error of a driver, an
// executor, a processor or a criterion. The signal then determines how the run ends: the run is not cancelled and has
// not failed.
type SignalError struct{ Signal Signal }

func (e *SignalError) Error() string {
	return fmt.Sprintf("%s: %s (by %s)", e.Signal.Reason, e.Signal.Message, e.Signal.Source)
}
