package kit_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec"
)

// A service that is too busy at first.
func ExampleModelRetry() {
	model := agenttest.Script(agenttest.Tries(
		agenttest.Fail(&drivers.Error{Provider: "acme", Kind: agent.KindOverloaded}),
		agenttest.Say("Here I am."),
	))
	tell := agent.ObserverFunc(func(_ context.Context, e agent.Event) {
		if r, ok := e.(processor.Retrying); ok {
			fmt.Println(r.Err)
		}
	})
	a := builder.New().WithDriver(model).WithObserver(tell).With(kit.ModelRetry{Attempts: 2, Delay: time.Millisecond}).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("are you there?")).MustGet()
	fmt.Println(final.Answer(), final.RunStepCount(), "step")
	// Output:
	// asking the model: asking acme: the service is overloaded
	// Here I am. 1 step
}

func TestRetryWaits(t *testing.T) {
	busy := agenttest.Fail(&drivers.Error{Provider: "acme", Kind: agent.KindRateLimit, After: 20 * time.Second})
	for name, tc := range map[string]struct {
		retry kit.ModelRetry
		tries []agenttest.Turn
		took  time.Duration
		fails bool
	}{
		"a second, then two":          {kit.ModelRetry{}, []agenttest.Turn{agenttest.Fail(kinded("overloaded")), agenttest.Fail(kinded("model")), agenttest.Say("ok")}, 3 * time.Second, false},
		"three attempts":              {kit.ModelRetry{}, []agenttest.Turn{agenttest.Fail(kinded("overloaded"))}, 3 * time.Second, true},
		"as long as the service says": {kit.ModelRetry{}, []agenttest.Turn{busy, agenttest.Say("ok")}, 20 * time.Second, false},
		"not as long as all that":     {kit.ModelRetry{Max: 10 * time.Second}, []agenttest.Turn{busy, agenttest.Say("ok")}, 0, true},
		"not what was not authorized": {kit.ModelRetry{}, []agenttest.Turn{agenttest.Fail(kinded("auth")), agenttest.Say("ok")}, 0, true},
		"evenly":                      {kit.ModelRetry{Attempts: 4, Delay: time.Minute, Backoff: 1}, []agenttest.Turn{agenttest.Fail(kinded("timeout"))}, 3 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				_, err := run(t, built(t, agenttest.Script(agenttest.Tries(tc.tries...)), tc.retry), agent.NewState(), "go")
				assert.Equal(t, tc.fails, err != nil, "%v", err)
				assert.Equal(t, tc.took, time.Since(begun))
			})
		})
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := built(t, agenttest.Script(agenttest.Fail(kinded("overloaded"))), kit.ModelRetry{Delay: time.Hour, Max: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		final := a.Run(ctx, agent.NewState(), agent.UserText("go"))
		require.Error(t, final.Error())
		assert.Equal(t, time.Minute, time.Since(begun))
	})
}

// Only the model call is made again: tools that ran do not run twice.
func TestRetryRunsNoToolTwice(t *testing.T) {
	runs := 0
	count := toolexec.Func("count", "Counts.", func(context.Context, struct{}) (string, error) { runs++; return "", nil })
	model := agenttest.Script(
		agenttest.Tries(agenttest.Fail(kinded("overloaded")), agenttest.Call("count", `{}`)),
		agenttest.Tries(agenttest.Fail(kinded("overloaded")), agenttest.Say("ok")),
	)
	synctest.Test(t, func(t *testing.T) {
		s := done(t, built(t, model, kit.ModelRetry{}, capability.UseTools(count)), agent.NewState(), "go")
		assert.Equal(t, 1, runs)
		assert.Equal(t, 2, s.RunStepCount())
		assert.Len(t, model.Calls(), 4)
	})
}

func TestRetryThatMakesNoSense(t *testing.T) {
	text := wrong(t, kit.ModelRetry{Attempts: -1, Backoff: 0.5, Max: -1, Jitter: math.NaN()})
	for _, want := range []string{
		`capability "model-retry"`, "attempts are -1", "backoff is 0.5", "the longest wait is -1ns", "jitter is NaN",
	} {
		assert.Contains(t, text, want)
	}
}
