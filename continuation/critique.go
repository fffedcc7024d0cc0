package continuation

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/reserved"
)

// defaultCritiques is the default of SelfCritique.Most.
const defaultCritiques = 3

// SelfCritique is a criterion that does not let a run end with an answer that a critic rejects. The model receives the
// critique, and the run continues. If the critic still rejects the answer after Most critiques, the run does not end as
// done. It is stopped for agent.StopRetryLimit, with the details iterations and maxIterations. The run's metadata
// counts the critiques, so that the count continues when another process resumes the run.
//
// The critic is called only for final answers. Hooks at Stop fire when the critic accepts the answer.
type SelfCritique struct {
	// Critic checks the final state. It returns a critique of the Answer for the model, or an empty text if the answer
	// is good. Critic can ask a model. It must be safe for concurrent use. An error fails the run. Required.
	Critic func(ctx context.Context, s agent.State) (fault string, err error)
	// Most is the maximum number of critiques. Zero means three, and less than zero means no critique.
	Most int
}

var (
	_ agent.Criterion = SelfCritique{}
	_ judge           = SelfCritique{}

	critiques = agent.ReservedKey[int](reserved.InternalToken(), "continuation.critiques", agent.ScopeRun)

	errNoCritic = errors.New("self-critique: Critic is nil")
)

func (c SelfCritique) String() string { return fmt.Sprintf("SelfCritique(%d)", c.most()) }

func (c SelfCritique) most() int { return max(cmp.Or(c.Most, defaultCritiques), 0) }

// Evaluate asks the critic about a final answer.
func (c SelfCritique) Evaluate(ctx context.Context, s agent.State) mo.Result[agent.Evaluation] {
	return evaluationOf(c.judge(ctx, s))
}

func (c SelfCritique) judge(ctx context.Context, s agent.State) (*agent.Evaluation, error) {
	if c.Critic == nil {
		return nil, errNoCritic
	}
	if s.LastStep().Kind() != agent.StepFinalResponse || s.Stopped() {
		return nil, nil
	}
	fault, err := c.Critic(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("self-critique: %w", err)
	}
	if fault == "" {
		return nil, nil
	}
	count := critiques.Or(s, 0)
	if count >= c.most() {
		return forbidBecause(agent.StopRetryLimit, "continuation.SelfCritique",
			fmt.Sprintf("the model was sent back %d times, and its answer still has a fault: %s", count, fault),
			map[string]any{"iterations": count, "maxIterations": c.most()}), nil
	}
	told := agent.EffectsOf(agent.AddMessage(agent.UserText(fault))).From("self-critique")
	return &agent.Evaluation{Verdict: agent.RequestContinuation, Effects: agent.EffectsOf(critiques.Set(count + 1)).Add(told)}, nil
}
