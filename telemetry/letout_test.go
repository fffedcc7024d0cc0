package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// An error says more than its result: a panic's value, or text that was cut off. Hooks see only the result.
func TestOnlyTheResultIsTold(t *testing.T) {
	long := strings.Repeat("x", 1<<19)
	for name, body := range map[string]func(context.Context, nothing) (string, error){
		"panic": func(context.Context, nothing) (string, error) { panic("lost " + secret) },
		"long":  func(context.Context, nothing) (string, error) { return "", errors.New(long + secret + long) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSink(t)
			use := s.use()
			use.Content = true
			run(t, build(t, agenttest.Script(agenttest.Call("a", `{}`), agenttest.Say("hi")), use,
				capability.UseTools(toolexec.Func("a", "A tool.", body))))
			span := s.span(t, "execute_tool a")
			assert.Equal(t, codes.Error, span.Status.Code)
			assert.Equal(t, get(span, "gen_ai.tool.call.result"), span.Status.Description)
			assert.NotContains(t, s.everything(t), secret)
		})
	}
}

// counted counts the spans that are open.
type counted struct {
	sdktrace.SpanProcessor

	open map[string]int
}

func (c counted) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) { c.open[s.Name()]++ }
func (c counted) OnEnd(s sdktrace.ReadOnlySpan)                       { c.open[s.Name()]-- }
func (counted) Shutdown(context.Context) error                        { return nil }
func (counted) ForceFlush(context.Context) error                      { return nil }

// bursting is an executor that is not ours, and panics.
type bursting struct{ agent.Executor }

func (bursting) Execute(context.Context, agent.State, *agent.Prepared) mo.Result[*agent.ToolResult] {
	panic("lost " + secret)
}

// A panic that goes through the run leaves no span open, and each of those that it
// went through says so.
func TestAPanicEndsTheSpansOfItsCall(t *testing.T) {
	open := counted{open: map[string]int{}}
	s := newSink(t, sdktrace.WithSpanProcessor(open))
	use := s.use()
	use.Content = true
	bursts := capability.Func(func(p capability.Plan) (capability.Plan, error) {
		return p.WrapExecutor(capability.Inside, "bursts", func(inner agent.Executor) agent.Executor { return bursting{inner} }), nil
	})
	a := build(t, agenttest.Script(agenttest.Call("a", `{}`)), use, capability.UseTools(says("a", "a", nil)), bursts)
	require.Panics(t, func() { a.Run(t.Context(), agent.NewState(), agent.UserText("go")) })
	for name, left := range open.open {
		assert.Zero(t, left, "spans called %q that never ended", name)
	}
	for _, name := range []string{"execute_tool a", "invoke_agent helper"} {
		span := s.span(t, name)
		assert.Equal(t, codes.Error, span.Status.Code, name)
		assert.Equal(t, "panic", get(span, "error.type"), name)
	}
	assert.NotContains(t, s.everything(t), secret)
	assert.Contains(t, s.metrics(t), "gen_ai.invoke_agent.duration [s] {type=panic name=helper status=failed} 1")
}

// A model that panics.
func TestAPanicEndsTheSpanOfItsTurn(t *testing.T) {
	s := newSink(t)
	a := build(t, agenttest.Script(agenttest.Play(func(context.Context, agent.State) (agent.Step, error) { panic("oh no") })), s.use())
	require.Panics(t, func() { a.Run(t.Context(), agent.NewState(), agent.UserText("go")) })
	assert.Equal(t, "panic", get(s.span(t, "chat small"), "error.type"))
	assert.Equal(t, codes.Error, s.span(t, "chat small").Status.Code)
}

// No label contains a name that a model made up, and long names are shortened on spans.
func TestNamesThatAModelMakesUp(t *testing.T) {
	s := newSink(t)
	see := hooks.On(hooks.AtPostToolUse, "sees", func(_ context.Context, c hooks.ToolResultContext) hooks.Result { return c.Replace("no") })
	turn := agenttest.Call("odd-"+strings.Repeat("x", 1<<16), `{}`)
	for i := range 300 {
		turn = turn.Call(fmt.Sprintf("odd-%d", i), `{}`)
	}
	run(t, build(t, agenttest.Script(turn, agenttest.Say("hi")), s.use(), capability.UseTools(says("a", "a", nil)), capability.UseHooks(see)))
	assert.Len(t, s.metrics(t), 4)
	assert.NotContains(t, strings.Join(s.metrics(t), "\n"), "odd-")
	for _, span := range s.spans.GetSpans() {
		assert.Less(t, len(span.Name), 200)
		assert.Less(t, len(get(span, "gen_ai.tool.name")), 200)
	}
	assert.NotContains(t, s.everything(t), strings.Repeat("x", 200))
}
