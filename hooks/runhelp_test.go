package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// ending is how a run ended, and all that was seen of it.
type ending struct {
	agent.State

	err      error
	recorder *agenttest.Recorder
	driver   *agenttest.Driver
}

// tester is the common part of a test and a property.
type tester interface {
	require.TestingT
	Helper()
}

// hookedAgent returns an agent with hooks and with the tool echo, whose observer is the
// recorder.
func hookedAgent(t tester, driver agent.Driver, recorder *agenttest.Recorder, list []hooks.Hook, more ...capability.Capability) *agent.Agent {
	t.Helper()
	echo := toolexec.Func("echo", "Says it again.", func(_ context.Context, in struct {
		Text string `json:"text,omitempty"`
	},
	) (string, error) {
		return in.Text, nil
	})
	b := builder.New().WithName("tester").WithDriver(driver).With(capability.UseTools(echo), capability.UseHooks(list...)).With(more...)
	if recorder != nil {
		b = b.WithObserver(recorder)
	}
	a, err := b.Build().Get()
	require.NoError(t, err)
	return a
}

// play runs a script with hooks to its end, whatever that is, with the input "hello".
func play(t testing.TB, script *agenttest.Driver, list []hooks.Hook, more ...capability.Capability) ending {
	t.Helper()
	return playIn(t, t.Context(), script, list, more...)
}

func playIn(t testing.TB, ctx context.Context, script *agenttest.Driver, list []hooks.Hook, more ...capability.Capability) ending { //nolint:revive // t is first
	t.Helper()
	e := ending{recorder: agenttest.Record(), driver: script}
	a := hookedAgent(t, script, e.recorder, list, more...)
	e.State, e.err = a.Run(ctx, agent.NewState(), agent.UserText("hello")).Get()
	if failed, ok := errors.AsType[*agent.RunError](e.err); ok {
		e.State = failed.State
	}
	return e
}

// signal returns why the run ended.
func (e ending) signal() agent.Signal { return e.StopSignal() }

// told returns the hook events of the kinds, as "hook.blocked guard@StepStart".
func (e ending) told(kinds ...hooks.EventKind) []string {
	return lo.FilterMap(agenttest.Of[hooks.Event](e.recorder), func(ev hooks.Event, _ int) (string, bool) {
		return fmt.Sprintf("%s %s@%s", ev.Kind, ev.Hook, ev.Point), lo.Contains(kinds, ev.Kind)
	})
}

// count returns how many events of that name there were.
func (e ending) count(name string) int { return lo.Count(e.recorder.Names(), name) }
