package agenttest

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// TestDriver tests a driver against the contract of agent.Driver, and also of agent.Streamer if it is one. NewDriver is
// called once for each part of the test. It returns a driver that always gives the same answer to a state with the user
// message "hello" and no tools.
func TestDriver(t *testing.T, newDriver func(t *testing.T) agent.Driver) {
	t.Helper()
	hello := agent.NewState(agent.UserText("hello"))

	t.Run("answers with a message of the assistant", func(t *testing.T) {
		step, err := newDriver(t).Next(t.Context(), hello).Get()
		require.NoError(t, err)
		checkStep(t, step)
	})
	t.Run("serves several runs at once", func(t *testing.T) {
		d := newDriver(t)
		together(func(int) {
			step, err := d.Next(t.Context(), hello.With()).Get()
			if assert.NoError(t, err) {
				checkStep(t, step)
			}
		})
	})
	t.Run("returns when its context is done before it is asked", func(t *testing.T) {
		d := newDriver(t)
		soon(t, "Next", func() { d.Next(newCancelledContext(), hello) })
	})
	t.Run("returns when its context ends while it is asked", func(t *testing.T) {
		d := newDriver(t)
		ctx, cancel := context.WithCancel(t.Context())
		soon(t, "Next", func() {
			go cancel()
			d.Next(ctx, hello)
		})
		<-ctx.Done()
	})
	t.Run("does not keep the state", func(t *testing.T) {
		d := newDriver(t)
		checkForgets(t, "the driver", func(s agent.State) { d.Next(t.Context(), s) })
		_, err := d.Next(t.Context(), hello).Get() // it still works, and is still reachable
		require.NoError(t, err)
	})
	t.Run("streams what it answers", func(t *testing.T) {
		streamer, ok := newDriver(t).(agent.Streamer)
		if !ok {
			t.Skip("the driver does not stream, and need not")
		}
		testStreamer(t, streamer, hello)
	})
}

// checkStep checks that step is a valid reply from a driver.
func checkStep(t *testing.T, step agent.Step) {
	t.Helper()
	assert.Equal(t, agent.RoleAssistant, step.Message.Role(), "the role of the reply")
	ids := map[string]bool{}
	for i, c := range step.Message.Calls() {
		assert.NotEmpty(t, c.Name, "the name of the tool in call %d", i)
		assert.False(t, ids[c.ID] && c.ID != "", "call %d has the id %q, as another call has", i, c.ID)
		ids[c.ID] = true
	}
	for name, n := range map[string]int64{
		"input": step.Usage.InputTokens, "output": step.Usage.OutputTokens, "cache read": step.Usage.CacheReadTokens,
		"cache write": step.Usage.CacheWriteTokens, "reasoning": step.Usage.ReasoningTokens,
	} {
		assert.GreaterOrEqual(t, n, int64(0), "%s tokens", name)
	}
	assert.GreaterOrEqual(t, step.Usage.Cost.OrEmpty(), 0.0, "the cost")
	assert.Zero(t, step.Prior.Len()+step.Effects.Len(), "effects are for middleware")
	assert.Nil(t, step.Stop, "a stop is for middleware")
}

func testStreamer(t *testing.T, d agent.Streamer, s agent.State) {
	t.Helper()
	want, err := d.Next(t.Context(), s).Get()
	require.NoError(t, err)

	var text, reasoning strings.Builder
	calls := map[int]agent.ToolCall{}
	var busy, returned atomic.Bool
	got, err := d.Stream(t.Context(), s, func(delta agent.Delta) {
		assert.False(t, returned.Load(), "emit is called after Stream returned")
		assert.False(t, busy.Swap(true), "emit is called while it is being called")
		defer busy.Store(false)
		text.WriteString(delta.Text)
		reasoning.WriteString(delta.Reasoning)
		if delta.Call == (agent.ToolCall{}) {
			return
		}
		c, begun := calls[delta.CallIndex]
		if !begun {
			assert.NotEmpty(t, delta.Call.Name, "the first piece of call %d has no name", delta.CallIndex)
			c.ID, c.Name, c.Index = delta.Call.ID, delta.Call.Name, delta.CallIndex
		}
		c.Arguments += delta.Call.Arguments
		calls[delta.CallIndex] = c
	}).Get()
	returned.Store(true)
	require.NoError(t, err)
	checkStep(t, got)

	assert.Equal(t, want.Message.Text(), got.Message.Text(), "Stream answers with another text than Next")
	assert.Equal(t, want.FinishReason, got.FinishReason, "Stream answers with another finish reason than Next")
	assert.Equal(t, got.Message.Text(), text.String(), "the pieces of text are not the whole")
	var thought strings.Builder
	for _, part := range got.Message.Content().Parts() {
		if part.Kind == agent.PartReasoning {
			thought.WriteString(part.Text)
		}
	}
	assert.Equal(t, thought.String(), reasoning.String(), "the pieces of reasoning are not the whole")
	assert.Len(t, calls, got.Message.CallCount(), "the pieces are of other calls than the whole")
	for i, c := range got.Message.Calls() {
		assert.Equal(t, c, calls[i], "the pieces of call %d are not the whole", i)
	}
	if want.Message.CallCount() == got.Message.CallCount() {
		for i, c := range got.Message.Calls() {
			assert.Equal(t, want.Message.Call(i).Name, c.Name, "Stream answers with other calls than Next")
			assert.Equal(t, want.Message.Call(i).Arguments, c.Arguments, "Stream answers with other calls than Next")
		}
	} else {
		assert.Equal(t, want.Message.CallCount(), got.Message.CallCount(), "Stream answers with other calls than Next")
	}
}
