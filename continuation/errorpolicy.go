package continuation

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Handling says how an ErrorPolicy handles an error.
type Handling uint8

// The handlings.
const (
	// Stop ends the run as failed.
	Stop Handling = iota
	// Retry asks for another step, in which the model can react to the error. It does so up to ErrorPolicy.MaxRetries
	// times in a row.
	Retry
	// Ignore has no opinion. The run continues if the other criteria allow it.
	Ignore
)

var handlingNames = [...]string{"stop", "retry", "ignore"}

func (h Handling) String() string {
	if int(h) < len(handlingNames) {
		return handlingNames[h]
	}
	return fmt.Sprintf("handling(%d)", uint8(h))
}

// ErrorPolicy says how to handle a step in which something failed, by the kind of error. It is a criterion. Without
// one, agent.Base ends a run whose model call failed and leaves failed tools to the model. The zero ErrorPolicy ends
// the run in both cases.
//
// A step fails when its model call or the executor fails, and the failure has a kind. A step also fails when a tool ran
// and gave no answer. Its kind is agent.KindTool, unless the tool's error has another kind. A tool that exceeded its
// time limit thus counts under Timeout, like a model. If several tools failed, Stop takes precedence over Retry, and
// Retry over Ignore. Denied, invalid or mocked calls do not count as failures.
//
// A policy does not wait. Use processor.Retry to wait and repeat a model call inside the step. The policy handles the
// remaining failures. A policy that ignores model errors repeats the call immediately and endlessly: add a limit.
type ErrorPolicy struct {
	// The handling of each kind of error. RateLimit also applies to agent.KindOverloaded, and Model to all other
	// failures of a model service. Unknown applies to errors of any other kind.
	Tool      Handling
	Model     Handling
	RateLimit Handling
	Timeout   Handling
	Invalid   Handling
	Unknown   Handling
	// MaxRetries is the maximum number of failed steps in a row that are followed by another step. One more failed step
	// stops the run. Zero means that Retry works like Stop. A step without a failure, or with only ignored ones, resets
	// the count.
	MaxRetries int
}

// RetryToolErrors returns a policy that lets the model react to a failed tool, up to retries steps in a row, and stops
// on all other errors. A tool that exceeded its time limit counts as another error. To retry it as well, set Timeout.
func RetryToolErrors(retries int) ErrorPolicy {
	return ErrorPolicy{Tool: Retry, MaxRetries: retries}
}

var (
	_ agent.Criterion = ErrorPolicy{}
	_ judge           = ErrorPolicy{}
)

// of returns the handling for a kind of error.
func (p ErrorPolicy) of(kind agent.ErrorKind) Handling {
	switch kind {
	case agent.KindTool:
		return p.Tool
	case agent.KindModel, agent.KindContextLength, agent.KindAuth, agent.KindBadRequest, agent.KindBrokenStream:
		return p.Model
	case agent.KindRateLimit, agent.KindOverloaded:
		return p.RateLimit
	case agent.KindTimeout:
		return p.Timeout
	case agent.KindInvalid:
		return p.Invalid
	}
	return p.Unknown
}

func (p ErrorPolicy) String() string {
	return fmt.Sprintf("ErrorPolicy(tool: %s, model: %s, rate_limit: %s, timeout: %s, invalid: %s, unknown: %s, retries: %d)",
		p.Tool, p.Model, p.RateLimit, p.Timeout, p.Invalid, p.Unknown, p.MaxRetries)
}

// Evaluate judges the run's last step. It has no opinion when nothing failed. For Retry it returns RequestContinuation.
// For Ignore it reports the failure as handled. For Stop it returns Forbid with the reason agent.StopError. The details
// are errorType, consecutiveFailures, totalFailures, maxRetries, handling and toolName, which is empty when no tool
// failed.
func (p ErrorPolicy) Evaluate(_ context.Context, s agent.State) mo.Result[agent.Evaluation] {
	return evaluationOf(p.judgeStep(s), nil)
}

func (p ErrorPolicy) judge(_ context.Context, s agent.State) (*agent.Evaluation, error) {
	return p.judgeStep(s), nil
}

func (p ErrorPolicy) judgeStep(s agent.State) *agent.Evaluation {
	last := s.LastStep()
	f, failed := p.worst(last)
	if !failed {
		return nil
	}
	if f.handling == Ignore {
		return &agent.Evaluation{Handled: true}
	}
	inARow := p.inARow(s)
	if f.handling == Retry && inARow <= p.MaxRetries {
		return &agent.Evaluation{Verdict: agent.RequestContinuation, Handled: true}
	}
	stop := forbidBecause(agent.StopError, "continuation.ErrorPolicy", f.message(inARow), map[string]any{
		"errorType":           string(f.kind),
		"consecutiveFailures": inARow,
		"totalFailures":       s.RunFailures(),
		"maxRetries":          p.MaxRetries,
		"handling":            f.handling.String(),
		"toolName":            f.tool,
	})
	stop.Handled = true // the signal from Base for the same failure has fewer details
	return stop
}

// inARow counts the failed steps at the run's end, back to the last step that did not fail or was ignored. It reads no
// more steps than it counts.
func (p ErrorPolicy) inARow(s agent.State) int {
	n := 0
	for _, step := range s.RunStepsBackward() {
		if f, failed := p.worst(step); !failed || f.handling == Ignore {
			break
		}
		n++
	}
	return n
}
