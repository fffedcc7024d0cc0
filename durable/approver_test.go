package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// asksAlways requires approval of every call.
func asksAlways(q agent.Question) capability.Capability {
	return capability.UseHooks(hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.AskAbout(q) }))
}

// answering answers every call in memory.
func answering(a agent.Approval) capability.Capability {
	return capability.UseApproval(agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) { return a, nil }))
}

// answersOf returns what the audit log of a store says about answers, newest first.
func answersOf(t *testing.T, store durable.Audits) []durable.Answered {
	t.Helper()
	records, err := store.AuditRecords(t.Context(), durable.AuditFilter{Kind: durable.AuditAnswer})
	require.NoError(t, err)
	var all []durable.Answered
	for _, r := range records {
		told, err := durable.AnsweredOf(r)
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now(), r.At, time.Minute)
		all = append(all, told)
	}
	return all
}

// The audit log has what a person answers while the run executes, in the commit of the entry with the answer.
func TestAnswersInMemoryAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer agent.Approval
		commit string
	}{
		"approve":        {agent.Approval{Verdict: agent.Approve, By: "ann"}, "reply decision call: call_0"},
		"with arguments": {agent.Approval{Verdict: agent.Approve, By: "ann", Arguments: `{ }`}, "reply decision decision call: call_0"},
		"an identity":    {agent.Approval{Verdict: agent.Approve, By: "Ann A.", Identity: "ann"}, "reply decision call: call_0"},
		"and continue":   {agent.Approval{Verdict: agent.RejectAndContinue, By: "ann", Reason: "no"}, "reply decision result step: call_0"},
		"reject":         {agent.Approval{Verdict: agent.RejectAndEnd, By: "ann", Reason: "no"}, "reply decision result step: call_0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, store := committer(t, 1, time.Hour, asksAlways(agent.Question{Reason: "May it?", Within: time.Hour}), answering(tc.answer))
			final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			assert.Equal(t, []string{tc.commit}, store.audit)
			records, err := store.AuditRecords(t.Context(), durable.AuditFilter{Run: final.Run().ID})
			require.NoError(t, err)
			require.Len(t, records, 1)
			r := records[0]
			assert.Equal(t, []string{"add", "ann"}, []string{r.Subject, r.By})
			assert.NotEmpty(t, r.Answer.Wait)
			assert.NotEqual(t, r.Answer.Subject, r.Answer.Wait, "the card, and the call")
			assert.Equal(t, tc.answer.Verdict == agent.RejectAndEnd, r.Answer.Ends)
			assert.False(t, r.Answer.More)
			told := answersOf(t, store)[0]
			assert.WithinDuration(t, r.At, told.At, time.Second)
			assert.Len(t, told.Covers, 1)
			told.At, told.Covers = time.Time{}, nil
			assert.Equal(t, tc.answer, told.Approval)
			assert.Equal(t, agent.ToolCall{ID: "call_0", Name: "add", Arguments: "{}"}, told.Call)
			assert.Equal(t, []string{"ask"}, told.AskedBy)
		})
	}
}

// Each answer is written with the call that it is about.
func TestAnswersOfCallsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	a, store := committer(t, 3, time.Hour, asksAlways(agent.Question{}), answering(agent.Approval{Verdict: agent.Approve, By: "ann"}))
	_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"reply decision decision decision call: call_0", "result call: call_1", "result call: call_2"}, store.audit)
}

// What hooks, deadlines and waits decide is not recorded as an answer given in memory.
func TestWhatIsNotAnAnswerInMemory(t *testing.T) {
	t.Parallel()
	hook := hooks.On(hooks.AtInterventionRequested, "standing", func(_ context.Context, c hooks.InterventionContext) hooks.Result {
		return c.Approve("always")
	})
	slow := agent.ApproverFunc(func(ctx context.Context, _ agent.State, _ *agent.Prepared) (agent.Approval, error) {
		<-ctx.Done()
		return agent.Approval{}, context.Cause(ctx)
	})
	for name, more := range map[string][]capability.Capability{
		"a hook":     {asksAlways(agent.Question{}), capability.UseHooks(hook), answering(agent.Approval{Verdict: agent.Approve, By: "ann"})},
		"a deadline": {asksAlways(agent.Question{Within: time.Millisecond, OnTimeout: agent.Approve}), capability.UseApproval(slow)},
		"no person":  {asksAlways(agent.Question{})},
		"no answer":  {asksAlways(agent.Question{}), answering(agent.Approval{Verdict: agent.NobodyToAsk})},
		"later":      {asksAlways(agent.Question{}), capability.UseApproval(agent.ParkApprover)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, store := committer(t, 1, time.Hour, more...)
			_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			assert.Empty(t, answersOf(t, store))
		})
	}
}

