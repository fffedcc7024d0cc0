package coordinator

import (
	"cmp"
	"encoding/json"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Status is the status of a run, as the API has it.
type Status string

// The statuses of a run. The last three are ends.
const (
	// Pending: the run waits for a runner, or for its time.
	Pending Status = "pending"
	// Hooking: hooks decide whether and with which parameters the run starts.
	Hooking Status = "hooking"
	// Running: a runner executes the run.
	Running Status = "running"
	// Waiting: the run waits for people or other runs, or is paused. No runner has it.
	Waiting Status = "waiting"
	// Completed: the run has its result.
	Completed Status = "completed"
	// Failed: the run has an error, or a hook has blocked it.
	Failed Status = "failed"
	// Stopped: a limit, a person or a program has ended the run.
	Stopped Status = "stopped"
)

// Statuses are all statuses of the API.
var Statuses = []Status{Pending, Hooking, Running, Waiting, Completed, Failed, Stopped}

// apiStatus returns the status of a run as the API has it.
func apiStatus(r durable.Run) Status {
	switch r.Status {
	case durable.StatusCompleted:
		return Completed
	case durable.StatusFailed:
		return Failed
	case durable.StatusStopped:
		return Stopped
	case durable.StatusCancelled:
		if missedStart(r) {
			return Failed
		}
		return Stopped
	}
	if r.Phase == KindHooks {
		return Hooking
	}
	switch r.Status {
	case durable.StatusRunning:
		return Running
	case durable.StatusWaiting:
		return Waiting
	}
	return Pending
}

// missedStart reports whether a run was cancelled because nothing took it in time.
func missedStart(r durable.Run) bool {
	return r.Status == durable.StatusCancelled && r.Attempts == 0 && !r.StartBy.IsZero() && !r.Updated.Before(r.StartBy)
}

// deadlineReason is the CancelReason of a run whose deadline has passed, as stores set it.
const deadlineReason = "the deadline has passed"

// timedOut reports whether a run has ended because its time was over, whatever its runner has reported then.
func timedOut(r durable.Run) bool {
	late := r.Status != durable.StatusCompleted && !r.Deadline.IsZero() && !r.Updated.Before(r.Deadline) &&
		(r.CancelReason == "" || r.CancelReason == deadlineReason)
	return r.Reason == agent.StopTimeLimit || late || missedStart(r)
}

// failureOf returns why a run has failed or was stopped.
func failureOf(r durable.Run, result durable.Result) string {
	return cmp.Or(result.Error, r.CancelReason, string(r.Reason))
}

// resultMembers returns the result of a run as hooks and the API have it: as text or as JSON.
func resultMembers(b *Blueprint, r durable.Result) (text string, data json.RawMessage) {
	switch {
	case len(r.Data) > 0:
		return "", r.Data
	case b.Type == Autonomous && !empty(b.OutputSchema):
		if compact, err := strictjson.Compact(r.Text); err == nil {
			return "", json.RawMessage(compact)
		}
	}
	return r.Text, nil
}
