package processor

import (
	"errors"

	"github.com/grapnel-go/grapnel/agent"
)

// saved is the state that an error of the run of s holds: what was done before
// something failed. The error of a sub-agent's run holds nothing of this one.
func saved(s agent.State, err error) (agent.State, bool) {
	if failed, ok := errors.AsType[*agent.StepError](err); ok && failed.State.Run().ID == s.Run().ID {
		return failed.State, true
	}
	if failed, ok := errors.AsType[*agent.RunError](err); ok && failed.State.Run().ID == s.Run().ID {
		return failed.State, true
	}
	return agent.State{}, false
}
