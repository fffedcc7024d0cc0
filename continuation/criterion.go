package continuation

import (
	"context"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// judge is implemented by the criteria in this package. A nil evaluation means no opinion. All calls judge after every
// step, and does not copy an Evaluation without an opinion.
type judge interface {
	judge(ctx context.Context, s agent.State) (*agent.Evaluation, error)
}

// criterion is a named judge.
type criterion struct {
	name string
	asks func(ctx context.Context, s agent.State) (*agent.Evaluation, error)
}

var _ agent.Criterion = (*criterion)(nil)

func (c *criterion) judge(ctx context.Context, s agent.State) (*agent.Evaluation, error) {
	return c.asks(ctx, s)
}

func (c *criterion) Evaluate(ctx context.Context, s agent.State) mo.Result[agent.Evaluation] {
	return evaluationOf(c.asks(ctx, s))
}

func (c *criterion) String() string { return c.name }

// newStateCriterion returns a criterion that depends only on the state.
func newStateCriterion(name string, asks func(s agent.State) *agent.Evaluation) agent.Criterion {
	return &criterion{name, func(_ context.Context, s agent.State) (*agent.Evaluation, error) { return asks(s), nil }}
}

func evaluationOf(e *agent.Evaluation, err error) mo.Result[agent.Evaluation] {
	switch {
	case err != nil:
		return mo.Err[agent.Evaluation](err)
	case e == nil:
		return mo.Ok(agent.Evaluation{})
	}
	return mo.Ok(*e)
}

func forbidBecause(reason agent.StopReason, source, message string, details map[string]any) *agent.Evaluation {
	return &agent.Evaluation{Verdict: agent.Forbid, Signal: agent.Signal{
		Reason: reason, Message: message, Source: source, Details: details,
	}}
}
