package continuation

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// limit is a criterion that holds one limit over the run and the runs that it starts.
type limit struct {
	name string
	most agent.Limits
}

var (
	_ agent.Criterion = (*limit)(nil)
	_ judge           = (*limit)(nil)
)

// newLimit returns the criterion of the name, which is written with its limit behind it.
func newLimit(name string, value any, most agent.Limits) agent.Criterion {
	return &limit{fmt.Sprintf("%s(%v)", name, value), most}
}

func (l *limit) String() string { return l.name }

// Limits returns the limit, and that the criterion has no other opinion.
func (l *limit) Limits() (limits agent.Limits, only bool) { return l.most, true }

func (l *limit) Evaluate(ctx context.Context, s agent.State) mo.Result[agent.Evaluation] {
	return evaluationOf(l.judge(ctx, s))
}

func (l *limit) judge(_ context.Context, s agent.State) (*agent.Evaluation, error) {
	over, ok := l.most.StopFor(s).Get()
	if !ok {
		return nil, nil //nolint:nilnil // no opinion
	}
	name, _, _ := strings.Cut(l.name, "(")
	over.Source = "continuation." + name
	return &agent.Evaluation{Verdict: agent.Forbid, Signal: over}, nil
}

// Steps forbids to go on after limit steps of the run and of the runs that it started, for
// agent.StopStepsLimit: see agent.Spending. The runs that it started are stopped, too. The
// signal's details are currentSteps and maxSteps. Zero or less lets no step happen.
func Steps(limit int) agent.Criterion {
	return newLimit("Steps", limit, agent.Limits{Steps: orNothing(limit)})
}

// Tokens forbids to go on once the run and the runs that it started used limit tokens, input
// and output together, for agent.StopTokenLimit: see agent.Spending. The runs that it started
// are stopped, too. The step that reaches the limit is the last one, so that a run may use more
// by what one model call takes; of runs that run side by side, each by one. The signal's
// details are totalTokens, inputTokens, outputTokens and maxTokens. Zero or less
// lets no step happen. A run is stopped after a reply that came without usage,
// neither tokens nor a cost, or with one that is less than nothing, since it is unknown
// then what was used.
func Tokens(limit int64) agent.Criterion {
	return newLimit("Tokens", limit, agent.Limits{Tokens: orNothing(limit)})
}

// Cost forbids to go on once the run and the runs that it started cost limit US dollars, for
// agent.StopCostLimit: see agent.Spending. The runs that it started are stopped, too. The step
// that reaches the limit is the last one, so that a run may cost more by what one model call
// takes; of runs that run side by side, each by one. A run whose cost is unknown
// is stopped after its first step, and the message says what is missing; so is one after
// a reply whose usage is less than nothing. The
// signal's details are maxCost and, where it is known, currentCost. Zero or less
// lets no step happen.
func Cost(limit float64) agent.Criterion {
	return newLimit("Cost", fmt.Sprintf("%g", limit), agent.Limits{Cost: orNothing(limit)})
}

// Time forbids to go on when more than limit has passed since the run started,
// for agent.StopTimeLimit; the runs that it started are stopped, too. The signal's details are
// elapsedSeconds and maxSeconds. It has no opinion on a state that no run has started. A step
// under way is not interrupted: see processor.Deadline.
func Time(limit time.Duration) agent.Criterion {
	return newLimit("Time", limit, agent.Limits{Time: orNothing(limit)})
}

// orNothing returns a limit as agent.Limits has it, where zero is no limit and less than zero
// allows nothing.
func orNothing[N int | int64 | float64 | time.Duration](limit N) N { return cmp.Or(limit, -1) }
