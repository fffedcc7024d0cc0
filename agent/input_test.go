package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

const nameForm = `{"type":"object","properties":{"name":{"type":"string","minLength":2}},"required":["name"]}`

// greeter returns a tool that asks for a name, then for a confirmation, and counts its executions.
func greeter(runs *int) toolexec.Tool {
	return toolexec.Raw(agent.ToolSpec{Name: "greet"}, func(_ context.Context, c toolexec.Call) (string, error) {
		*runs++
		ask := func(message, schema string) error {
			return &agent.InputError{Request: agent.InputRequest{By: `mcp server "desk"`, Message: message, Schema: schema}, State: []byte(fmt.Sprint(len(c.Given)))}
		}
		switch {
		case len(c.Given) == 0:
			return "", ask("Your name?\x1b[31m", nameForm)
		case !c.Given[0].Accepted:
			return "no name", nil
		case len(c.Given) == 1:
			return "", ask("Sure?", "")
		}
		return fmt.Sprintf("%s %s %v", c.InputState, c.Given[0].Content, c.Given[1].Accepted), nil
	})
}

func asksForInput(t *testing.T, runs *int, approver agent.Approver, more ...hooks.Hook) *agent.Agent {
	t.Helper()
	b := builder.New().WithDriver(agenttest.Script(agenttest.Call("greet", `{}`), agenttest.Say("done"))).
		With(capability.UseTools(greeter(runs)), capability.UseHooks(more...))
	if approver != nil {
		b = b.With(capability.UseApproval(approver))
	}
	a, err := b.Build().Get()
	require.NoError(t, err)
	return a
}

func lastResult(t *testing.T, s agent.State) *agent.ToolResult {
	t.Helper()
	for _, step := range s.Steps() {
		for _, r := range step.Results() {
			return &r
		}
	}
	require.Fail(t, "no result")
	return nil
}

func TestInputIsAskedAndAnsweredInMemory(t *testing.T) {
	t.Parallel()
	runs, judged := 0, 0
	var asked []string
	person := agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
		for _, q := range p.Questions() {
			asked = append(asked, fmt.Sprintf("%s %s %d", q.Kind, q.Reason, q.Input.Number))
		}
		r, _ := p.Questions().Asked()
		if r.Schema == "" {
			return agent.Approval{Verdict: agent.Approve}, nil
		}
		return agent.Approval{Verdict: agent.Approve, Input: `{"name":"Ann"}`}, nil
	})
	count := hooks.On(hooks.AtPreToolUse, "count", func(_ context.Context, c hooks.ToolContext) hooks.Result { judged++; return c.Pass() })
	final, err := asksForInput(t, &runs, person, count).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, `1 {"name":"Ann"} true`, lastResult(t, final).Text())
	assert.Equal(t, []string{`input mcp server "desk" asks: "Your name?[31m" 1`, `input mcp server "desk" asks: "Sure?" 2`}, asked)
	assert.Equal(t, 3, runs)
	assert.Equal(t, 3, judged, "controls judge the call before each execution")
	assert.Equal(t, agent.StatusDone, final.Status())
}

func TestInputThatNobodyCanGiveFailsTheCall(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		approver agent.Approver
		status   agent.Status
		reason   agent.ReasonCode
		text     string
	}{
		"no person": {nil, agent.StatusDone, agent.ReasonNobodyToAsk, "there is no person to ask"},
		"rejected":  {always(agent.Approval{By: "ann", Reason: "no way"}), agent.StatusInterrupted, agent.ReasonRejected, "rejected by ann: no way"},
		"invalid":   {always(agent.Approval{Verdict: agent.Approve, Input: `{"name":1}`}), agent.StatusDone, agent.ReasonInvalid, "must be a text"},
		"missing":   {always(agent.Approval{Verdict: agent.Approve}), agent.StatusDone, agent.ReasonInvalid, "it is required"},
	} {
		runs := 0
		final, err := asksForInput(t, &runs, one.approver).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err, name)
		r := lastResult(t, final)
		assert.Equal(t, one.status, final.Status(), name)
		assert.Equal(t, agent.ToolFailed, r.Status, name)
		assert.Equal(t, one.reason, r.Reason, name)
		assert.Contains(t, r.Text(), one.text, name)
		assert.Equal(t, 1, runs, name)
	}
	runs := 0
	final, err := asksForInput(t, &runs, always(agent.Approval{Verdict: agent.RejectAndContinue})).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, "no name", lastResult(t, final).Text(), "declining is an answer for the tool")
	assert.Equal(t, 2, runs)
}

func always(a agent.Approval) agent.Approver {
	return agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) { return a, nil })
}

func TestHooksMayDeclineInputAndNotGiveIt(t *testing.T) {
	t.Parallel()
	runs := 0
	deny := hooks.On(hooks.AtInterventionRequested, "no-forms", func(_ context.Context, c hooks.InterventionContext) hooks.Result {
		if _, asks := c.Questions().Asked(); asks {
			return c.Deny("no forms")
		}
		return c.Allow()
	})
	final, err := asksForInput(t, &runs, always(agent.Approval{Verdict: agent.Approve, Input: `{"name":"Ann"}`}), deny).
		Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, "no name", lastResult(t, final).Text())

	runs = 0
	eager := hooks.On(hooks.AtInterventionRequested, "eager", func(_ context.Context, c hooks.InterventionContext) hooks.Result { return c.Approve("sure") })
	final, err = asksForInput(t, &runs, nil, eager).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.ReasonNobodyToAsk, lastResult(t, final).Reason, "a hook cannot answer for a person")
}

