package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
)

// IP-70: the order of the criteria does not affect whether the run ends or continues.
func TestAnyOrderGivesTheSameVerdict(t *testing.T) {
	verdicts := []agent.Verdict{
		agent.NoOpinion, agent.AllowContinuation, agent.AllowStop, agent.RequestContinuation, agent.Forbid,
	}
	reasons := []agent.StopReason{
		agent.StopCompleted, agent.StopFinishReason, agent.StopRequested, agent.StopByHook, agent.StopRetryLimit,
		agent.StopStepsLimit, agent.StopTimeLimit, agent.StopTokenLimit, agent.StopCostLimit, agent.StopDenied,
		agent.StopRejected, agent.StopError, agent.StopUser,
	}
	said := rapid.Custom(func(t *rapid.T) agent.Evaluation {
		e := agent.Evaluation{
			Verdict: rapid.SampledFrom(verdicts).Draw(t, "verdict"),
			Handled: rapid.Bool().Draw(t, "handled"),
			Signal: agent.Signal{
				Reason: rapid.SampledFrom(reasons).Draw(t, "reason"),
				Source: rapid.SampledFrom([]string{"agent", "other"}).Draw(t, "source"),
			},
		}
		if text := rapid.StringMatching(`[a-c]?`).Draw(t, "effect"); text != "" {
			e.Effects = agent.EffectsOf(agent.AddContext(text))
		}
		return e
	})
	rapid.Check(t, func(t *rapid.T) {
		opinions := rapid.SliceOfN(said, 0, 10).Draw(t, "opinions")
		order := rapid.Permutation(opinions).Draw(t, "order")
		// A part of them sits in an All of its own.
		inner := rapid.IntRange(0, len(order)).Draw(t, "inner")
		criteria := func(es []agent.Evaluation) []agent.Criterion {
			return lo.Map(es, func(e agent.Evaluation, _ int) agent.Criterion { return says(e) })
		}
		a := continuation.All(criteria(opinions)...)
		b := continuation.All(append(criteria(order[inner:]), continuation.All(criteria(order[:inner])...))...)
		want, got := a.Evaluate(t.Context(), agent.State{}).MustGet(), b.Evaluate(t.Context(), agent.State{}).MustGet()
		assert.Equal(t, want.Verdict, got.Verdict)
		assert.Equal(t, want.Handled, got.Handled)
		if want.Stops() {
			assert.Equal(t, want.Signal.Reason, got.Signal.Reason)
		}
		assert.ElementsMatch(t, effects(want), effects(got))
		assert.Equal(t, want.Handled, agent.Strongest(opinions...).Handled, "nothing said is lost")
		assert.Equal(t, effects(want), effects(agent.Strongest(opinions...)))
	})
}

func effects(e agent.Evaluation) []string {
	var texts []string
	for _, effect := range e.Effects.All() {
		text, _ := effect.Context()
		texts = append(texts, text)
	}
	return texts
}

func TestStrongerVerdictsWin(t *testing.T) {
	request := agent.Evaluation{Verdict: agent.RequestContinuation}
	limit := afterSteps(5, forbidBecause(agent.StopStepsLimit, "limit"))

	for name, tc := range map[string]struct {
		script   []turn
		criteria []agent.Criterion
		steps    int
		status   agent.Status
		reason   agent.StopReason
	}{
		"IP-66: forbid beats request": {
			[]turn{call("t")}, []agent.Criterion{afterSteps(2, forbidBecause(agent.StopByHook, "h")), says(request)},
			2, agent.StatusStopped, agent.StopByHook,
		},
		"IP-67: request beats allow stop": {
			[]turn{answer("a")}, []agent.Criterion{afterSteps(1, request), agent.Base},
			2, agent.StatusDone, agent.StopCompleted,
		},
		"IP-68: allow stop beats allow continuation": {
			[]turn{call("t")}, []agent.Criterion{agent.Base, continuation.FinishReason(agent.FinishToolCalls)},
			1, agent.StatusDone, agent.StopFinishReason,
		},
		"IP-69: no opinion goes on": {
			[]turn{answer("a")}, []agent.Criterion{continuation.All(), limit},
			5, agent.StatusStopped, agent.StopStepsLimit,
		},
		"IP-78: a request does not override a limit": {
			[]turn{answer("a")}, []agent.Criterion{says(request), agent.Base, continuation.Steps(3)},
			3, agent.StatusStopped, agent.StopStepsLimit,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				final, err := run(t, agent.Config{
					Driver: turns(tc.script...), Executor: works, Criterion: continuation.All(tc.criteria...),
				})
				require.NoError(t, err)
				assert.Equal(t, tc.steps, final.RunStepCount())
				assert.Equal(t, tc.status, final.Status())
				assert.Equal(t, tc.reason, signal(t, final).Reason)
				slices.Reverse(tc.criteria)
			}
		})
	}
}

