package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

var look = toolexec.Func("look", "Looks.", func(context.Context, struct{}) (string, error) {
	return strings.Repeat("much to see ", 40), nil
})

// looking returns a model that looks three times and is done.
func looking() *agenttest.Driver {
	turn := agenttest.Call("look", "{}")
	return agenttest.Script(turn, turn, turn, agenttest.Say("Seen."))
}

// told returns the objects of some types that runs with the capabilities write, without
// what they all have.
func told(t *testing.T, driver agent.Driver, with []capability.Capability, types ...string) (out []map[string]any) {
	t.Helper()
	var text bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		stream := New(&text)
		a := builder.New().WithName("boss").WithDriver(driver).With(with...).WithObserver(stream).Build().MustGet()
		s := a.Run(t.Context(), agent.NewState(), agent.UserText("Go.")).MustGet()
		for s.Waiting() {
			s = a.Resume(t.Context(), agenttest.WithApproval(s, s.Interventions()[0].CallID(), agent.Approval{Verdict: agent.Approve})).MustGet()
		}
		require.Equal(t, agent.StatusDone, s.Status())
		require.NoError(t, stream.Err())
	})
	for line := range bytes.Lines(text.Bytes()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal(line, &fields))
		for _, kind := range types {
			if fields["type"] == kind {
				assert.NotEmpty(t, fields["run"])
				maps.DeleteFunc(fields, func(name string, _ any) bool {
					return name == "v" || name == "seq" || name == "time" || name == "run"
				})
				out = append(out, fields)
			}
		}
	}
	return out
}

func TestCompaction(t *testing.T) {
	for name, tc := range map[string]struct {
		write error
		hooks []hooks.Hook
		want  map[string]any
	}{
		"completed": {want: map[string]any{
			"type": "compaction.completed", "step": 2.0, "trigger": "messages", "messages_before": 5.0, "messages_after": 4.0,
			"summary": "it looked", "usage": map[string]any{"input_tokens": 0.0, "output_tokens": 0.0, "cost_usd": 0.0}, "duration_ms": 0.0,
		}},
		"failed": {write: errors.New("no paper"), want: map[string]any{
			"type": "compaction.failed", "step": 2.0, "trigger": "messages", "messages": 5.0,
			"error": map[string]any{"kind": "unknown", "text": "summarising 2 messages: no paper"},
			"usage": map[string]any{"input_tokens": 0.0, "output_tokens": 0.0, "cost_usd": 0.0}, "duration_ms": 0.0,
		}},
		"denied": {
			hooks: []hooks.Hook{hooks.On(hooks.AtPreCompact, "keep", func(_ context.Context, c hooks.PreCompactContext) hooks.Result {
				return c.Deny("all of it is evidence")
			})},
			want: map[string]any{
				"type": "compaction.failed", "step": 2.0, "trigger": "messages", "messages": 5.0, "denied": true,
				"usage": map[string]any{"input_tokens": 0.0, "output_tokens": 0.0, "cost_usd": 0.0}, "duration_ms": 0.0,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := told(t, looking(), []capability.Capability{
				capability.UseTools(look), capability.UseHooks(tc.hooks...),
				capability.UseCompaction{
					Messages: 4, Keep: 2,
					Summarize: func(context.Context, agent.State, []agent.Message) (string, error) { return "it looked", tc.write },
				},
			}, "compaction.completed", "compaction.failed")
			require.NotEmpty(t, got)
			assert.Regexp(t, "^cmp_", got[0]["compaction"])
			for _, figure := range []string{"tokens", "tokens_before", "tokens_after"} {
				if n, ok := got[0][figure]; ok {
					assert.Positive(t, n, figure)
				}
				delete(got[0], figure)
			}
			delete(got[0], "compaction")
			if failed, ok := got[0]["error"].(map[string]any); ok && tc.write == nil {
				assert.Contains(t, failed["text"], "all of it is evidence")
				delete(got[0], "error")
			}
			assert.Equal(t, tc.want, got[0])
		})
	}
}

