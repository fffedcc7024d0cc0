package continuation

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Handling is what an ErrorPolicy does about an error.
type Handling uint8

// The handlings.
const (
	// Stop ends the run as failed.
	Stop Handling = iota
	// Retry asks for another step, in which the model can do something about the
	// error: up to ErrorPolicy.MaxRetries in a row.
	Retry
	// Ignore has no opinion, and lets the run go on where the other criteria do.
	Ignore
)

var handlingNames = [...]string{"stop", "retry", "ignore"}

func (h Handling) String() string {
	if int(h) < len(handlingNames) {
		return handlingNames[h]
	}
	return fmt.Sprintf("handling(%d)", uint8(h))
}

// ErrorPolicy says what is to be done after a step in which something failed, by
// the kind of the error. It is a criterion. Without one, agent.Base ends a run
// whose model call failed and leaves failed tools to the model; the zero
// ErrorPolicy ends the run on either.
//
// A step fails with its model call or with what broke in the executor, and its
// failure says of what kind it is. It also fails with a tool that ran and gave no
// answer. That is of kind agent.KindTool, unless the tool's error is of a kind of
// its own: a tool that took too long counts under Timeout, as a model does. When
// several tools failed, stopping goes before retrying and that before ignoring.
// Calls that were denied, invalid or answered by a mock did not fail.
//
// A policy does not wait. Before a retry of a model call that is the job of
// processor.Retry, inside of the step; what still fails after that comes here. To
// ignore the errors of a model is to ask it again at once and without end: put a
// limit beside it.
type ErrorPolicy struct {
	// What to do about each kind of error. RateLimit is also for agent.KindOverloaded,
	// and Model for everything else that a model service may do wrong. An error whose
	// kind is none of these counts as Unknown.
	Tool      Handling
	Model     Handling
	RateLimit Handling
	Timeout   Handling
	Invalid   Handling
	Unknown   Handling
	// MaxRetries is how many failed steps in a row are answered with another step.
	// One more stops the run. Zero means none: then Retry is Stop. A step without a
	// failure, or with only ignored ones, begins a new row.
	MaxRetries int
}

// RetryToolErrors returns the policy that lets the model do something about a failed
// tool, up to retries steps in a row, and stops on all other errors. A tool that took
// too long is one of the others; set Timeout, too, where it should not be.
func RetryToolErrors(retries int) ErrorPolicy {
	return ErrorPolicy{Tool: Retry, MaxRetries: retries}
}

var (
	_ agent.Criterion = ErrorPolicy{}
	_ judge           = ErrorPolicy{}
)

// of returns what the policy does about errors of a kind.
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

// Evaluate judges the last step of the run. It has no opinion when nothing
// failed. To retry is to request to go on, to ignore is to say that the failure
// is dealt with. To stop is to forbid to go on, for agent.StopError, with the
// details errorType, consecutiveFailures, totalFailures, maxRetries, handling and
// toolName, which is empty when no tool failed.
func (p ErrorPolicy) Evaluate(_ context.Context, s agent.State) mo.Result[agent.Evaluation] {
	return evaluationOf(p.judgeStep(s), nil)
}

func (p ErrorPolicy) judge(_ context.Context, s agent.State) (*agent.Evaluation, error) {
	return p.judgeStep(s), nil
}

func (p ErrorPolicy) judgeStep(s agent.State) *agent.Evaluation {
	last, _ := s.LastStep().Get()
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
	stop.Handled = true // what Base has to say of the same failure has fewer details
	return stop
}

// inARow counts the failed steps at the end of the run, back to the first that
// did not fail or was ignored. It looks at no more than it counts.
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
