package processor

import (
	"errors"

	"github.com/grapnel-go/grapnel/agent"
)

// runError finds in err the RunError of s's own run. The error of another run, such as a sub-agent's, is treated like
// any other error.
func runError(s agent.State, err error) (*agent.RunError, bool) {
	failed, ok := errors.AsType[*agent.RunError](err)
	return failed, ok && failed.State.Run().ID == s.Run().ID
}

// stepError finds in err the failed step of s's own run, unless a processor wrapped it in a RunError.
func stepError(s agent.State, err error) (*agent.StepError, bool) {
	if _, over := runError(s, err); over {
		return nil, false
	}
	failed, ok := errors.AsType[*agent.StepError](err)
	return failed, ok && failed.State.Run().ID == s.Run().ID
}

// keptState returns the state that err holds for s's run. It includes the work before the failure.
func keptState(s agent.State, err error) agent.State {
	if failed, ok := runError(s, err); ok {
		return failed.State
	}
	if failed, ok := stepError(s, err); ok {
		return failed.State
	}
	return s
}
