package durable

import (
	"encoding/json"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Event is an observer's record of what happened in a run. It is written in the commit of its journal entry. A run does
// not need its events to continue.
type Event struct {
	Run agent.RunID `json:"run"`
	// Seq counts the run's events from one.
	Seq int64 `json:"seq"`
	// At is when it happened, by the writer's clock.
	At time.Time `json:"at"`
	// Name is the name of the event, such as "hook.blocked".
	Name string `json:"name"`
	// Data is the content of the event, opaque to the store.
	Data []byte `json:"data,omitempty"`
	// Hook, unless empty, is the hook whose call the event reports, and Took how long it took. Decision, unless empty, is what it has
	// decided. Also are decisions about which people were asked, or which they have overridden. A Commit adds all to Run.Decisions and to
	// the store's RuleCounts. Stores do not keep them with the event.
	Hook     string         `json:"-"`
	Took     time.Duration  `json:"-"`
	Decision Decision       `json:"-"`
	Also     []HookDecision `json:"-"`
}

// HookDecision is a decision of a hook.
type HookDecision struct {
	Decision Decision `json:"decision"`
	Hook     string   `json:"hook"`
}

// EventForm is the stored form of an event.
type EventForm struct {
	// Name is the name of the event, and Data its content.
	Name string
	Data []byte
	// Counter, unless empty, names a counter. The event is then only counted, and the run gets one EventCounts event
	// with each step.
	Counter string
	// Hook, Took, Decision and Also are the event's. Took of a counted event is counted, too.
	Hook     string
	Took     time.Duration
	Decision Decision
	Also     []HookDecision
}

// NewEvent returns the event of a form. A form that is only counted has an EventCounts event.
func NewEvent(form EventForm, at time.Time) Event {
	if form.Counter != "" {
		counts := map[string]int64{}
		form.count(counts)
		data, _ := json.Marshal(counts) //nolint:errchkjson // texts and numbers can always be written
		return Event{At: at, Name: EventCounts, Data: data}
	}
	return Event{At: at, Name: form.Name, Data: form.Data, Hook: form.Hook, Took: form.Took, Decision: form.Decision, Also: form.Also}
}

// count adds a form to counters.
func (f EventForm) count(counters map[string]int64) {
	counters[f.Counter]++
	for _, bound := range TookBounds[:tookPlace(f.Took)] {
		counters[overCounter(f.Counter, bound)]++
	}
}

// EventCounts is the name of events with counters. Their Data is a JSON object: the increase of each counter since the
// previous such event.
const EventCounts = "counts"

// SignalKind is the kind of a signal.
type SignalKind string

// The kinds of signals.
const (
	// SignalCancel requests the run's cancellation. A run that no process holds ends at once if its Attempts are zero,
	// with agent.StopUser as Reason; otherwise it becomes ready, so that a worker ends it. Text becomes the CancelReason
	// unless the run has one. An empty Text becomes "cancelled".
	SignalCancel SignalKind = "cancel"
	// SignalPause pauses the run: the process that holds it releases it after the current step, and a
	// run that no process holds waits. It has no effect on a paused run.
	SignalPause SignalKind = "pause"
	// SignalResume ends a pause. If no process holds the run, it becomes ready again, even if a wait's deadline has
	// passed or a Release had delayed it. It becomes pending if it has never started and its NotBefore is ahead, and
	// keeps waiting while nothing it waits for has happened. If the run is not paused, the signal only adds its Text,
	// as SignalContext does.
	SignalResume SignalKind = "resume"
	// SignalContext adds Text to the conversation of the run before its next step.
	SignalContext SignalKind = "context"
)

// CancelCause is why a run was cancelled.
type CancelCause string

// The causes of a cancellation.
const (
	// CancelRequest: a signal requested it.
	CancelRequest CancelCause = "request"
	// CancelDeadline: the run's Deadline passed.
	CancelDeadline CancelCause = "deadline"
	// CancelStartBy: the run's StartBy passed before a process took the run.
	CancelStartBy CancelCause = "start_by"
)

// Signal is a message to a run other than an answer to a question.
type Signal struct {
	Run agent.RunID `json:"run"`
	// Seq counts the run's signals from one. It is zero for pause and cancel.
	Seq  int64      `json:"seq,omitempty"`
	Kind SignalKind `json:"kind"`
	// Text is the reason, or the added context. An encrypted store encrypts added context.
	Text string `json:"text,omitempty"`
	// Cause is why the run is cancelled. Signals sets it; a sent SignalCancel always has CancelRequest.
	Cause CancelCause `json:"cause,omitempty"`
	// By is who sent the signal.
	By string `json:"by,omitempty"`
	// At is when the store recorded it. It is zero for pause and cancel.
	At time.Time `json:"at,omitzero"`
}
