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

// limit is a criterion with one limit for the run and the runs that it starts.
type limit struct {
	name string
	most agent.Limits
}

var (
	_ agent.Criterion = (*limit)(nil)
	_ judge           = (*limit)(nil)
)

// newLimit returns a criterion whose String is the name and the limit.
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

// Steps forbids going on after limit steps of the run and of the runs that it started, for
// agent.StopStepsLimit: see agent.Spending. The runs that it started are stopped, too. The
// signal's details are currentSteps and maxSteps. Zero or less allows no step.
func Steps(limit int) agent.Criterion {
	return newLimit("Steps", limit, agent.Limits{Steps: orNothing(limit)})
}

// Tokens forbids going on once the run and the runs that it started have used limit tokens,
// input and output together, for agent.StopTokenLimit: see agent.Spending. The runs that it
// started are stopped, too. The step that reaches the limit is the last one, so a run may
// exceed the limit by one model call; with parallel runs, each by one. The signal's details
// are totalTokens, inputTokens, outputTokens and maxTokens. Zero or less allows no step. A run
// is stopped after a reply without usage, neither tokens nor a cost, or with a negative one,
// because the number of used tokens is then unknown.
func Tokens(limit int64) agent.Criterion {
	return newLimit("Tokens", limit, agent.Limits{Tokens: orNothing(limit)})
}

// Cost forbids going on once the run and the runs that it started have cost limit US dollars,
// for agent.StopCostLimit: see agent.Spending. The runs that it started are stopped, too. The
// step that reaches the limit is the last one, so a run may exceed the limit by one model
// call; with parallel runs, each by one. A run whose cost is unknown is stopped after its
// first step, and the message says what is missing; so is a run after a reply with a negative
// usage. The signal's details are maxCost and, if it is known, currentCost. Zero or less
// allows no step.
func Cost(limit float64) agent.Criterion {
	return newLimit("Cost", fmt.Sprintf("%g", limit), agent.Limits{Cost: orNothing(limit)})
}

// Time forbids going on when more than limit has passed since the run started, for
// agent.StopTimeLimit; the runs that it started are stopped, too. The signal's details are
// elapsedSeconds and maxSeconds. It has no opinion on a state without a run. It does not
// interrupt a step: see processor.Deadline.
func Time(limit time.Duration) agent.Criterion {
	return newLimit("Time", limit, agent.Limits{Time: orNothing(limit)})
}

// orNothing converts a limit to the form of agent.Limits, where zero is no limit and less than
// zero allows nothing.
func orNothing[N int | int64 | float64 | time.Duration](limit N) N { return cmp.Or(limit, -1) }
