package capability

import "github.com/grapnel-go/grapnel/agent"

// SubagentStarted, SubagentParked, SubagentResumed and SubagentCompleted are sent to the parent agent's observer. A
// sub-agent can be parked and resumed any number of times. Subagent.Started is zero in SubagentStarted.
type (
	SubagentStarted struct {
		Run      agent.Run // the run that starts the sub-agent
		CallID   string
		Subagent agent.Run
		MaxDepth int
	}
	SubagentParked struct {
		Run      agent.Run
		CallID   string
		Subagent agent.Run
	}
	SubagentResumed struct {
		Run      agent.Run
		CallID   string
		Subagent agent.Run
	}
	SubagentCompleted struct {
		Run      agent.Run
		CallID   string
		Subagent agent.Run
		Status   agent.Status
		Usage    agent.Usage
		Err      error
	}
)

// EventName returns "subagent.started".
func (SubagentStarted) EventName() string { return "subagent.started" }

// EventName returns "subagent.parked".
func (SubagentParked) EventName() string { return "subagent.parked" }

// EventName returns "subagent.resumed".
func (SubagentResumed) EventName() string { return "subagent.resumed" }

// EventName returns "subagent.completed".
func (SubagentCompleted) EventName() string { return "subagent.completed" }