// IP-71: the weightiest reason names the end, of equals the first; in the event
// and in the state alike. Nothing names it before.
func TestWeightiestReasonNamesTheEnd(t *testing.T) {
	var judged []agent.Evaluation
	final, err := run(t, agent.Config{
		Driver: turns(call("t")), Executor: works,
		Criterion: continuation.All(
			afterSteps(1, forbidBecause(agent.StopStepsLimit, "light")),
			afterSteps(1, forbidBecause(agent.StopCostLimit, "first of the heavy")),
			afterSteps(1, forbidBecause(agent.StopCostLimit, "second of the heavy")),
			agent.Base,
		),
		Observer: agent.ObserverFunc(func(_ context.Context, e agent.Event) {
			if e, ok := e.(agent.Judged); ok {
				judged = append(judged, e.Evaluation)
			}
		}),
	})
	require.NoError(t, err)
	require.Len(t, judged, 2)
	assert.Empty(t, judged[0].Signal)
	assert.Equal(t, agent.Signal{Reason: agent.StopCostLimit, Source: "first of the heavy"}, judged[1].Signal)
	assert.Equal(t, judged[1].Signal, signal(t, final))
}

func TestAllAsksEveryoneAndNamesWhoFailed(t *testing.T) {
	noDisk, noNet := errors.New("no disk"), errors.New("no net")
	asked := 0
	broken := func(err error) agent.Criterion {
		return agent.CriterionFunc(func(context.Context, agent.State) (agent.Evaluation, error) {
			asked++
			return agent.Evaluation{}, err
		})
	}
	criterion := continuation.All(
		says(forbidBecause(agent.StopUser, "user")),
		broken(noDisk), broken(nil),
		continuation.UntilCancelled(func(context.Context, agent.State) (bool, error) { return true, noNet }),
	)
	final, err := run(t, agent.Config{Driver: turns(answer("a")), Criterion: criterion})
	require.ErrorIs(t, err, noDisk)
	require.ErrorIs(t, err, noNet)
	require.ErrorContains(t, err, "criterion 2 of 4, agent.CriterionFunc: no disk")
	require.ErrorContains(t, err, "criterion 4 of 4, UntilCancelled: checking for cancellation: no net")
	assert.Equal(t, 2, asked)
	assert.Equal(t, agent.StatusFailed, final.Status())
	assert.Zero(t, final.RunStepCount())
}

func TestMissingCriterionIsAnError(t *testing.T) {
	final, err := run(t, agent.Config{Driver: turns(answer("a")), Criterion: continuation.All(agent.Base, nil)})
	require.ErrorContains(t, err, "criterion 2 of 2, <nil>: the criterion is nil")
	assert.Zero(t, final.RunStepCount())
}

func TestJudgementCutShortByCancelIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a, err := agent.New(agent.Config{
		Driver: turns(call("t")), Executor: works,
		Criterion: continuation.All(agent.Base, continuation.UntilCancelled(
			func(ctx context.Context, s agent.State) (bool, error) {
				if s.RunStepCount() == 1 {
					cancel() // while the source is being asked
				}
				return false, ctx.Err()
			},
		)),
	}).Get()
	require.NoError(t, err)
	broken, ok := errors.AsType[*agent.RunError](a.Run(ctx, agent.NewState()).Error())
	require.True(t, ok)
	assert.Equal(t, agent.StatusCancelled, broken.State.Status())
	assert.Equal(t, 1, broken.State.RunStepCount())
}

func TestCriteriaSayWhatTheyAre(t *testing.T) {
	assert.Equal(t, `All(agent.base, Steps(20), Tokens(1000), Cost(0.5), Time(1m0s), FinishReason(length, content_filter), `+
		`ToolCallPresence(), StopWhen("enough"), UntilCancelled, `+
		`ErrorPolicy(tool: retry, model: stop, rate_limit: stop, timeout: ignore, invalid: stop, unknown: stop, retries: 2))`,
		fmt.Sprint(continuation.All(
			agent.Base, continuation.Steps(20), continuation.Tokens(1000),
			continuation.All(continuation.Cost(0.5), continuation.Time(60e9)),
			continuation.FinishReason(agent.FinishLength, agent.FinishFilter), continuation.ToolCallPresence(),
			continuation.StopWhen("enough", nil), continuation.UntilCancelled(nil),
			continuation.ErrorPolicy{Tool: continuation.Retry, Timeout: continuation.Ignore, MaxRetries: 2},
		)))
}
