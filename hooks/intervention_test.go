package hooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// refuseCall returns a hook that asks for approval of everything.
func refuseCall() []hooks.Hook {
	return []hooks.Hook{hooks.On(hooks.AtPreToolUse, "wants-a-yes", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Ask("it is " + c.Tool())
	})}
}

func personSays(verdict agent.ApprovalVerdict) capability.Capability {
	return capability.UseApproval(agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		return agent.Approval{Verdict: verdict, By: "ann", Reason: "because"}, nil
	}))
}

// parkingAgent is an agent that wants to write twice in one step, parks, and is told of all.
type parkingAgent struct {
	agent *agent.Agent
	told  []string // points
	ids   map[hooks.PointName][][]string
	ran   []string
}

func newParkingAgent(t *testing.T, more ...hooks.Hook) *parkingAgent {
	t.Helper()
	d := &parkingAgent{ids: map[hooks.PointName][][]string{}}
	write := toolexec.Func("write", "Writes.", func(_ context.Context, in struct{ N int }) (string, error) {
		d.ran = append(d.ran, string(rune('0'+in.N)))
		return "ok", nil
	})
	all := hooks.ObserveAll("all", func(_ context.Context, c hooks.Context) error {
		d.told = append(d.told, string(c.Point()))
		if c, ok := c.(interface{ CallIDs() []string }); ok {
			d.ids[hooks.PointName(d.told[len(d.told)-1])] = append(d.ids[hooks.PointName(d.told[len(d.told)-1])], c.CallIDs())
		}
		return nil
	})
	var err error
	d.agent, err = builder.New().WithDriver(agenttest.Script(
		agenttest.Call("write", `{"N":1}`).Call("write", `{"N":2}`), agenttest.Say("Done."))).
		With(capability.UseTools(write), capability.UseHooks(append(append(refuseCall(), all), more...)...), capability.UseApproval(agent.ParkApprover)).
		Build().Get()
	require.NoError(t, err)
	return d
}

func (d *parkingAgent) start(t *testing.T) agent.State {
	t.Helper()
	s, err := d.agent.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.True(t, s.Parked())
	return again(t, s)
}

// again returns the state as another process reads it.
func again(t *testing.T, s agent.State) agent.State {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	var out agent.State
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

func (d *parkingAgent) answer(t *testing.T, s agent.State, answers ...agent.ApprovalVerdict) agent.State {
	t.Helper()
	for i, id := range ids(s) {
		if i < len(answers) {
			s = agenttest.WithApproval(s, id, agent.Approval{Verdict: answers[i], By: "ann", Reason: "because"})
		}
	}
	d.told = nil
	s, err := d.agent.Resume(t.Context(), again(t, s)).Get()
	require.NoError(t, err)
	return s
}

func ids(s agent.State) []string {
	var out []string
	for _, i := range s.Interventions() {
		out = append(out, i.CallID())
	}
	return out
}

// LH-62: parking fires neither StepEnd, Stop nor ExecutionEnd; going on fires
// neither what starts a run or a step nor the inference; the controls are asked again,
// and all that happens once fires once. The events have every id of the batch.
func TestPointsOfAParkedRun(t *testing.T) {
	d := newParkingAgent(t)
	s := d.start(t)
	assert.Equal(t, []string{
		"InputSubmitted", "ExecutionStart", "StepStart", "PreInference", "PostInference", "PreToolUse", "PreToolUse",
		"InterventionRequested", "InterventionRequested",
	}, d.told)
	assert.Equal(t, [][]string{ids(s), ids(s)}, d.ids[hooks.InterventionRequested])
	s = d.answer(t, s, agent.Approve, agent.RejectAndContinue)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, []string{"1"}, d.ran)
	assert.Equal(t, []string{
		"PreToolUse", "PreToolUse", "InterventionResolved", "PostToolUse", "PostToolUse", "StepEnd",
		"StepStart", "PreInference", "PostInference", "StepEnd", "Stop", "ExecutionEnd",
	}, d.told)
	require.Len(t, d.ids[hooks.InterventionResolved], 1)
	assert.Len(t, d.ids[hooks.InterventionResolved][0], 2)
}