// TestInputParksTheRun answers each request in a new state, read from JSON, as another process does.
func TestInputParksTheRun(t *testing.T) {
	t.Parallel()
	runs := 0
	asks := hooks.On(hooks.AtPreToolUse, "careful", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("may it?") })
	a := asksForInput(t, &runs, agent.ParkApprover, asks)
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	answer := func(given agent.Approval) {
		t.Helper()
		data, err := json.Marshal(s)
		require.NoError(t, err)
		var read agent.State
		require.NoError(t, json.Unmarshal(data, &read))
		require.True(t, read.Waiting())
		s, err = a.Resume(t.Context(), agenttest.WithApproval(read, read.Interventions()[0].CallID(), given)).Get()
		require.NoError(t, err)
	}
	answer(agent.Approval{Verdict: agent.Approve, By: "ann"})
	require.True(t, s.Waiting())
	i := s.Interventions()[0]
	assert.True(t, i.Begun)
	assert.Empty(t, agent.Checkpoint(s).CallsInDoubt())
	assert.Equal(t, agent.QuestionInput, i.Questions[0].Kind)
	first := i.ID
	answer(agent.Approval{Verdict: agent.Approve, By: "ann", Input: `{"name":"A"}`}) // does not fit: nothing changes
	assert.Equal(t, first, s.Interventions()[0].ID)
	assert.Equal(t, 1, runs)
	answer(agent.Approval{Verdict: agent.Approve, By: "ann", Input: `{"name":"Ann"}`})
	require.True(t, s.Waiting())
	assert.NotEqual(t, first, s.Interventions()[0].ID, "an answer to the first request is none to the second")
	answer(agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"})
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, `1 {"name":"Ann"} false`, lastResult(t, s).Text())
	assert.Equal(t, 3, runs)
}

func TestAControlDeniesACallThatHasInput(t *testing.T) {
	t.Parallel()
	runs, denies := 0, false
	deny := hooks.On(hooks.AtPreToolUse, "late", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		if denies {
			return c.Deny("not any more")
		}
		return c.Pass()
	})
	a := asksForInput(t, &runs, agent.ParkApprover, deny)
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	denies = true
	s, err = a.Resume(t.Context(), agenttest.WithApproval(s, s.Interventions()[0].CallID(), agent.Approval{Verdict: agent.Approve, Input: `{"name":"Ann"}`})).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.ToolFailed, lastResult(t, s).Status, "it has begun")
	assert.Contains(t, lastResult(t, s).Text(), "not any more")
	assert.Equal(t, 1, runs)
}

func TestAControlAsksAnewAboutACallThatHasInput(t *testing.T) {
	t.Parallel()
	runs, asksNow := 0, false
	ask := hooks.On(hooks.AtPreToolUse, "late", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		if asksNow {
			return c.Ask("really?")
		}
		return c.Pass()
	})
	a := asksForInput(t, &runs, agent.ParkApprover, ask)
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	asksNow = true
	answers := []agent.Approval{{Verdict: agent.Approve, Input: `{"name":"Ann"}`}, {Verdict: agent.Approve}, {Verdict: agent.Approve}}
	var kinds []string
	for _, answer := range answers {
		kinds = append(kinds, string(s.Interventions()[0].Questions[0].Kind))
		assert.Empty(t, agent.Checkpoint(s).CallsInDoubt())
		data, err := json.Marshal(s)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &s))
		s, err = a.Resume(t.Context(), agenttest.WithApproval(s, s.Interventions()[0].CallID(), answer)).Get()
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"input", "", "input"}, kinds)
	assert.Equal(t, `1 {"name":"Ann"} true`, lastResult(t, s).Text())
}

func TestInputRequestsAreLimited(t *testing.T) {
	t.Parallel()
	ask := func(e agent.InputError) toolexec.Tool {
		return toolexec.Raw(agent.ToolSpec{Name: "greet"}, func(context.Context, toolexec.Call) (string, error) { return "", &e })
	}
	for want, e := range map[string]agent.InputError{
		"asked for input 16 times": {Request: agent.InputRequest{Message: "again?"}},
		"at most 262144":           {State: make([]byte, 256<<10+1)},
		"message of 9000 bytes":    {Request: agent.InputRequest{Message: strings.Repeat("x", 9000)}},
		"cannot be shown":          {Request: agent.InputRequest{Schema: `{"type":"array"}`}},
		"a URL that":               {Request: agent.InputRequest{URL: "https://a\u202e.example"}},
	} {
		a, err := builder.New().WithDriver(agenttest.Script(agenttest.Call("greet", `{}`), agenttest.Say("done"))).
			With(capability.UseTools(ask(e)), capability.UseApproval(always(agent.Approval{Verdict: agent.Approve}))).Build().Get()
		require.NoError(t, err)
		final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.ToolFailed, lastResult(t, final).Status, want)
		assert.Contains(t, lastResult(t, final).Text(), want)
	}
}

func TestExecutorsCannotPrepareInput(t *testing.T) {
	t.Parallel()
	x := preparing{&agent.Question{Kind: agent.QuestionInput, Input: &agent.InputRequest{Message: "?"}}}
	a, err := agent.New(agent.Config{
		Name: "a", Driver: agenttest.Script(agenttest.Call("greet", `{}`), agenttest.Say("done")), Executor: x, Approver: agent.ParkApprover,
	}).Get()
	require.NoError(t, err)
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.QuestionOrdinary, s.Interventions()[0].Questions[0].Kind)
}

type preparing struct{ q *agent.Question }

func (x preparing) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	p := &agent.Prepared{Original: c, Call: c, Disposition: agent.DisposeAsk}
	p.SetQuestions(agent.Questions{*x.q})
	return mo.Ok(p)
}

func (preparing) Execute(context.Context, agent.State, *agent.Prepared) mo.Result[*agent.ToolResult] {
	return mo.Ok(&agent.ToolResult{})
}
