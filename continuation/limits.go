package continuation

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Steps forbids to go on after limit steps of the run, for agent.StopStepsLimit.
// The signal's details are currentSteps and maxSteps. Zero or less lets no step
// happen.
func Steps(limit int) agent.Criterion {
	return newStateCriterion(fmt.Sprintf("Steps(%d)", limit), func(s agent.State) *agent.Evaluation {
		taken := s.RunStepCount()
		if taken < limit {
			return nil
		}
		return forbidBecause(agent.StopStepsLimit, "continuation.Steps",
			fmt.Sprintf("%d of at most %d steps taken", taken, limit),
			map[string]any{"currentSteps": taken, "maxSteps": limit})
	})
}

// Tokens forbids to go on once the run used limit tokens, input and output
// together, for agent.StopTokenLimit. The step that reaches the limit is the last
// one, so that a run may use more by what one model call takes. The signal's
// details are totalTokens, inputTokens, outputTokens and maxTokens. Zero or less
// lets no step happen. A run is stopped after a reply that came without usage,
// neither tokens nor a cost, or with one that is less than nothing, since it is unknown
// then what was used.
func Tokens(limit int64) agent.Criterion {
	return newStateCriterion(fmt.Sprintf("Tokens(%d)", limit), func(s agent.State) *agent.Evaluation {
		used := s.RunUsage()
		switch {
		case lacksUsage(s):
			return forbidBecause(agent.StopTokenLimit, "continuation.Tokens", fmt.Sprintf(
				"it is not known how many tokens the run used, so that the limit of %d cannot be kept: the last reply came without usage; "+
					"have the driver set Usage, or do without the limit of tokens", limit),
				map[string]any{"maxTokens": limit})
		case hasBadUsage(s):
			return forbidBecause(agent.StopTokenLimit, "continuation.Tokens", fmt.Sprintf(
				"it is not known how many tokens the run used, so that the limit of %d cannot be kept: a reply came with a usage of "+
					"less than nothing, or of more than can be counted", limit), map[string]any{"maxTokens": limit})
		case used.Tokens() < limit:
			return nil
		}
		return forbidBecause(agent.StopTokenLimit, "continuation.Tokens",
			fmt.Sprintf("%d of at most %d tokens used", used.Tokens(), limit),
			map[string]any{
				"totalTokens": used.Tokens(), "inputTokens": used.InputTokens, "outputTokens": used.OutputTokens,
				"maxTokens": limit,
			})
	})
}

// lacksUsage reports whether the last reply of the run came without usage. Each is
// the last one once.
func lacksUsage(s agent.State) bool {
	last, ok := s.LastStep().Get()
	used := last.Usage()
	return ok && last.Message().Role() == agent.RoleAssistant && used.Tokens() == 0 && used.Cost.IsAbsent()
}

// hasBadUsage reports whether a number of what the run used cannot be.
func hasBadUsage(s agent.State) bool {
	last, _ := s.LastStep().Get()
	for _, u := range []agent.Usage{last.Usage(), s.RunUsage()} {
		if u.InputTokens < 0 || u.OutputTokens < 0 || u.Tokens() < 0 || u.Cost.OrEmpty() < 0 {
			return true
		}
	}
	return false
}

// Cost forbids to go on once the run cost limit US dollars, for
// agent.StopCostLimit. The step that reaches the limit is the last one, so that a
// run may cost more by what one model call takes. A run whose cost is unknown
// is stopped after its first step, and the message says what is missing; so is one after
// a reply whose usage is less than nothing. The
// signal's details are maxCost and, where it is known, currentCost. Zero or less
// lets no step happen.
func Cost(limit float64) agent.Criterion {
	return newStateCriterion(fmt.Sprintf("Cost(%g)", limit), func(s agent.State) *agent.Evaluation {
		spent, known := s.RunUsage().Cost.Get()
		switch {
		case !known:
			return forbidBecause(agent.StopCostLimit, "continuation.Cost", fmt.Sprintf(
				"the cost of the run is unknown, so that the limit of %s cannot be kept: %s came without a cost; "+
					"have the driver set Usage.Cost, or do without the cost limit", formatDollars(limit), firstWithoutCost(s)),
				map[string]any{"maxCost": limit})
		case hasBadUsage(s):
			return forbidBecause(agent.StopCostLimit, "continuation.Cost", fmt.Sprintf(
				"the cost of the run is unknown, so that the limit of %s cannot be kept: a reply came with a usage of less than nothing, "+
					"or of more than can be counted", formatDollars(limit)), map[string]any{"maxCost": limit})
		case spent < limit: // so that no comparison with NaN lets the run go on
			return nil
		}
		return forbidBecause(agent.StopCostLimit, "continuation.Cost",
			fmt.Sprintf("%s of at most %s spent", formatDollars(spent), formatDollars(limit)),
			map[string]any{"currentCost": spent, "maxCost": limit})
	})
}

// formatDollars writes an amount without the dust of floating point.
func formatDollars(amount float64) string {
	const dust = 1e6
	return "$" + strconv.FormatFloat(math.Round(amount*dust)/dust, 'f', -1, 64)
}

// firstWithoutCost names the first reply of the run that came without a cost.
func firstWithoutCost(s agent.State) string {
	for i, step := range s.RunSteps() {
		if step.Message().Role() == "" || step.Usage().Cost.IsPresent() {
			continue
		}
		if model := step.Reply().Model; model != "" {
			return fmt.Sprintf("the reply of model %q in step %d", model, i)
		}
		return fmt.Sprintf("the model's reply in step %d", i)
	}
	return "a model's reply"
}

// Time forbids to go on when more than limit has passed since the run started,
// for agent.StopTimeLimit. The signal's details are elapsedSeconds and
// maxSeconds. It has no opinion on a state that no run has started. A step under
// way is not interrupted: see processor.Deadline.
func Time(limit time.Duration) agent.Criterion {
	return newStateCriterion(fmt.Sprintf("Time(%s)", limit), func(s agent.State) *agent.Evaluation {
		started := s.Run().Started
		if started.IsZero() {
			return nil
		}
		passed := time.Since(started)
		if passed <= limit {
			return nil
		}
		return forbidBecause(agent.StopTimeLimit, "continuation.Time",
			fmt.Sprintf("%s of at most %s passed", passed.Round(time.Millisecond), limit),
			map[string]any{"elapsedSeconds": passed.Seconds(), "maxSeconds": limit.Seconds()})
	})
}
