package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
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

// flaky fails the first readings of the switch.
type flaky struct {
	durable.Store

	fails atomic.Int64
}

func (s *flaky) DenyTools(ctx context.Context) (durable.Switch, error) {
	if s.fails.Add(-1) >= 0 {
		return durable.Switch{}, errors.New("the network is down")
	}
	return s.Store.DenyTools(ctx)
}

// A switch that cannot be read is read again. If it stays unknown, the call does not run, and nothing says that it was denied.
func TestTheSwitchCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails    int64
		patience time.Duration
		ran      int64
	}{"once": {1, time.Minute, 1}, "for good": {1 << 40, -1, 0}} {
		var ran atomic.Int64
		pay := toolexec.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { ran.Add(1); return "paid", nil })
		store := &flaky{Store: openStore(t)}
		store.fails.Store(c.fails)
		a, err := builder.New().WithDriver(agenttest.Script(agenttest.Call("pay", `{}`), agenttest.Say("Done."))).
			With(capability.UseTools(pay), capability.UseDurability{Keeper: durable.Keep(store, durable.Options{Patience: c.patience})}).Build().Get()
		require.NoError(t, err)
		result := a.Run(t.Context(), agent.NewState(), agent.UserText("go"))
		assert.Equal(t, c.ran, ran.Load(), name)
		if c.ran > 0 {
			require.NoError(t, result.Error(), name)
			continue
		}
		require.ErrorContains(t, result.Error(), "the switch that denies all tools cannot be read: the network is down", name)
		failed, ok := errors.AsType[*agent.RunError](result.Error())
		require.True(t, ok)
		assert.Equal(t, agent.StatusFailed, failed.State.Status())
		for _, step := range failed.State.RunSteps() {
			for _, r := range step.Results() {
				assert.Equal(t, agent.ToolNotExecuted, r.Status)
				assert.False(t, r.Denied(), "neither a person nor a hook denied it")
			}
		}
	}
}

// cutOff changes when its switch is read after a call has run.
type cutOff struct {
	durable.Store

	ran    *int
	now    durable.Switch
	err    error
	cancel context.CancelFunc
}

func (s *cutOff) DenyTools(ctx context.Context) (durable.Switch, error) {
	if *s.ran == 0 {
		return s.Store.DenyTools(ctx)
	}
	s.cancel()
	return s.now, s.err
}

// After another call of the step, a call does not run if the switch has become unknown, which fails the run, or if the run is cancelled
// while a switch that is on or unknown is read.
func TestTheSwitchChangesWithinAStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		now     durable.Switch
		err     error
		cancels bool
		status  agent.Status
		reason  agent.ReasonCode
	}{
		"unknown":                {durable.Switch{}, errors.New("the network is down"), false, agent.StatusFailed, agent.ReasonRunStopped},
		"on and cancelled":       {durable.Switch{On: true}, nil, true, agent.StatusCancelled, agent.ReasonDenied},
		"unknown, and cancelled": {durable.Switch{}, errors.New("the network is down"), true, agent.StatusCancelled, agent.ReasonCancelled},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		ran := 0
		store := &cutOff{Store: openStore(t), ran: &ran, now: c.now, err: c.err, cancel: func() {
			if c.cancels {
				cancel()
			}
		}}
		counting := capability.Func(func(p capability.Plan) (capability.Plan, error) {
			return p.WrapExecutor(capability.Inside, "counting", func(inner agent.Executor) agent.Executor { return &countedExecutor{inner, &ran} }), nil
		})
		free := toolexec.Func("free", "Does nothing.", func(context.Context, struct{}) (string, error) { return "done", nil })
		a, err := builder.New().WithDriver(agenttest.Script(agenttest.Call("free", `{}`).Call("free", `{}`), agenttest.Say("Done."))).
			With(capability.UseTools(free), counting, capability.UseDurability{Keeper: durable.Keep(store, durable.Options{Patience: -1})}).Build().Get()
		require.NoError(t, err)
		s, err := a.Run(ctx, agent.NewState(), agent.UserText("go")).Get()
		if kept, ok := agent.StateOf(err); ok {
			s = kept
		}
		cancel()
		assert.Equal(t, 1, ran, name)
		assert.Equal(t, c.status, s.Status(), name)
		last := s.LastStep()
		reasons := map[int]agent.ReasonCode{}
		for i, r := range last.Results() {
			reasons[i] = r.Reason
		}
		assert.Equal(t, map[int]agent.ReasonCode{0: "", 1: c.reason}, reasons, name)
	}
}

// countedExecutor counts the calls that it executes, whether or not their run is cancelled.
type countedExecutor struct {
	agent.Executor

	ran *int
}

func (x *countedExecutor) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	*x.ran++
	return x.Executor.Execute(ctx, s, p)
}
