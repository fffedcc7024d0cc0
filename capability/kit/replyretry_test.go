package kit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/processor"
)

// A model that says nothing at first.
func ExampleReplyRetry() {
	model := agenttest.Script(agenttest.Tries(agenttest.Say(""), agenttest.Say("Here I am.")))
	tell := agent.ObserverFunc(func(_ context.Context, e agent.Event) {
		if r, ok := e.(processor.Retrying); ok {
			fmt.Println(r.Err)
		}
	})
	a := builder.New().WithDriver(model).WithObserver(tell).With(kit.ReplyRetry{}).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("are you there?")).MustGet()
	fmt.Println(final.Answer(), final.RunStepCount(), "step")
	// Output:
	// the reply is empty
	// Here I am. 1 step
}

func TestReplyRetryAsksAgain(t *testing.T) {
	empty, good := agenttest.Say(" "), agenttest.Say("yes")
	cut := agenttest.Say("ye").WithFinish(agent.FinishLength)
	for name, tc := range map[string]struct {
		retry  kit.ReplyRetry
		tries  []agenttest.Turn
		asked  int
		answer string
		reason agent.StopReason
	}{
		"not after an answer":      {kit.ReplyRetry{}, []agenttest.Turn{good}, 1, "yes", agent.StopCompleted},
		"after nothing":            {kit.ReplyRetry{}, []agenttest.Turn{empty, good}, 2, "yes", agent.StopCompleted},
		"after half":               {kit.ReplyRetry{}, []agenttest.Turn{cut, good}, 2, "yes", agent.StopCompleted},
		"twice in all":             {kit.ReplyRetry{}, []agenttest.Turn{empty, cut, good}, 2, "ye", agent.StopFinishReason},
		"as often as is said":      {kit.ReplyRetry{Attempts: 3}, []agenttest.Turn{empty, cut, good}, 3, "yes", agent.StopCompleted},
		"and then it is empty":     {kit.ReplyRetry{Attempts: 3}, []agenttest.Turn{empty}, 3, " ", agent.StopEmptyReply},
		"once":                     {kit.ReplyRetry{Attempts: 1}, []agenttest.Turn{empty}, 1, " ", agent.StopEmptyReply},
		"not after what was taken": {kit.ReplyRetry{}, []agenttest.Turn{agenttest.Say("").WithFinish(agent.FinishFilter), good}, 1, "", agent.StopFinishReason},
	} {
		t.Run(name, func(t *testing.T) {
			model := agenttest.Script(agenttest.Call("look", `{}`).WithFinish(agent.FinishLength), agenttest.Tries(tc.tries...))
			final := done(t, built(t, model, tc.retry, capability.UseTools(tool("look", "a tree"))), agent.NewState(), "go")
			assert.Len(t, model.Calls(), 1+tc.asked, "a reply with calls is none of its business")
			assert.Equal(t, tc.answer, final.Answer())
			assert.Equal(t, tc.reason, final.StopSignal().Reason)
			assert.Equal(t, 2, final.RunStepCount(), "what is dropped is no step")
			assert.Equal(t, 4, final.MessageCount())
		})
	}
	assert.Contains(t, wrong(t, kit.ReplyRetry{Attempts: -1}), `capability "reply-retry": attempts are -1`)
}

