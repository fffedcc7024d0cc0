package durable_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// payer is a run of an agent that pays after an approval.
type payer struct {
	t      *testing.T
	store  durable.Store
	keeper *durable.Keeper
	hooks  []hooks.Hook
	turns  []agenttest.Turn
	ran    atomic.Int64
	during func(ctx context.Context) error
	// approver decides at once; nil parks the run.
	approver agent.Approver
}

func newPayer(t *testing.T, hooks ...hooks.Hook) *payer {
	t.Helper()
	store := openStore(t)
	call := agenttest.Reply(agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "c", Name: "pay", Arguments: `{"n":1}`}), FinishReason: agent.FinishToolCalls})
	return &payer{t: t, store: store, keeper: durable.Keep(store, durable.Options{}), hooks: hooks, turns: []agenttest.Turn{call, agenttest.Say("done")}}
}

func (p *payer) build() *agent.Agent {
	p.t.Helper()
	pay := toolexec.Func("pay", "Pays.", func(ctx context.Context, _ struct {
		N int `json:"n"`
	}) (string, error) {
		p.ran.Add(1)
		if p.during != nil {
			return "", p.during(ctx)
		}
		return "paid", nil
	})
	a, err := builder.New().WithName("x").WithDriver(agenttest.Script(p.turns...)).With(capability.UseTools(pay),
		capability.UseHooks(p.hooks...), capability.UseApproval(cmp.Or(p.approver, agent.ParkApprover)), capability.UseDurability{Keeper: p.keeper}).Build().Get()
	require.NoError(p.t, err)
	return a
}

// park runs the agent until it waits, and returns what it waits for.
func (p *payer) park() durable.Wait {
	p.t.Helper()
	s, err := p.build().RunWith(p.t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
	require.NoError(p.t, err)
	require.True(p.t, s.Waiting())
	return p.wait()
}

// wait returns the only open wait.
func (p *payer) wait() durable.Wait {
	p.t.Helper()
	all, err := p.store.OpenWaits(p.t.Context(), durable.WaitFilter{Run: "run"})
	require.NoError(p.t, err)
	require.Len(p.t, all, 1)
	return all[0]
}

func (p *payer) resume() agent.State {
	p.t.Helper()
	s, err := p.keeper.Resume(p.t.Context(), p.build(), "run", durable.TakeFree).Get()
	require.NoError(p.t, err)
	return s
}

// answer answers a wait, and the same again twice, which is told and changes nothing.
func (p *payer) answer(w durable.Wait, by string) {
	p.t.Helper()
	_, err := durable.Decide(p.t.Context(), p.store, w, agent.Approval{Verdict: agent.Approve, By: by})
	require.NoError(p.t, err)
	p.refused(w, by)
	p.refused(w, by)
}

// refused gives an answer that was used.
func (p *payer) refused(w durable.Wait, by string) {
	p.t.Helper()
	_, err := durable.Decide(p.t.Context(), p.store, w, agent.Approval{Verdict: agent.Approve, By: by})
	require.ErrorIs(p.t, err, durable.ErrAnswered)
	told, ok := errors.AsType[*durable.NotOpenError](err)
	require.True(p.t, ok)
	require.Len(p.t, told.Answers, 1)
	assert.Equal(p.t, by, told.Answers[0].By, "its author can tell that it counted")
}

// LH-66, LH-71: on resume the hook asks the same call with another field: an answer to the earlier question does not count.
func TestAnswerCountsForTheSameQuestionOnly(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]agent.Question{
		"approvers": {Reason: "below the limit", Approvers: []string{"cfo"}}, "quorum": {Reason: "below the limit", Quorum: 2},
		"reason": {Reason: "THE ACCOUNT WAS REPORTED AS STOLEN: pay anyway?"},
		"same":   {Reason: "below the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			var phase atomic.Bool
			p := newPayer(t, hooks.On(hooks.AtPreToolUse, "limit", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				if phase.Load() {
					return c.AskAbout(later)
				}
				return c.AskAbout(agent.Question{Reason: "below the limit"})
			}))
			first := p.park()
			p.answer(first, "ann")
			phase.Store(true)
			s := p.resume()
			if name == "same" {
				assert.Equal(t, []any{int64(1), agent.StatusDone}, []any{p.ran.Load(), s.Status()})
				return
			}
			require.True(t, s.Waiting())
			p.refused(first, "ann")
			assert.True(t, p.resume().Waiting())
			assert.Zero(t, p.ran.Load())
			assert.NotEqual(t, first.ID, p.wait().ID)
			assert.Equal(t, first.Subject, p.wait().Subject)
		})
	}
}

// LH-66: the answer to one hook's question, sent again, does not answer another hook's question about the same call.
func TestAnOldAnswerIsNotForAnotherControl(t *testing.T) {
	t.Parallel()
	var phase atomic.Bool
	p := newPayer(t,
		hooks.On(hooks.AtPreToolUse, "q1", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("is it the right amount?") }),
		hooks.On(hooks.AtPreToolUse, "q2", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			if phase.Load() {
				return c.Ask("fraud suspected: pay anyway?")
			}
			return c.Pass()
		}))
	first := p.park()
	p.answer(first, "ann")
	phase.Store(true)
	require.True(t, p.resume().Waiting())
	second := p.wait()
	i, err := durable.InterventionOf(second)
	require.NoError(t, err)
	assert.Len(t, i.Questions.Open(), 1, "the first question stays answered")
	p.refused(first, "ann")
	require.True(t, p.resume().Waiting())
	assert.Zero(t, p.ran.Load())
	p.answer(second, "bob")
	assert.Equal(t, agent.StatusDone, p.resume().Status())
	assert.Equal(t, int64(1), p.ran.Load())
	p.refused(second, "bob")
	p.refused(first, "ann")
}