// One call is answered in memory, the other one in the store: the audit log has each answer once.
func TestAnswersInMemoryAndInTheStore(t *testing.T) {
	t.Parallel()
	store, w := openStore(t), newWorld()
	k := durable.Keep(store, durable.Options{})
	later := agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
		if p.Original.ID == "a" {
			return agent.Approval{Verdict: agent.Approve, By: "ann"}, nil
		}
		return agent.Approval{Verdict: agent.Park}, nil
	})
	a := w.agent(t, k, asks("guard"), capability.UseApproval(later))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.True(t, s.Parked())
	require.Len(t, answersOf(t, store), 1, "written when the run parks")
	require.NoError(t, durabletest.Approve(t.Context(), store, s.Run().ID, "b", agent.Approval{Verdict: agent.Approve, By: "bob"}))
	s, err = k.Resume(t.Context(), a, s.Run().ID, durable.TakeFree).Get()
	require.NoError(t, err)
	require.Equal(t, agent.StatusDone, s.Status())
	var names []string
	for _, told := range answersOf(t, store) {
		names = append(names, told.By+" "+told.Call.ID)
	}
	assert.Equal(t, []string{"bob b", "ann a"}, names)
}

// An answer that no journal has is not in the audit log.
func TestAnAnswerThatIsLost(t *testing.T) {
	t.Parallel()
	inner := openStore(t)
	dying := &brittle{Store: inner}
	dying.left.Store(1 << 40)
	k := durable.Keep(dying, durable.Options{Patience: -1})
	a := newWorld().agent(t, k, asks("guard"), capability.UseApproval(agent.ApproverFunc(
		func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
			dying.left.Store(0)
			return agent.Approval{Verdict: agent.Approve, By: "ann"}, nil
		})))
	_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.Error(t, err)
	assert.Empty(t, answersOf(t, inner))
}

// An answer about a call of a sub-agent is about the run in whose journal the sub-agent is.
func TestAnAnswerToASubagentInMemory(t *testing.T) {
	t.Parallel()
	store := &commits{Store: openStore(t)}
	f := newFamily()
	f.asks = time.Hour
	f.approver = agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		return agent.Approval{Verdict: agent.Approve, By: "ann"}, nil
	})
	final, err := f.build(t, durable.Keep(store, durable.Options{})).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.Equal(t, agent.StatusDone, final.Status())
	records, err := store.AuditRecords(t.Context(), durable.AuditFilter{Run: final.Run().ID})
	require.NoError(t, err)
	var waits []string
	for _, r := range records {
		waits = append(waits, r.Answer.Subject)
	}
	assert.ElementsMatch(t, []string{"n/l/a", "s/l/a"}, waits)
}

// The input that a person gives in memory is in the audit log; what does not fit is not.
func TestInputInMemoryIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer agent.Approval
		want   []string
	}{
		"fits":         {agent.Approval{Verdict: agent.Approve, By: "ann", Input: `{"name":"Bo"}`}, []string{`approve {"name":"Bo"}`}},
		"declined":     {agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"}, []string{"reject_and_continue "}},
		"does not fit": {agent.Approval{Verdict: agent.Approve, By: "ann", Input: `{"name":7}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openStore(t)
			a := asksForName(t, durable.Keep(store, durable.Options{}), answering(tc.answer))
			_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			var got []string
			for _, told := range answersOf(t, store) {
				got = append(got, told.Verdict.String()+" "+told.Input)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// asksForName returns an agent with one call, which asks for a name.
func asksForName(t *testing.T, k *durable.Keeper, more ...capability.Capability) *agent.Agent {
	t.Helper()
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		if s.RunStepCount() > 0 {
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "c", Name: "greet", Arguments: `{}`})}, nil
	})
	greet := toolexec.CallFunc(agent.ToolSpec{Name: "greet"}, func(_ context.Context, c toolexec.Call, _ struct{}) (string, error) {
		if len(c.Given) == 0 {
			return "", &agent.InputError{Request: agent.InputRequest{
				By: "the desk", Message: "What is your name, please?", Schema: `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`,
			}, State: []byte("state of the desk")}
		}
		if !c.Given[0].Accepted {
			return "", errors.New("declined")
		}
		return "Hello " + c.Given[0].Content, nil
	})
	a, err := builder.New().WithDriver(driver).With(capability.UseTools(greet), capability.UseDurability{Keeper: k}).With(more...).Build().Get()
	require.NoError(t, err)
	return a
}
