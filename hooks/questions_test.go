package hooks_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// asker returns a control that asks, and answerer a control that answers for the person.
func asker(name string, q agent.Question) hooks.Hook {
	q.Reason = "asked by " + name
	return before(name, func(c hooks.ToolContext) hooks.Result { return c.AskAbout(q) })
}

func answerer(name string, f func(c hooks.InterventionContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtInterventionRequested, name, func(_ context.Context, c hooks.InterventionContext) hooks.Result { return f(c) })
}

func approvesAs(name string) hooks.Hook {
	return answerer(name, func(c hooks.InterventionContext) hooks.Result { return c.Approve("known") })
}

var (
	required = &hooks.Origin{Policy: "p", Rule: "r", Required: true}
	optional = &hooks.Origin{Policy: "o", Rule: "s"}
)

// person answers what it is asked, and remembers it.
type person struct {
	verdict agent.ApprovalVerdict
	asked   []agent.Questions
}

func (p *person) use() capability.Capability {
	return capability.UseApproval(agent.ApproverFunc(func(_ context.Context, _ agent.State, c *agent.Prepared) (agent.Approval, error) {
		p.asked = append(p.asked, c.Questions())
		return agent.Approval{Verdict: p.verdict, By: "ann"}, nil
	}))
}

// Every Ask is a separate question, with the rank of the hook that asks.
func TestEveryAskIsAQuestion(t *testing.T) {
	ann := &person{verdict: agent.Approve}
	w := workWith(t, []hooks.Hook{
		asker("low", agent.Question{Within: time.Hour, OnTimeout: agent.Approve}),
		asker("guard", agent.Question{}).WithPriority(200).From(required),
		asker("other", agent.Question{}).WithPriority(100).From(optional),
	}, wants("bash", ls), ann.use())
	assert.Equal(t, []agent.Questions{{
		{By: "guard", Rule: "r", Reason: "asked by guard", Required: true, Priority: 200},
		{By: "other", Rule: "s", Reason: "asked by other", Priority: 100},
		{By: "low", Reason: "asked by low", Within: time.Hour, OnTimeout: agent.Approve},
	}}, ann.asked)
	assert.Len(t, w.ran, 1, "one answer covers all questions")
}

// A hook sets neither the kind of a question nor its answers: it would answer itself. Approvers have names.
func TestWrongAskAbout(t *testing.T) {
	for _, q := range []agent.Question{
		{Kind: agent.QuestionDoubt}, {Answers: []agent.Approval{{Verdict: agent.Approve}}},
		{Approvers: []string{""}}, {Approvers: []string{"ann", " \t"}}, // an empty role would be among theirs
	} {
		ann := &person{verdict: agent.Approve}
		w := workWith(t, []hooks.Hook{asker("sly", q)}, wants("bash", ls), ann.use())
		assert.Empty(t, ann.asked)
		assert.Empty(t, w.ran, "the hook has failed")
	}
	ann := &person{verdict: agent.Approve}
	workWith(t, []hooks.Hook{asker("sly", agent.Question{By: "guard", Rule: "r", Required: true, Priority: 900})}, wants("bash", ls), ann.use())
	assert.Equal(t, []agent.Questions{{{By: "sly", Reason: "asked by sly"}}}, ann.asked, "who asks is not the hook's to say")
}

