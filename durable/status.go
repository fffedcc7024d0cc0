package durable

import "github.com/grapnel-go/grapnel/agent"

// Status says what a stored run is doing, or how it ended. It is the same for every kind of run.
//
//	pending ─▶ ready ─▶ running ─▶ completed | failed | stopped | cancelled
//	             ▲         │ ▲ │
//	             │         ▼ └─┘ a lease changes hands
//	             └────── waiting
//
// A waiting run becomes ready, never running, when what it waits for has happened. A running run
// becomes ready when its lease is released or has expired.
type Status string

// The statuses of a run. The last four are ends.
const (
	// StatusPending: the run must not start yet: see Job.NotBefore.
	StatusPending Status = "pending"
	// StatusReady: a worker may claim the run.
	StatusReady Status = "ready"
	// StatusRunning: a process holds the lease of the run and executes it.
	StatusRunning Status = "running"
	// StatusWaiting: the run has open questions, or is paused. No process executes it.
	StatusWaiting Status = "waiting"
	// StatusCompleted: the run has its result.
	StatusCompleted Status = "completed"
	// StatusFailed: an error ended the run, or a hook did not accept it: see Run.Blocked.
	StatusFailed Status = "failed"
	// StatusStopped: a hook, a limit, a person or the program ended the run.
	StatusStopped Status = "stopped"
	// StatusCancelled: the run was cancelled.
	StatusCancelled Status = "cancelled"
)

// Statuses are all statuses, in the order in which a run can have them.
var Statuses = []Status{
	StatusPending, StatusReady, StatusRunning, StatusWaiting, StatusCompleted, StatusFailed, StatusStopped, StatusCancelled,
}

// Ended reports whether a run with this status has ended. It returns false for the empty status.
func (s Status) Ended() bool {
	switch s {
	case StatusCompleted, StatusFailed, StatusStopped, StatusCancelled:
		return true
	}
	return false
}

// statusOf returns the status of a stored run whose agent has the given status, and whether a hook
// has blocked it. An empty status is StatusReady.
func statusOf(s agent.Status) (status Status, blocked bool) {
	switch s {
	case agent.StatusNew:
		return StatusReady, false
	case agent.StatusRunning:
		return StatusRunning, false
	case agent.StatusParked:
		return StatusWaiting, false
	case agent.StatusDone:
		return StatusCompleted, false
	case agent.StatusStopped, agent.StatusInterrupted:
		return StatusStopped, false
	case agent.StatusDenied:
		return StatusFailed, true
	case agent.StatusCancelled:
		return StatusCancelled, false
	}
	return StatusFailed, false
}

// AgentStatus returns the status that the agent of the run ended with, or the status of its state while
// it has not ended. It is the inverse of statusOf.
func (r Run) AgentStatus() agent.Status {
	switch r.Status {
	case StatusPending, StatusReady:
		if r.Attempts == 0 {
			return agent.StatusNew
		}
		return agent.StatusRunning
	case StatusRunning:
		return agent.StatusRunning
	case StatusWaiting:
		return agent.StatusParked
	case StatusCompleted:
		return agent.StatusDone
	case StatusStopped:
		if r.Reason == agent.StopRejected {
			return agent.StatusInterrupted
		}
		return agent.StatusStopped
	case StatusCancelled:
		return agent.StatusCancelled
	}
	if r.Blocked {
		return agent.StatusDenied
	}
	return agent.StatusFailed
}
