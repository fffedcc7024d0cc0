package continuation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// All returns a criterion that asks all the given criteria, in order, and returns the strongest evaluation: see
// agent.Strongest. It asks every criterion every time, even if an earlier one ends the run or fails, so the order does
// not affect the verdict. The errors of all failing criteria are joined, each with the criterion's name.
//
// A nested All counts as the list of its criteria. All without criteria has no opinion. If a criterion is nil, All
// returns an error every time, because it may be a missing guard.
func All(criteria ...agent.Criterion) agent.Criterion {
	return &all{lo.FlatMap(criteria, func(c agent.Criterion, _ int) []agent.Criterion {
		if inner, ok := c.(*all); ok {
			return inner.criteria
		}
		return []agent.Criterion{c}
	})}
}

type all struct {
	criteria []agent.Criterion
}

func (a *all) Evaluate(ctx context.Context, s agent.State) mo.Result[agent.Evaluation] {
	var space [4]agent.Evaluation // on the stack, so that an evaluation usually allocates nothing
	said := space[:0]
	var broken []error
	for i, c := range a.criteria {
		var err error
		if said, err = ask(ctx, c, s, said); err != nil {
			broken = append(broken, fmt.Errorf("criterion %d of %d, %s: %w", i+1, len(a.criteria), criterionName(c), err))
		}
	}
	if len(broken) > 0 {
		return mo.Err[agent.Evaluation](errors.Join(broken...))
	}
	return mo.Ok(agent.Strongest(said...))
}

// Limits merges the limits of all the criteria.
func (a *all) Limits() (limits agent.Limits) {
	for _, c := range a.criteria {
		limits = limits.Merge(agent.LimitsOf(c))
	}
	return limits
}

func (a *all) String() string {
	return "All(" + strings.Join(lo.Map(a.criteria, func(c agent.Criterion, _ int) string { return criterionName(c) }), ", ") + ")"
}

// ask appends the criterion's evaluation to said, unless the criterion has no opinion.
func ask(ctx context.Context, c agent.Criterion, s agent.State, said []agent.Evaluation) ([]agent.Evaluation, error) {
	if c == nil {
		return said, errors.New("the criterion is nil")
	}
	if own, ok := c.(judge); ok {
		e, err := own.judge(ctx, s)
		if err != nil || e == nil {
			return said, err
		}
		return append(said, *e), nil
	}
	e, err := c.Evaluate(ctx, s).Get()
	if err != nil || e.Verdict == agent.NoOpinion && !e.Handled && e.Effects.Len() == 0 {
		return said, err
	}
	return append(said, e), nil
}

// criterionName returns the criterion's String, or else its type.
func criterionName(c agent.Criterion) string {
	if named, ok := c.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("%T", c)
}
