package timeline

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// Verdict describes how a run ended and what ended it: "stopped: after 20 steps, by steps (steps_limit)".
func Verdict(s agent.State, err error) string {
	signal := s.StopSignal()
	message, by := OneLine(signal.Message), OneLine(signal.StoppedBy())
	switch s.Status() {
	case agent.StatusDone:
		if signal.Reason == agent.StopCompleted {
			return "done: the model gave its answer"
		}
		return fmt.Sprintf("%s: %s (%s)", lo.Ternary(HasAnswer(s), "done", "done without an answer"), cmp.Or(message, string(signal.Reason)), signal.Reason)
	case agent.StatusFailed:
		if failed, ok := errors.AsType[*agent.RunError](err); ok {
			err = failed.Err
		}
		if err != nil {
			message = OneLine(err.Error())
		}
		return "failed: " + message
	case agent.StatusDenied:
		return fmt.Sprintf("denied: the input was not accepted%s%s", byWhom(by), describeReason(message))
	case agent.StatusInterrupted:
		return "interrupted: " + cmp.Or(by, "a person") + " rejected a call" + describeReason(message)
	case agent.StatusParked:
		waiting := lo.FilterMap(s.Interventions(), func(i agent.Intervention, _ int) (string, bool) {
			return fmt.Sprintf("%s (%s)", OneLine(i.Call.Name), OneLine(i.CallID())), i.Answer() == nil
		})
		if !s.Waiting() {
			return fmt.Sprintf("suspended: after %s, to be resumed", Plural(s.RunStepCount(), "step"))
		}
		return "parked: it waits for approval of " + strings.Join(waiting, " and ")
	case agent.StatusCancelled:
		return fmt.Sprintf("cancelled: in step %d, %s", s.RunStepCount()+1, message)
	}
	return fmt.Sprintf("stopped: %s%s (%s)", cmp.Or(message, string(signal.Reason)), byWhom(by), signal.Reason)
}

// HasAnswer reports whether the final reply of a run that is done is not empty.
func HasAnswer(s agent.State) bool {
	return s.StopSignal().Details["emptyReply"] != true
}

func byWhom(by string) string {
	if by == "" {
		return ""
	}
	return ", by " + by
}