// noteAnswers notes the verdicts in a batch's events, and checks that they name its calls. asked has their IDs.
func noteAnswers(t *testing.T, asked *[]string, told map[hooks.PointName][]string) hooks.Hook {
	t.Helper()
	return hooks.ObserveAll("note", func(_ context.Context, c hooks.Context) error {
		at := c.(interface {
			CallIDs() []string
			CallID() (string, bool)
			Interventions() []agent.Intervention
		})
		assert.Equal(t, *asked, at.CallIDs())
		id, alone := at.CallID()
		assert.Equal(t, len(*asked) == 1, alone)
		assert.Equal(t, alone, id == (*asked)[0])
		assert.Equal(t, !alone, id == "")
		line := ""
		for i, waits := range at.Interventions() {
			assert.Equal(t, (*asked)[i], waits.CallID())
			answer := agent.Park
			if a := waits.Answer(); a != nil && c.Point() != hooks.InterventionRequested {
				assert.Equal(t, "ann", a.By)
				assert.Equal(t, "because", a.Reason)
				answer = a.Verdict
			}
			line += answer.String() + " "
		}
		told[c.Point()] = append(told[c.Point()], line)
		return nil
	}, hooks.InterventionRequested, hooks.InterventionResolved, hooks.InterventionStopped)
}

// annSays returns an answer of ann; with Park she has none.
func annSays(verdict agent.ApprovalVerdict) agent.Approval {
	if verdict == agent.Park {
		return agent.Approval{Verdict: agent.Park}
	}
	return agent.Approval{Verdict: verdict, By: "ann", Reason: "because"}
}

// LH-67: whatever a person answers, and however many calls they were asked about, each event names every call in the
// batch, with its answer. A single call is also in CallID.
func TestEventsOfAnswersNameAllCalls(t *testing.T) {
	type verdicts = []agent.ApprovalVerdict // Park for a call without an answer
	const yes, no, goOn, none = agent.Approve, agent.RejectAndEnd, agent.RejectAndContinue, agent.Park
	for name, tc := range map[string]struct {
		said    verdicts
		ran     string
		stopped bool
	}{
		"approve one":                {verdicts{yes}, "1", false},
		"reject one":                 {verdicts{no}, "", true},
		"reject one and continue":    {verdicts{goOn}, "", false},
		"approve all":                {verdicts{yes, yes, yes}, "123", false},
		"reject all":                 {verdicts{no, no, no}, "", true},
		"reject all and continue":    {verdicts{goOn, goOn, goOn}, "", false},
		"each something else":        {verdicts{goOn, yes, no}, "2", true},
		"reject the last of three":   {verdicts{none, none, no}, "", true},
		"reject the first of three":  {verdicts{no, none, none}, "", true},
		"approve one and reject one": {verdicts{yes, goOn}, "1", false},
	} {
		for _, live := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, live %v", name, live), func(t *testing.T) {
				n := len(tc.said)
				var asked []string
				told := map[hooks.PointName][]string{}
				note := noteAnswers(t, &asked, told)
				ran := ""
				write := toolexec.Func("write", "Writes.", func(_ context.Context, in struct{ N int }) (string, error) {
					ran += fmt.Sprint(in.N)
					return "ok", nil
				})
				turn := agenttest.Say("")
				for i := range n {
					turn = turn.Call("write", fmt.Sprintf(`{"N":%d}`, i+1))
					asked = append(asked, fmt.Sprintf("call_1_%d", i+1))
				}
				answering := agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
					return annSays(tc.said[p.Original.Index]), nil
				})
				approver := lo.Ternary[agent.Approver](live, answering, agent.ParkApprover)
				a, err := builder.New().WithDriver(agenttest.Script(turn, agenttest.Say("Done."))).With(capability.UseTools(write),
					capability.UseHooks(append(refuseCall(), note)...), capability.UseApproval(approver)).Build().Get()
				require.NoError(t, err)
				s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
				require.NoError(t, err)
				if !live {
					require.True(t, s.Parked())
					assert.Empty(t, told[hooks.InterventionResolved], "nothing is answered")
					s = again(t, s)
					for i, id := range asked {
						s = agenttest.WithApproval(s, id, annSays(tc.said[i])) // none is no answer
					}
					s, err = a.Resume(t.Context(), again(t, s)).Get()
					require.NoError(t, err)
				}
				assert.Equal(t, tc.ran, ran)
				want := []string{strings.Join(lo.Map(tc.said, func(v agent.ApprovalVerdict, _ int) string { return v.String() + " " }), "")}
				assert.Len(t, told[hooks.InterventionRequested], n, "once for each call")
				assert.Equal(t, want, told[hooks.InterventionResolved])
				assert.Equal(t, lo.Ternary(tc.stopped, agent.StatusInterrupted, agent.StatusDone), s.Status())
				assert.Equal(t, lo.Ternary(tc.stopped, want, nil), told[hooks.InterventionStopped])
			})
		}
	}
}

