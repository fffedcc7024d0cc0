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

// Limits returns the limit.
func (l *limit) Limits() agent.Limits { return l.most }

func (l *limit) Evaluate(ctx context.Context, s agent.State) mo.Result[agent.Evaluation] {
	return evaluationOf(l.judge(ctx, s))
}

func (l *limit) judge(_ context.Context, s agent.State) (*agent.Evaluation, error) {
	over, ok := l.most.StopFor(s)
	if !ok {
		return nil, nil
	}
	name, _, _ := strings.Cut(l.name, "(")
	over.Source = "continuation." + name
	return &agent.Evaluation{Verdict: agent.Forbid, Signal: over}, nil
}

// Steps stops a run, for agent.StopStepsLimit, when the run and the runs that it started have taken limit steps: see
// agent.Spending. The runs that it started are stopped, too. The signal's details are currentSteps and maxSteps. Zero
// or less allows no step.
func Steps(limit int) agent.Criterion {
	return newLimit("Steps", limit, agent.Limits{Steps: orNothing(limit)})
}

// Tokens stops a run, for agent.StopTokenLimit, when the run and the runs that it started have used limit tokens, input
// and output together: see agent.Spending. The runs that it started are stopped, too. The step that reaches the limit
// is the last one, so a run can exceed the limit by one model call. Parallel runs can exceed it by one call each.
//
// A run is also stopped after a reply with a negative usage, or with no usage at all, neither tokens nor a cost. The
// number of used tokens is then unknown. The signal's details are totalTokens, inputTokens, outputTokens and maxTokens.
// Zero or less allows no step.
func Tokens(limit int64) agent.Criterion {
	return newLimit("Tokens", limit, agent.Limits{Tokens: orNothing(limit)})
}

// Cost stops a run, for agent.StopCostLimit, when the run and the runs that it started have cost limit US dollars: see
// agent.Spending. The runs that it started are stopped, too. The step that reaches the limit is the last one, so a run
// can exceed the limit by one model call. Parallel runs can exceed it by one call each.
//
// A run whose cost is unknown is stopped after its first step, and the message says what is missing. A run is also
// stopped after a reply with a negative usage. The signal's details are maxCost and, if it is known, currentCost. Zero
// or less allows no step.
func Cost(limit float64) agent.Criterion {
	return newLimit("Cost", fmt.Sprintf("%g", limit), agent.Limits{Cost: orNothing(limit)})
}

// Time stops a run, for agent.StopTimeLimit, when it has been running for more than limit. Time as a parked run does
// not count. The runs that it started are stopped, too. The signal's details are elapsedSeconds and maxSeconds. It has
// no opinion on a state without a run. It does not interrupt a step: see processor.Deadline.
func Time(limit time.Duration) agent.Criterion {
	return newLimit("Time", limit, agent.Limits{Time: orNothing(limit)})
}

// orNothing converts a limit for agent.Limits, where zero means no limit and less than zero allows nothing.
func orNothing[N int | int64 | float64 | time.Duration](limit N) N { return cmp.Or(limit, -1) }
