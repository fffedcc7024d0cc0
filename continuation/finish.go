package continuation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// FinishReason allows the run to stop when the model ended its last turn for one of the given reasons. The run then
// ends as done, for agent.StopFinishReason. With agent.Base this also ends a run whose model asked for tools, because
// AllowStop is stronger than AllowContinuation. The signal's details are finishReason and finishReasons, the list of
// all given reasons.
//
// FinishReason has no opinion with an empty list, on a step without a finish reason and on a failed model call.
func FinishReason(reasons ...agent.FinishReason) agent.Criterion {
	reasons = lo.Uniq(lo.Without(reasons, ""))
	names := lo.Map(reasons, func(r agent.FinishReason, _ int) string { return string(r) })
	return newStateCriterion("FinishReason("+strings.Join(names, ", ")+")", func(s agent.State) *agent.Evaluation {
		last := s.LastStep()
		if !slices.Contains(reasons, last.Reply().FinishReason) {
			return nil
		}
		finished := last.Reply().FinishReason
		return &agent.Evaluation{Verdict: agent.AllowStop, Signal: agent.Signal{
			Reason:  agent.StopFinishReason,
			Message: fmt.Sprintf("the model ended its turn for %q", finished),
			Source:  "continuation.FinishReason",
			Details: map[string]any{"finishReason": string(finished), "finishReasons": slices.Clone(names)},
		}}
	})
}

// ToolCallPresence allows the run to continue when the last reply asked for tools. Otherwise it allows the run to stop,
// with the signal from agent.StepRecord.EndSignal. It has no opinion before the first step and on a failed step.
//
// It is one part of agent.Base, for programs that combine criteria without Base. Such programs must provide the other
// parts: without an ErrorPolicy, a model that fails is asked again forever.
func ToolCallPresence() agent.Criterion {
	goOn := &agent.Evaluation{Verdict: agent.AllowContinuation}
	return newStateCriterion("ToolCallPresence()", func(s agent.State) *agent.Evaluation {
		last := s.LastStep()
		switch last.Kind() {
		case agent.StepToolExecution:
			return goOn
		case agent.StepFinalResponse:
			signal := last.EndSignal()
			signal.Source = "continuation.ToolCallPresence"
			return &agent.Evaluation{Verdict: agent.AllowStop, Signal: signal}
		}
		return nil
	})
}
