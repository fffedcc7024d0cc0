package durable_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/toolexec"
)

// switchReader counts how often the switch is read.
type switchReader struct {
	durable.Store

	reads atomic.Int64
}

func (s *switchReader) DenyTools(ctx context.Context) (durable.Switch, error) {
	s.reads.Add(1)
	return s.Store.DenyTools(ctx)
}

// A tool that turns the switch on denies the next call of the same step, though the switch was off when that was prepared.
func TestAToolTurnsTheSwitchOn(t *testing.T) {
	t.Parallel()
	store := &switchReader{Store: openStore(t)}
	fire := toolexec.Func("fire", "Turns the switch on.", func(ctx context.Context, _ struct{}) (string, error) {
		return "on", store.SetDenyTools(ctx, durable.Switch{On: true, Reason: "fire drill"})
	})
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		if s.RunStepCount() > 0 {
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "1", Name: "fire", Arguments: `{}`}, agent.ToolCall{ID: "2", Name: "fire", Arguments: `{}`})}, nil
	})
	a, err := builder.New().WithDriver(driver).
		With(capability.UseTools(fire), capability.UseDurability{Keeper: durable.Keep(store, durable.Options{})}).Build().Get()
	require.NoError(t, err)
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	var texts []string
	for _, step := range s.RunSteps() {
		for _, r := range step.Results() {
			texts = append(texts, r.Text())
		}
	}
	assert.Equal(t, []string{"on", `tool "fire": denied by deny-tools: fire drill`}, texts)
	// It is read when each call is prepared and before the second one runs; before the first one only on a slow machine.
	assert.LessOrEqual(t, store.reads.Load(), int64(4))
	assert.GreaterOrEqual(t, store.reads.Load(), int64(3))
}
