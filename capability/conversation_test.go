package capability_test

import (
	"context"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/hooks"
)

// Effects from a hook at the start of a conversation are stored with the run. A process that resumes the run has them.
// It asks no hook at ConversationStart, and closes its own session of the conversation.
func TestConversationOfADurableRun(t *testing.T) {
	store := memory.New()
	defer store.Close()
	var sources []agent.ConversationSource
	var ends []hooks.Conversation
	both := capability.UseHooks(
		hooks.On(hooks.AtConversationStart, "welcome", func(_ context.Context, c hooks.ConversationContext) hooks.Result {
			sources = append(sources, c.Conversation().Source)
			return c.Allow(agent.AddContext("be polite"))
		}),
		hooks.Observe(hooks.AtConversationEnd, "end", func(_ context.Context, c hooks.ConversationEndContext) error {
			ends = append(ends, c.Conversation())
			return nil
		}),
	)
	kept := func(owner string) (*durable.Keeper, *agent.Agent) {
		k := durable.Keep(store, durable.Options{Owner: owner})
		return k, clerk(t, append(asks(), both, capability.UseDurability{Keeper: k})...)
	}
	_, a := kept("one")
	parked, err := a.Session(agent.NewState()).Run(t.Context(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.True(t, parked.Waiting())
	require.NoError(t, durabletest.Approve(t.Context(), store, parked.Run().ID, parked.Interventions()[0].CallID(), agent.Approval{Verdict: agent.Approve}))

	k, b := kept("two")
	final, err := k.Resume(t.Context(), b, parked.Run().ID, durable.TakeFree).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, []agent.ConversationSource{agent.ConversationStartup}, sources)
	session := b.Session(final)
	next, err := session.Run(t.Context(), agent.UserText("more")).Get()
	require.NoError(t, err)
	require.NoError(t, session.Close(t.Context()))

	assert.Equal(t, []agent.ConversationSource{agent.ConversationStartup, agent.ConversationResume}, sources)
	assert.Equal(t, []hooks.Conversation{{Reason: agent.ClosedOtherwise, Turns: 2}}, ends)
	added := 0
	for _, m := range next.Messages() {
		added += lo.Ternary(m.Text() == "be polite", 1, 0)
	}
	assert.Equal(t, 2, added, "once for each start")
}