// A hook of a required policy may answer questions of required policies in its own or an inner layer. Any other
// question may be answered by a hook whose priority is not lower. The person answers the rest.
func TestWhoMayAnswer(t *testing.T) {
	guard := asker("guard", agent.Question{}).WithPriority(10).From(required)
	plain := asker("plain", agent.Question{}).WithPriority(10)
	for name, c := range map[string]struct {
		asks, answers hooks.Hook
		may           bool
	}{
		"required by none":                 {guard, approvesAs("a").WithPriority(900), false},
		"required by an optional":          {guard, approvesAs("a").WithPriority(900).From(optional), false},
		"required by a required":           {guard, approvesAs("a").From(required), true},
		"required, by a layer further in":  {guard, approvesAs("a").From(&hooks.Origin{Required: true, Layer: 1}), false},
		"required, by a layer further out": {guard.From(&hooks.Origin{Required: true, Layer: 2}), approvesAs("a").From(&hooks.Origin{Required: true, Layer: 1}), true},
		"other by a lower one":             {plain, approvesAs("a").WithPriority(9), false},
		"other by an equal one":            {plain, approvesAs("a").WithPriority(10), true},
		"other by a higher one":            {plain, approvesAs("a").WithPriority(11), true},
		"other by a low required":          {plain, approvesAs("a").From(required), false},
		"optional by an equal one":         {asker("o", agent.Question{}).From(optional), approvesAs("a"), true},
	} {
		t.Run(name, func(t *testing.T) {
			ann := &person{verdict: agent.Approve}
			w := workWith(t, []hooks.Hook{c.asks, c.answers}, wants("bash", ls), ann.use())
			assert.Len(t, w.ran, 1)
			skipped := w.events(hooks.HookSkipped)
			if c.may {
				assert.Empty(t, ann.asked)
				assert.Empty(t, skipped)
				return
			}
			require.Len(t, ann.asked, 1)
			assert.Nil(t, ann.asked[0].Decision())
			require.Len(t, skipped, 1)
			assert.Equal(t, "a", skipped[0].Hook)
			assert.Contains(t, skipped[0].Reason, "the hook may not answer")
			assert.Empty(t, lo.Filter(w.events(hooks.HookComplete), func(e hooks.Event, _ int) bool {
				return e.Point == hooks.InterventionRequested
			}), "an answer without the right is no answer")
		})
	}
}

// A hook that may answer some of the questions answers those, and the person the others;
// an answer of a person that rejects decides.
func TestHookAnswersSomeQuestions(t *testing.T) {
	asks := []hooks.Hook{
		asker("guard", agent.Question{}).WithPriority(200).From(required), asker("low", agent.Question{}), approvesAs("helper"),
	}
	for verdict, runs := range map[agent.ApprovalVerdict]int{agent.Approve: 1, agent.RejectAndContinue: 0} {
		ann := &person{verdict: verdict}
		w := workWith(t, asks, wants("bash", ls), ann.use())
		require.Len(t, ann.asked, 1)
		assert.Equal(t, []string{"guard"}, askers(ann.asked[0].Open()))
		assert.Equal(t, "helper", ann.asked[0][1].Decision().By, "the card shows all")
		assert.Len(t, w.ran, runs)
	}
	w := workWith(t, append(asks, approvesAs("boss").From(required)), wants("bash", ls), (&person{}).use())
	assert.Len(t, w.ran, 1, "two hooks have answered all questions")
}

func askers(q agent.Questions) []string {
	return lo.Map(q, func(one agent.Question, _ int) string { return one.By })
}

// Every hook may reject. The stricter rejection counts, whatever was approved before.
func TestEveryHookMayReject(t *testing.T) {
	guard := asker("guard", agent.Question{}).WithPriority(200).From(required)
	deny := answerer("denies", func(c hooks.InterventionContext) hooks.Result { return c.Deny("no") })
	reject := answerer("rejects", func(c hooks.InterventionContext) hooks.Result { return c.RejectAndEnd("no") })
	for name, c := range map[string]struct {
		more   []hooks.Hook
		status agent.Status
	}{
		"deny":             {[]hooks.Hook{deny}, agent.StatusDone},
		"reject":           {[]hooks.Hook{reject}, agent.StatusInterrupted},
		"deny and reject":  {[]hooks.Hook{deny, reject}, agent.StatusInterrupted},
		"reject and deny":  {[]hooks.Hook{reject, deny}, agent.StatusInterrupted},
		"approve and deny": {[]hooks.Hook{approvesAs("boss").From(required), deny}, agent.StatusDone},
		"deny and approve": {[]hooks.Hook{deny, approvesAs("boss").From(required)}, agent.StatusDone},
	} {
		ann := &person{verdict: agent.Approve}
		w := workWith(t, append([]hooks.Hook{guard}, c.more...), wants("bash", ls), ann.use())
		assert.Empty(t, w.ran, name)
		assert.Empty(t, ann.asked, name)
		assert.Equal(t, c.status, w.Status(), name)
	}
}

// Changed arguments void the answers that hooks have given.
func TestRewriteVoidsAnswers(t *testing.T) {
	ann := &person{verdict: agent.Approve}
	w := workWith(t, []hooks.Hook{
		asker("guard", agent.Question{}), approvesAs("first"),
		answerer("then", func(c hooks.InterventionContext) hooks.Result {
			return c.Rewrite(json.RawMessage(`{"command":"ls -l"}`))
		}),
	}, wants("bash", ls), ann.use())
	require.Len(t, ann.asked, 1)
	assert.Nil(t, ann.asked[0].Decision())
	assert.Equal(t, []string{`bash {"command":"ls -l"}`}, w.ran)
}

