package durable

import (
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Event is something that observers of a run are told. Events are written in the commit of the journal
// entry that they belong to, and nothing is lost for a run that continues without them.
type Event struct {
	Run agent.RunID `json:"run"`
	// Seq counts the events of a run from one.
	Seq int64 `json:"seq"`
	// At is when it happened, by the clock of the writer.
	At time.Time `json:"at"`
	// Name is the name of the event, such as "hook.blocked".
	Name string `json:"name"`
	// Data is the content of the event, opaque to the store.
	Data []byte `json:"data,omitempty"`
}

// EventForm is the stored form of an event.
type EventForm struct {
	// Name is the name of the event, and Data its content.
	Name string
	Data []byte
	// Counter, unless empty, says that the event is only counted, under this name: with each step, the
	// events of the run get one EventCounts.
	Counter string
}

// EventCounts is the name of the events with the numbers of events that are only counted. Their Data is a
// JSON object from the counters to the numbers since the previous such event.
const EventCounts = "counts"

// SignalKind is the kind of a signal.
type SignalKind string

// The kinds of signals.
const (
	// SignalCancel requests the end of the run as cancelled. A run that no process holds ends at once if it
	// has never started (its Attempts are zero), with agent.StopUser as Reason; otherwise it becomes ready,
	// so that a worker ends it. Text is the CancelReason: the first one stays, and an empty one is stored
	// as "cancelled".
	SignalCancel SignalKind = "cancel"
	// SignalPause pauses the run: the process that holds it releases it after the current step, and a
	// run that no process holds waits. It has no effect on a paused run.
	SignalPause SignalKind = "pause"
	// SignalResume ends a pause. A run that no process holds is ready again, also when a deadline of its waits has passed or a
	// Release had delayed it; it is pending if it has never started and its NotBefore is ahead, and it waits on while nothing has
	// happened. The signal has no effect on a run that is not paused, except that a Text is added as with SignalContext.
	SignalResume SignalKind = "resume"
	// SignalContext adds Text to the conversation of the run before its next step.
	SignalContext SignalKind = "context"
)

// Signal is something said to a run that is not an answer to a question.
type Signal struct {
	Run agent.RunID `json:"run"`
	// Seq counts the signals of a run from one. It is zero for pause and cancel.
	Seq  int64      `json:"seq,omitempty"`
	Kind SignalKind `json:"kind"`
	// Text is the reason, or the added context. An encrypted store encrypts added context.
	Text string `json:"text,omitempty"`
	// By is who sent the signal.
	By string `json:"by,omitempty"`
	// At is when the store recorded it. It is zero for pause and cancel.
	At time.Time `json:"at,omitzero"`
}
