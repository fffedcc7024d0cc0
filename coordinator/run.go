package coordinator

import (
	"cmp"
	"encoding/json"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// StatusOf returns the status of a run as the API has it.
func StatusOf(r durable.Run) wire.Status {
	switch r.Status {
	case durable.StatusCompleted:
		return wire.Completed
	case durable.StatusFailed:
		return wire.Failed
	case durable.StatusStopped:
		return wire.Stopped
	case durable.StatusCancelled:
		if r.CancelCause == durable.CancelStartBy {
			return wire.Failed
		}
		return wire.Stopped
	}
	if r.Phase == KindHooks {
		return wire.Hooking
	}
	switch r.Status {
	case durable.StatusRunning:
		return wire.Running
	case durable.StatusWaiting:
		return wire.Waiting
	}
	return wire.Pending
}

// timedOut reports whether a run has ended because its time was over, whatever its runner has reported then.
func timedOut(r durable.Run) bool {
	late := r.Status != durable.StatusCompleted && !r.Deadline.IsZero() && !r.Updated.Before(r.Deadline)
	return r.Reason == agent.StopTimeLimit || r.CancelCause == durable.CancelStartBy || late && r.CancelCause != durable.CancelRequest
}

// failureOf returns why a run has failed or was stopped.
func failureOf(r durable.Run, result durable.Result) string {
	return cmp.Or(result.Error, r.CancelReason, string(r.Reason))
}

// resultMembers returns the result of a run as hooks and the API have it: as text or as JSON.
func resultMembers(b *wire.Blueprint, r durable.Result) (text string, data json.RawMessage) {
	switch {
	case len(r.Data) > 0:
		return "", r.Data
	case b.Type == wire.Autonomous && !empty(b.OutputSchema):
		if compact, err := strictjson.Compact(r.Text); err == nil {
			return "", json.RawMessage(compact)
		}
	}
	return r.Text, nil
}
