package toolexec_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// IP-84: one executor serves many runs at the same time, and their data stays separate.
func TestOneToolboxServesManyRuns(t *testing.T) {
	var flakes atomic.Int64
	e := executor(t, toolexec.Options{},
		toolexec.Func("add", "", add),
		toolexec.WithPolicy(toolexec.CallFunc(agent.ToolSpec{Name: "flaky"}, func(_ context.Context, c toolexec.Call, _ pair) (string, error) {
			if flakes.Add(1); c.Attempt < 3 {
				return "", errBusy
			}
			return c.IdempotencyKey(), nil
		}), toolexec.Policy{Timeout: time.Minute, Retry: toolexec.Retry{Attempts: 3}}),
		toolexec.Func("panics", "", func(_ context.Context, in pair) (string, error) { panic(in.A) }))

	const runs, steps = 16, 5
	var wg sync.WaitGroup
	for run := range runs {
		wg.Go(func() {
			args := func(step int) string { return fmt.Sprintf(`{"a":%d,"b":%d}`, run, step) }
			a, err := agent.New(agent.Config{
				Executor: e, Parallel: 3,
				Driver: agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
					step := s.RunStepCount()
					if step == steps {
						return agent.Step{Message: agent.Assistant("bye")}, nil
					}
					return agent.Step{Message: agent.Assistant("",
						agent.ToolCall{ID: "x", Name: "add", Arguments: args(step)},
						agent.ToolCall{ID: "y", Name: "flaky", Arguments: args(step)},
						agent.ToolCall{ID: "z", Name: "panics", Arguments: args(step)})}, nil
				}),
			}).Get()
			assert.NoError(t, err)
			id := agent.RunID("run_" + strconv.Itoa(run))
			final, err := a.RunWith(t.Context(), agent.RunSettings{ID: id}, agent.NewState(), agent.UserText("go")).Get()
			assert.NoError(t, err)
			for i, record := range final.RunSteps() {
				if i == steps {
					break
				}
				sum, key, bang := record.Result(0), record.Result(1), record.Result(2)
				assert.Equal(t, strconv.Itoa(run+i), sum.Text())
				assert.Equal(t, fmt.Sprintf("%s/%d/y", id, i), key.Text())
				assert.Equal(t, 3, key.Attempts)
				var panicked *toolexec.PanicError
				if assert.ErrorAs(t, bang.Err, &panicked) {
					assert.Equal(t, run, panicked.Value)
				}
			}
		})
	}
	wg.Wait()
	assert.Equal(t, int64(runs*steps*3), flakes.Load())
	assert.Zero(t, e.AbandonedCalls())
}

// IP-50: the thousandth call costs as much as the tenth.
func TestCallsStayLinear(t *testing.T) {
	e := executor(t, toolexec.Options{}, toolexec.Func("add", "", add))
	c := call("add", `{"a":2,"b":3}`)
	perCall := func(n int) float64 {
		batch := make([]*agent.Prepared, n)
		return testing.AllocsPerRun(10, func() {
			for i := range batch { // all are prepared before the first runs, as in a step
				batch[i] = prepare(t, e, c)
			}
			for _, p := range batch {
				_, err := e.Execute(t.Context(), agent.State{}, p).Get()
				require.NoError(t, err)
			}
		}) / float64(n)
	}
	assert.InDelta(t, perCall(10), perCall(1000), 0.1)
}