// What is dropped was paid for, and no attempt is made beyond a limit.
func TestReplyRetryKeepsToTheBudget(t *testing.T) {
	empty := agenttest.Say("").WithTokens(10, 0).WithCost(0.1)
	for name, tc := range map[string]struct {
		guard  capability.Capability
		asked  int
		tokens int64
		reason agent.StopReason
	}{
		"no limit":          {capability.UseGuards{}, 3, 30, agent.StopEmptyReply},
		"tokens":            {capability.UseGuards{Tokens: 20}, 2, 20, agent.StopTokenLimit},
		"cost":              {capability.UseGuards{Cost: 0.05}, 1, 10, agent.StopCostLimit},
		"steps, of one":     {capability.UseGuards{Steps: 1}, 3, 30, agent.StopStepsLimit},
		"a hook that stops": {capability.UseHooks(stopAt(2)), 1, 10, agent.StopByHook},
	} {
		t.Run(name, func(t *testing.T) {
			model := agenttest.Script(empty)
			final := done(t, built(t, model, kit.ReplyRetry{Attempts: 3}, tc.guard), agent.NewState(), "go")
			assert.Len(t, model.Calls(), tc.asked)
			assert.Equal(t, tc.tokens, final.RunUsage().Tokens())
			assert.Equal(t, tc.tokens, final.Spending().Usage.Tokens())
			assert.Equal(t, tc.reason, final.StopSignal().Reason)
			assert.Equal(t, 1, final.RunStepCount(), "the reply that there is stays")
			assert.Equal(t, tc.tokens, through(t, final).RunUsage().Tokens())
		})
	}
}

// stopAt stops the run before its n-th model call.
func stopAt(n int) hooks.Hook {
	calls := agent.NewScratch[int](nil)
	return hooks.On(hooks.AtPreInference, "stop", func(_ context.Context, c hooks.InferenceContext) hooks.Result {
		asked := calls.Get(c.State())
		*asked++
		if *asked < n {
			return c.Allow()
		}
		return c.Stop("enough")
	})
}

// A reply that was cut is asked for with more room, where there was a limit, and for that step alone.
func TestReplyRetryGivesMoreRoom(t *testing.T) {
	cut := agenttest.Say("ye").WithFinish(agent.FinishLength)
	model := agenttest.Script(agenttest.Tries(cut, cut, agenttest.Say("yes")), agenttest.Say("and no"))
	a, err := builder.New().WithDriver(model).With(kit.ReplyRetry{Attempts: 4}).
		WithRequest(func(r agent.Request) agent.Request { r.MaxOutputTokens = 100; return r }).Build().Get()
	require.NoError(t, err)
	s := done(t, a, agent.NewState(), "go")
	done(t, a, s, "go on")
	assert.Equal(t, []int{100, 200, 400, 100}, lo.Map(model.Calls(), func(a agenttest.Asking, _ int) int { return a.Request.MaxOutputTokens }))
}

// Who listens to the stream is told that what it heard is dropped.
func TestReplyRetryTellsTheStream(t *testing.T) {
	cut := agenttest.Say("one tw").WithFinish(agent.FinishLength)
	a := built(t, agenttest.Script(agenttest.Tries(cut, agenttest.Say("one two"))), kit.ReplyRetry{})
	var text strings.Builder
	var dropped []string
	for progress, err := range a.Stream(t.Context(), agent.NewState(), agent.UserText("count")) {
		require.NoError(t, err)
		switch e := progress.Event.(type) {
		case processor.Retrying:
			require.ErrorIs(t, e.Err, kit.ErrCutReply)
			dropped = append(dropped, text.String())
			text.Reset()
		default:
			if progress.Delta != nil {
				text.WriteString(progress.Delta.Text)
			}
		}
	}
	assert.Equal(t, []string{"one tw"}, dropped)
	assert.Equal(t, "one two", text.String())
}

// The journal has the reply that counts.
func TestReplyRetryOfARunThatIsKept(t *testing.T) {
	store := memory.New()
	defer store.Close()
	model := agenttest.Script(agenttest.Tries(agenttest.Say("").WithTokens(10, 0), agenttest.Say("yes").WithTokens(10, 1)))
	a := built(t, model, kit.ReplyRetry{}, capability.UseDurability{Keeper: durable.Keep(store, durable.Options{})})
	final := done(t, a, agent.NewState(), "go")
	loaded, err := durable.Load(t.Context(), store, final.Run().ID)
	require.NoError(t, err)
	assert.Equal(t, "yes", loaded.Answer())
	assert.Equal(t, 1, loaded.RunStepCount())
	assert.EqualValues(t, 21, loaded.RunUsage().Tokens())
}