// Hooks' answers, and all questions, survive the process. Then the person is asked the questions that no hook had
// answered.
func TestQuestionsOfAParkedRun(t *testing.T) {
	d := newParkingAgent(t,
		asker("guard", agent.Question{Within: time.Hour, OnTimeout: agent.RejectAndContinue}).WithPriority(50).From(required),
		asker("low", agent.Question{Within: time.Minute, OnTimeout: agent.Approve}).WithPriority(-1), approvesAs("helper"))
	s := d.start(t)
	list := s.Interventions()
	require.Len(t, list, 2)
	assert.Equal(t, []string{"guard", "wants-a-yes", "low"}, askers(list[0].Questions))
	assert.Equal(t, []string{"guard"}, askers(list[0].Questions.Open()))
	assert.Equal(t, time.Minute, list[0].Deadline.Sub(list[0].Asked).Round(time.Second), "the earliest deadline applies to all")
	late := agent.Checkpoint(s).WithExpired(time.Now().Add(2 * time.Minute))
	assert.Equal(t, agent.RejectAndEnd, late.Interventions()[0].Answer().Verdict, "the strictest verdict counts")
	s = d.answer(t, s, agent.Approve, agent.RejectAndContinue)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, []string{"1"}, d.ran)
	assert.NotContains(t, strings.Join(d.told, " "), "InterventionRequested", "nothing new is asked")
}

// A new question of a resumed run is asked, regardless of earlier answers.
func TestNewQuestionOnResume(t *testing.T) {
	asks := false
	d := newParkingAgent(t, before("late", func(c hooks.ToolContext) hooks.Result {
		if n, _ := c.Call().Argument("N"); asks && n == "1" {
			return c.Ask("is it still right?")
		}
		return c.Pass()
	}))
	s := d.start(t)
	asks = true
	s = d.answer(t, s, agent.Approve, agent.Approve)
	require.True(t, s.Parked())
	assert.Empty(t, d.ran)
	list := s.Interventions()
	assert.Equal(t, []string{"late"}, askers(list[0].Questions.Open()))
	assert.NotNil(t, list[1].Answer(), "the other call was decided")
	s = d.answer(t, s, agent.Approve)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, []string{"1", "2"}, d.ran)
}

// A hook cannot answer for or change a call in doubt, but can deny it.
func TestDoubtIsForAPerson(t *testing.T) {
	doubtful := func(t *testing.T, more ...hooks.Hook) (*person, *agent.Approval) {
		t.Helper()
		ann := &person{verdict: agent.Approve}
		c := lo.Must(hooks.NewSet(more...).Compile("pay"))
		call := &agent.ToolCall{ID: "c", Name: "pay", Arguments: `{"n":1}`}
		p := &agent.Prepared{Original: call, Call: call, Disposition: agent.DisposeAsk}
		p.SetQuestions(agent.Questions{{Kind: agent.QuestionDoubt, By: "doubt"}})
		inner := agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
			ann.asked = append(ann.asked, p.Questions())
			assert.JSONEq(t, `{"n":1}`, p.Call.Arguments)
			return agent.Approval{Verdict: agent.Approve, By: "ann"}, nil
		})
		answers, err := c.WrapApprover(inner).Approve(t.Context(), agent.NewState(), []*agent.Prepared{p})
		require.NoError(t, err)
		return ann, &answers[0]
	}
	ann, answer := doubtful(t, approvesAs("boss").WithPriority(900).From(required))
	assert.Len(t, ann.asked, 1)
	assert.Equal(t, "ann", answer.By)
	ann, answer = doubtful(t, answerer("changes", func(c hooks.InterventionContext) hooks.Result { return c.Rewrite(json.RawMessage(`{"n":2}`)) }))
	assert.Len(t, ann.asked, 1)
	assert.Empty(t, answer.Arguments)
	ann, answer = doubtful(t, answerer("denies", func(c hooks.InterventionContext) hooks.Result { return c.Deny("no") }))
	assert.Empty(t, ann.asked)
	assert.Equal(t, agent.RejectAndContinue, answer.Verdict)
}