// A sub-agent begins, waits for a person, goes on, and ends.
func TestSubagent(t *testing.T) {
	ask := hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("it looks") })
	clerk := builder.New().WithName("clerk").
		WithDriver(agenttest.Script(agenttest.Call("look", "{}").WithTokens(3, 1), agenttest.Say("Seen."))).
		With(capability.UseTools(look), capability.UseHooks(ask))
	got := told(t, agenttest.Script(agenttest.Call("task", `{"agent":"clerk","instruction":"Look."}`), agenttest.Say("Done.")),
		[]capability.Capability{
			capability.UseSubagents{Agents: []capability.Subagent{{Agent: clerk, Description: "Looks."}}},
			capability.UseApproval(agent.ParkApprover),
		}, "subagent.started", "subagent.parked", "subagent.resumed", "subagent.completed")
	require.Len(t, got, 4)
	id := got[0]["subagent"]
	assert.Regexp(t, "^run_", id)
	of := func(kind string, more map[string]any) map[string]any {
		out := map[string]any{"type": kind, "call_id": "call_1_1", "subagent": id, "agent": "clerk", "depth": 1.0}
		maps.Copy(out, more)
		return out
	}
	assert.Equal(t, []map[string]any{
		of("subagent.started", map[string]any{"max_depth": 2.0}), of("subagent.parked", nil), of("subagent.resumed", nil),
		of("subagent.completed", map[string]any{
			"status": "done", "usage": map[string]any{"input_tokens": 3.0, "output_tokens": 1.0, "cost_usd": nil},
		}),
	}, got)
}

func TestKit(t *testing.T) {
	second := agenttest.Script(agenttest.Say("Hello."))
	assert.Equal(t, []map[string]any{{
		"type": "inference.fell_back", "step": 0.0, "from": 0.0, "to": 1.0,
		"error": map[string]any{"kind": "unknown", "text": "too busy"},
	}}, told(t, agenttest.Script(agenttest.Fail(errors.New("too busy"))),
		[]capability.Capability{kit.ModelFallback{Drivers: []agent.Driver{second}}}, "inference.fell_back"))

	choose := func(err error) []capability.Capability {
		return []capability.Capability{capability.UseTools(look), kit.ToolSelection{
			Select: func(context.Context, agent.State, []agent.ToolSpec) ([]string, error) { return nil, err },
		}}
	}
	assert.Equal(t, []map[string]any{{"type": "tools.selected", "step": 0.0, "tools": []any{}, "hidden": 1.0}},
		told(t, agenttest.Script(agenttest.Say("Hello.")), choose(nil), "tools.selected"))
	assert.Equal(t, []map[string]any{{
		"type": "tools.selected", "step": 0.0, "tools": []any{"look"}, "hidden": 0.0,
		"error": map[string]any{"kind": "unknown", "text": "no idea"},
	}}, told(t, agenttest.Script(agenttest.Say("Hello.")), choose(errors.New("no idea")), "tools.selected"))

	edited := told(t, looking(), []capability.Capability{capability.UseTools(look), kit.ContextEditing{Results: 2, Keep: 1}}, "context.edited")
	require.Len(t, edited, 1)
	assert.Equal(t, []any{3.0, 2.0}, []any{edited[0]["step"], edited[0]["results"]})
	assert.Greater(t, edited[0]["tokens_before"], edited[0]["tokens_after"])
}

// What is said of the input is what hooks let in, of the second run of a session its own.
func TestInput(t *testing.T) {
	var text bytes.Buffer
	redact := hooks.On(hooks.AtInputSubmitted, "redact", func(_ context.Context, c hooks.InputContext) hooks.Result {
		var clean []agent.Message
		for _, m := range c.Messages() {
			clean = append(clean, agent.UserText(strings.ReplaceAll(m.Text(), "SECRET-1", "[redacted]")))
		}
		return c.Rewrite(clean)
	})
	a := builder.New().WithDriver(looking()).With(capability.UseTools(look), capability.UseHooks(redact)).
		WithObserver(New(&text)).Build().MustGet()
	s := a.Run(t.Context(), agent.NewState(), agent.UserText("It is SECRET-1."), agent.UserText("Look.")).MustGet()
	_ = a.Run(t.Context(), s, agent.UserText("Again.")) // the script is over
	var got []any
	for line := range bytes.Lines(text.Bytes()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal(line, &fields))
		if fields["type"] == "inference.started" {
			got = append(got, fields["input"])
		}
	}
	assert.Equal(t, []any{[]any{"It is [redacted].", "Look."}, nil, nil, nil, []any{"Again."}}, got)
	assert.NotContains(t, text.String(), "SECRET-1")
}
