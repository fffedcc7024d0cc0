package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// The times of a run are those of the system's clock, and steps take what their model and
// tools take, whether or not time passes in between.
func TestTheClockOfARun(t *testing.T) {
	pause := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		time.Sleep(time.Hour)
		return next(ctx, s)
	})
	for name, tc := range map[string]struct {
		around []agent.Processor
		judge  time.Duration // how long a criterion takes
	}{"alone": {}, "paced": {around: []agent.Processor{pause}}, "judged": {judge: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var read []time.Duration
				driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
					read = append(read, time.Until(s.Now()))
					time.Sleep(10 * time.Millisecond)
					return agent.Step{Message: agent.Assistant("hm")}, nil
				})
				a, err := agent.New(agent.Config{
					Driver: driver, AroundStep: tc.around,
					Criterion: agent.CriterionFunc(func(_ context.Context, s agent.State) (agent.Evaluation, error) {
						if s.RunStepCount() > 0 {
							time.Sleep(tc.judge)
						}
						return agent.Evaluation{Verdict: lo.Ternary(s.RunStepCount() < 300, agent.RequestContinuation, agent.Forbid)}, nil
					}),
				}).Get()
				require.NoError(t, err)
				final, err := a.Run(t.Context(), agent.NewState(agent.UserText("go"))).Get()
				require.NoError(t, err)
				paused := time.Duration(len(tc.around)) * time.Hour
				for i, step := range final.RunSteps() {
					assert.Equal(t, 10*time.Millisecond, step.Duration())
					assert.WithinDuration(t, began.Add(time.Duration(i)*(paused+tc.judge+10*time.Millisecond)+paused), step.StartTime(), 0)
				}
				assert.Equal(t, make([]time.Duration, 300), read)
			})
		})
	}
	assert.WithinDuration(t, time.Now(), agent.NewState().Now(), time.Minute, "no run")
}
