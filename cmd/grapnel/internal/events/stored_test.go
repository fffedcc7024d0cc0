package events_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

// A stored event is shown as the stream writes it, besides its number and time.
func TestStored(t *testing.T) {
	run := agent.Run{ID: "run_1", Session: "ses_1", Agent: "clerk", Number: 1}
	for _, e := range []agent.Event{
		agent.RunStarted{Run: run},
		agent.StepStarted{Run: run, Index: 2},
		hooks.Event{Kind: hooks.HookBlocked, Run: run, Hook: "guard", Decision: hooks.Deny, Reason: "a < b & \"c\""},
		agent.RunParked{},
	} {
		var stream bytes.Buffer
		events.New(&stream).Observe(context.Background(), e)
		form, ok := events.Stored(e)
		require.True(t, ok)
		require.Equal(t, e.EventName(), form.Name)
		require.True(t, json.Valid(form.Data), "%s", form.Data)
		object, err := events.Object(durable.Event{Run: "run_1", Seq: 1, At: time.Now(), Name: form.Name, Data: form.Data})
		require.NoError(t, err)
		assert.Equal(t, withoutTime(t, stream.Bytes()), withoutTime(t, object))
	}
}

func withoutTime(t *testing.T, object []byte) map[string]any {
	t.Helper()
	var fields map[string]any
	require.NoError(t, json.Unmarshal(object, &fields), "%s", object)
	delete(fields, "time")
	return fields
}

// A decision is counted with its hook.
func TestDecisions(t *testing.T) {
	decision := func(e hooks.Event) durable.Decision {
		e.Hook = "guard"
		form, ok := events.Stored(e)
		require.True(t, ok)
		if form.Decision != "" {
			assert.Equal(t, "guard", form.Hook)
		}
		return form.Decision
	}
	for _, c := range []struct {
		event hooks.Event
		want  durable.Decision
	}{
		{hooks.Event{Kind: hooks.HookBlocked, Decision: hooks.Deny, Point: hooks.PreToolUse}, durable.DecisionDenied},
		{hooks.Event{Kind: hooks.HookBlocked, Decision: hooks.Deny, Point: hooks.RunStart}, durable.DecisionBlocked},
		{hooks.Event{Kind: hooks.HookBlocked, Decision: hooks.Withhold}, durable.DecisionWithheld},
		{hooks.Event{Kind: hooks.HookComplete, Decision: hooks.Ask}, ""},
		{hooks.Event{Kind: hooks.HookComplete, Decision: hooks.Ask, Shadow: true}, durable.DecisionShadow},
		{hooks.Event{Kind: hooks.HookComplete, Decision: hooks.Mock}, durable.DecisionRewritten},
		{hooks.Event{Kind: hooks.HookComplete, Decision: hooks.Deny, Shadow: true}, durable.DecisionShadow},
		{hooks.Event{Kind: hooks.HookComplete, Decision: hooks.Allow, Shadow: true}, ""},
		{hooks.Event{Kind: hooks.HookFailed, Policy: "closed"}, durable.DecisionFailed},
		{hooks.Event{Kind: hooks.HookTimeout, Policy: "retry"}, ""},
		{hooks.Event{Kind: hooks.HookTimeout}, durable.DecisionTimeout},
		{hooks.Event{Kind: hooks.HookSkipped}, ""},
	} {
		assert.Equal(t, c.want, decision(c.event), "%+v", c.event)
	}
}

// Passes are counted, and what would only repeat other events is left out.
func TestNotStored(t *testing.T) {
	form, ok := events.Stored(hooks.Event{Kind: hooks.HookComplete, Hook: "guard", Decision: hooks.Pass})
	require.True(t, ok)
	assert.Equal(t, durable.EventForm{Counter: "guard pass"}, form)
	form, ok = events.Stored(hooks.Event{Kind: hooks.HookComplete, Hook: "guard", Duration: 3 * time.Millisecond})
	require.True(t, ok)
	assert.JSONEq(t, `{"guard pass":1,"guard pass over 1 ms":1}`, string(durable.NewEvent(form, time.Now()).Data))
	form, ok = events.Stored(hooks.Event{Kind: hooks.HookComplete, Hook: "guard", Duration: 51 * time.Millisecond})
	require.True(t, ok)
	assert.Equal(t, "hook.complete", form.Name, "a slow pass")
	for _, e := range []agent.Event{hooks.Event{Kind: hooks.HookStart, Hook: "guard"}, mcp.ProgressReported{}} {
		_, ok := events.Stored(e)
		assert.False(t, ok)
	}
	object, err := events.Object(durable.Event{Run: "run_1", Seq: 7, Name: durable.EventCounts, Data: []byte(`{"guard pass":3}`)})
	require.NoError(t, err)
	assert.Contains(t, string(object), `"seq":7,`)
	assert.Contains(t, string(object), `"type":"counts","run":"run_1","counts":{"guard pass":3}}`)
	_, err = events.Object(durable.Event{Data: []byte("[")})
	require.Error(t, err)
	empty, err := events.Object(durable.Event{Seq: 1, Name: "a"})
	require.NoError(t, err)
	assert.True(t, json.Valid(empty))
}

// Stores count the calls of hooks in runs, and what people override, once each.
func TestRuleCounts(t *testing.T) {
	store := memory.New()
	keeper := durable.Keep(store, durable.Options{Events: events.Stored})
	pay := toolexec.Func("pay", "Pays.", func(context.Context, struct{ Cents int }) (string, error) { return "paid", nil })
	look := toolexec.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "nothing", nil })
	guard := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		if c.Call().Name == "pay" {
			return c.Ask("it pays")
		}
		return c.Allow()
	})
	clerk, err := builder.New().WithName("clerk").
		WithDriver(agenttest.Script(agenttest.Call("look", `{}`), agenttest.Call("pay", `{"Cents":100}`), agenttest.Say("done")).EachRun()).
		With(capability.UseTools(pay, look), capability.UseHooks(guard), capability.UseDurability{Keeper: keeper}, capability.UseApproval(agent.ParkApprover)).
		Build().Get()
	require.NoError(t, err)
	parked, err := clerk.Run(t.Context(), agent.NewState(), agent.UserText("Pay the bill.")).Get()
	require.NoError(t, err)
	require.True(t, parked.Waiting())
	id := parked.Run().ID
	waits, err := store.Waits(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, waits, 1)
	_, err = durable.Decide(t.Context(), store, waits[0], agent.Approval{Verdict: agent.Approve, By: "ann"})
	require.NoError(t, err)
	done, err := keeper.Resume(t.Context(), clerk, id, durable.TakeFree).Get()
	require.NoError(t, err)
	require.Equal(t, agent.StatusDone, done.Status())
	counts, err := store.RuleCounts(t.Context(), time.Now())
	require.NoError(t, err)
	require.Len(t, counts, 1)
	c := counts[0]
	assert.Equal(t, []string{"clerk", "guard"}, []string{c.Agent, c.Hook})
	assert.Equal(t, map[durable.Decision]int64{durable.DecisionAsked: 1, durable.DecisionOverridden: 1}, c.Decisions)
	assert.Equal(t, int64(3), c.Asked, "the run asks again when it continues")
}