// LH-64, LH-72: a person's no is told when the run has ended, and nothing that a hook
// does undoes it.
func TestAPersonsNoIsTold(t *testing.T) {
	var status agent.Status
	var batch []agent.Intervention
	d := newParkingAgent(t, hooks.Observe(hooks.AtInterventionStopped, "stopped", func(_ context.Context, c hooks.InterventionStoppedContext) error {
		status, batch = c.State().Status(), c.Interventions()
		panic("too bad")
	}))
	s := d.answer(t, d.start(t), agent.Approve, agent.RejectAndEnd)
	assert.Equal(t, agent.StatusInterrupted, s.Status())
	assert.Equal(t, agent.StatusInterrupted, status)
	require.Len(t, batch, 2)
	assert.Equal(t, agent.RejectAndEnd, batch[1].Answer().Verdict)
	assert.Equal(t, []string{"InterventionStopped", "ExecutionEnd"}, d.told[len(d.told)-2:])
}

// LH-71: a control that has changed its mind is heard.
func TestControlsAreAskedAgain(t *testing.T) {
	closed := false
	d := newParkingAgent(t, before("late", func(c hooks.ToolContext) hooks.Result {
		asked, ok := c.Asked()
		if closed && ok && c.Resumed() && asked.Answer() != nil {
			return c.Deny("not any more")
		}
		return c.Pass()
	}))
	s := d.start(t)
	closed = true
	s = d.answer(t, s, agent.Approve, agent.Approve)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Empty(t, d.ran)
}

// LH-62: a hook's possible answers before a person is asked, in this process and in the next.
func TestBeforeAnybodyIsAsked(t *testing.T) {
	hook := func(f func(hooks.InterventionContext) hooks.Result) hooks.Hook {
		return hooks.On(hooks.AtInterventionRequested, "before", func(_ context.Context, c hooks.InterventionContext) hooks.Result { return f(c) })
	}
	first := func(c hooks.InterventionContext) bool { n, _ := c.Call().Argument("N"); return n == "1" }
	t.Run("deny", func(t *testing.T) {
		d := newParkingAgent(t, hook(func(c hooks.InterventionContext) hooks.Result {
			if first(c) {
				return c.Deny("never")
			}
			return c.Pass()
		}))
		s := d.start(t)
		require.Len(t, s.Interventions(), 2)
		assert.NotNil(t, s.Interventions()[0].Answer())
		s = d.answer(t, s, agent.Approve, agent.Approve)
		assert.Equal(t, []string{"2"}, d.ran)
		assert.Equal(t, agent.StatusDone, s.Status())
	})
	t.Run("answer in the person's place", func(t *testing.T) {
		d := newParkingAgent(t, hook(func(c hooks.InterventionContext) hooks.Result { return c.Approve("known") }))
		s, err := d.agent.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDone, s.Status())
		assert.Equal(t, []string{"1", "2"}, d.ran)
	})
	t.Run("rewrite", func(t *testing.T) {
		d := newParkingAgent(t, hook(func(c hooks.InterventionContext) hooks.Result {
			if first(c) {
				return c.Rewrite(map[string]int{"N": 7})
			}
			return c.Pass()
		}))
		s := d.start(t)
		assert.JSONEq(t, `{"N":7}`, s.Interventions()[0].Call.Arguments)
		assert.JSONEq(t, `{"N":1}`, s.Interventions()[0].Original.Arguments)
		s = d.answer(t, s, agent.Approve, agent.Approve)
		assert.Equal(t, []string{"7", "2"}, d.ran)
		assert.Equal(t, agent.StatusDone, s.Status())
	})
	t.Run("failing closed", func(t *testing.T) {
		d := newParkingAgent(t, hook(func(c hooks.InterventionContext) hooks.Result { return c.Fail(errPaper) }))
		s, err := d.agent.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDone, s.Status())
		assert.Empty(t, d.ran)
	})
}

// A question may say how long it is asked, and what counts when there is no answer.
func TestAskAbout(t *testing.T) {
	w := workWith(t, []hooks.Hook{before("q", func(c hooks.ToolContext) hooks.Result {
		return c.AskAbout(agent.Question{Reason: "sure?", Within: time.Millisecond, OnTimeout: agent.RejectAndContinue})
	})}, wants("bash", ls))
	assert.Equal(t, agent.StatusDone, w.Status(), "there is no person to ask")
	d := newParkingAgent(t, hooks.On(hooks.AtPreToolUse, "q", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.AskAbout(agent.Question{Reason: "sure?", Within: time.Hour, OnTimeout: agent.Approve})
	}).WithPriority(5))
	s := d.start(t)
	assert.Equal(t, agent.Question{By: "q", Reason: "sure?", Within: time.Hour, OnTimeout: agent.Approve, Priority: 5}, s.Interventions()[0].Questions[0])
}
