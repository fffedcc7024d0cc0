package processor

import (
	"errors"

	"github.com/grapnel-go/grapnel/agent"
)

// runError finds in err the error of the run of s. That of another run, a
// sub-agent's, is an error like any other.
func runError(s agent.State, err error) (*agent.RunError, bool) {
	failed, ok := errors.AsType[*agent.RunError](err)
	return failed, ok && failed.State.Run().ID == s.Run().ID
}

// stepError finds in err the failed step of the run of s, unless a processor made it
// the end of the run.
func stepError(s agent.State, err error) (*agent.StepError, bool) {
	if _, over := runError(s, err); over {
		return nil, false
	}
	failed, ok := errors.AsType[*agent.StepError](err)
	return failed, ok && failed.State.Run().ID == s.Run().ID
}

// keptState returns the state that an error of the run of s holds: what was done before
// something failed.
func keptState(s agent.State, err error) agent.State {
	if failed, ok := runError(s, err); ok {
		return failed.State
	}
	if failed, ok := stepError(s, err); ok {
		return failed.State
	}
	return s
}
