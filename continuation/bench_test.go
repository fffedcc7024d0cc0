package continuation_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
)

// fiveGuards is a careful agent's criterion: Base and five guards.
var fiveGuards = continuation.All(
	agent.Base,
	continuation.Steps(1000), continuation.Tokens(1_000_000), continuation.Cost(100), continuation.Time(time.Hour),
	continuation.RetryToolErrors(3),
)

// midRun returns a run that asked for a tool in its last step.
func midRun(t testing.TB) agent.State {
	t.Helper()
	a := agent.New(agent.Config{
		Driver: turns(call("t")), Executor: works,
	}).MustGet()
	for s, err := range a.Steps(t.Context(), agent.NewState(), agent.UserText("go")) {
		require.NoError(t, err)
		return s
	}
	panic("no step was taken")
}

func TestAgreeingToGoOnAllocatesNothing(t *testing.T) {
	s := midRun(t)
	require.Equal(t, agent.AllowContinuation, fiveGuards.Evaluate(t.Context(), s).MustGet().Verdict)
	assert.Zero(t, testing.AllocsPerRun(100, func() { fiveGuards.Evaluate(context.Background(), s) }))
}

// Five guards and Base judge a step after which the run continues.
func BenchmarkAll(b *testing.B) {
	s := midRun(b)
	b.ReportAllocs()
	for b.Loop() {
		fiveGuards.Evaluate(context.Background(), s)
	}
}