// dying writes nothing more once it is dead, like the store of a process that was killed.
type dying struct {
	durable.Store

	dead atomic.Bool
}

func (s *dying) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	if s.dead.Load() {
		return errors.New("dead")
	}
	return s.Store.Commit(ctx, l, c)
}

// LH-66: after a crash, the old approval of the call does not answer whether the call is repeated.
func TestAnOldAnswerIsNotForDoubt(t *testing.T) {
	t.Parallel()
	p := newPayer(t, hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("pay?") }))
	first := p.park()
	p.answer(first, "ann")
	store, keeper := &dying{Store: p.store}, p.keeper
	p.keeper = durable.Keep(store, durable.Options{Owner: "dies", Patience: -1})
	p.during = func(context.Context) error { store.dead.Store(true); return nil }
	require.Error(t, p.keeper.Resume(t.Context(), p.build(), "run", durable.TakeFree).Error())
	require.Equal(t, int64(1), p.ran.Load())
	p.keeper, p.during = keeper, nil
	s, err := p.keeper.Resume(t.Context(), p.build(), "run", durable.TakeOver).Get()
	require.NoError(t, err)
	require.True(t, s.Waiting(), "a run that was cut off in its call asks whether it is repeated")
	doubt := p.wait()
	assert.Equal(t, durable.WaitDoubt, doubt.Kind)
	p.refused(first, "ann")
	require.True(t, p.resume().Waiting())
	assert.Equal(t, int64(1), p.ran.Load(), "paid once")
}

// A person who answers at once is asked about the same call after every crash: the audit log tells the questions apart.
func TestAnswersAtOnceNameTheirCards(t *testing.T) {
	t.Parallel()
	p := newPayer(t)
	p.approver = agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		return agent.Approval{Verdict: agent.Approve, By: "ann"}, nil
	})
	keeper := p.keeper
	for process := range 3 {
		store := &dying{Store: p.store}
		p.keeper = durable.Keep(store, durable.Options{Owner: fmt.Sprint("dies", process), Patience: -1})
		p.during = func(context.Context) error { store.dead.Store(true); return nil }
		if process == 0 {
			require.Error(t, p.build().RunWith(t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Error())
			continue
		}
		require.Error(t, p.keeper.Resume(t.Context(), p.build(), "run", durable.TakeOver).Error())
	}
	p.keeper, p.during = keeper, nil
	require.NoError(t, p.keeper.Resume(t.Context(), p.build(), "run", durable.TakeOver).Error())
	records, err := p.store.AuditRecords(t.Context(), durable.AuditFilter{Kind: durable.AuditAnswer, Run: "run"})
	require.NoError(t, err)
	cards := lo.Map(records, func(r durable.AuditRecord, _ int) string { return r.Answer.Wait })
	assert.Len(t, cards, 3)
	assert.Len(t, lo.Uniq(cards), 3, "each answer is about another question")
}

// LH-66: the model makes the same call with the same id in a later step: the approval of the earlier one does not count for it.
func TestAnOldAnswerIsNotForALaterStep(t *testing.T) {
	t.Parallel()
	p := newPayer(t, hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("pay?") }))
	p.turns = []agenttest.Turn{p.turns[0], p.turns[0], p.turns[1]}
	first := p.park()
	p.answer(first, "ann")
	require.True(t, p.resume().Waiting())
	second := p.wait()
	assert.Equal(t, first.Subject, second.Subject)
	p.refused(first, "ann")
	require.ErrorIs(t, durable.Approve(t.Context(), p.store, "run", "c", agent.Approval{Verdict: agent.Approve, By: "ann"}), durable.ErrChanged,
		"the id of the call names no question")
	require.True(t, p.resume().Waiting())
	assert.Equal(t, int64(1), p.ran.Load())
}

// The name of a passed deadline is reserved in free text only: a gate of a hook with that name opens, and a verified person may have it.
func TestReservedNameIsFreeTextOnly(t *testing.T) {
	t.Parallel()
	ask := func(q agent.Question) *payer {
		return newPayer(t, hooks.On(hooks.AtPreToolUse, "timeout", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.AskAbout(q) }))
	}
	gate := agent.Question{Kind: agent.QuestionGate, Gate: &agent.Gate{Kind: "file"}}
	for name, c := range map[string]struct {
		asked  agent.Question
		answer agent.Approval
	}{
		"gate":   {gate, agent.Approval{Verdict: agent.Approve, Author: agent.AuthorEvent, By: "timeout"}},
		"person": {agent.Question{Approvers: []string{"timeout"}}, agent.Approval{Verdict: agent.Approve, By: "timeout", Identity: "timeout"}},
	} {
		p := ask(c.asked)
		_, err := durable.Decide(t.Context(), p.store, p.park(), c.answer)
		require.NoError(t, err, name)
		p.resume()
		assert.Equal(t, int64(1), p.ran.Load(), name)
	}
}
