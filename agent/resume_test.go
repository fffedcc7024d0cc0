package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// wantsYes is an executor that requires approval for every call of the tool "write", and
// counts the calls that ran.
type wantsYes struct {
	question agent.Question
	mu       sync.Mutex
	ran      []string
	change   func(agent.ToolCall) agent.ToolCall
	tame     bool // wants nothing
}

func (x *wantsYes) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	p := &agent.Prepared{Original: c, Call: c}
	if x.change != nil {
		call := x.change(*c)
		p.Call = &call
	}
	if c.Name == "write" && !x.tame {
		p.Disposition = agent.DisposeAsk
		p.SetQuestions(agent.Questions{x.question})
	}
	return mo.Ok(p)
}

func (x *wantsYes) Execute(_ context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Disposition == agent.DisposeAnswer {
		return mo.Ok(p.Answer)
	}
	x.mu.Lock()
	x.ran = append(x.ran, p.Call.Name+p.Call.Arguments)
	x.mu.Unlock()
	r := agent.NewResult(p)
	r.Content, r.Attempts = agent.TextContent("did "+p.Call.Arguments), 1
	return mo.Ok(r)
}

// parking returns an agent whose model first asks for the calls and then says "Done.".
func parking(t *testing.T, x agent.Executor, calls ...agent.ToolCall) (a *agent.Agent, asked *int) {
	t.Helper()
	asked = new(int)
	var mu sync.Mutex // children ask at once
	a, err := agent.New(agent.Config{
		Name: "clerk", Executor: x, Approver: agent.ParkApprover,
		Driver: agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			mu.Lock()
			*asked++
			mu.Unlock()
			if s.RunStepCount() == 0 {
				return agent.Step{Message: agent.Assistant("", calls...), Usage: agent.Usage{InputTokens: 7}}, nil
			}
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}),
	}).Get()
	require.NoError(t, err)
	return a, asked
}

func write(id string) agent.ToolCall {
	return agent.ToolCall{ID: id, Name: "write", Arguments: `{"n":` + id + `}`}
}

// stored returns the state as another process reads it.
func stored(t *testing.T, s agent.State) agent.State {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	var out agent.State
	require.NoError(t, json.Unmarshal(text, &out), string(text))
	again, err := json.Marshal(out)
	require.NoError(t, err)
	assert.JSONEq(t, string(text), string(again))
	return out
}

// LH-63, LH-70: while one call of a batch waits, no call of the batch runs and the model is
// not asked. Answers are kept, and the run continues after the last one.
func TestParkAndResume(t *testing.T) {
	x := &wantsYes{question: agent.Question{By: "guard", Reason: "it writes", Within: time.Hour}}
	a, asked := parking(t, x, write("1"), agent.ToolCall{ID: "2", Name: "read"}, write("3"))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.True(t, s.Parked())
	assert.Equal(t, agent.StatusParked, s.Status())
	assert.False(t, s.Status().Terminal())
	assert.Zero(t, s.RunStepCount())
	assert.Empty(t, x.ran)

	s = stored(t, s)
	waits := s.Interventions()
	require.Len(t, waits, 2)
	assert.Equal(t, "1", waits[0].CallID())
	assert.Equal(t, write("1"), waits[0].Call)
	assert.Equal(t, agent.Questions{x.question}, waits[0].Questions)
	assert.WithinDuration(t, waits[0].Asked.Add(time.Hour), waits[0].Deadline, 0)
	assert.True(t, s.Waiting())

	same, err := a.Resume(t.Context(), s).Get()
	require.NoError(t, err)
	assert.True(t, same.Waiting(), "there is no answer")

	s = agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Approve, By: "ann"})
	same, err = a.Resume(t.Context(), stored(t, s)).Get()
	require.NoError(t, err)
	assert.True(t, same.Waiting(), "one call waits still")
	assert.Equal(t, 1, *asked)
	assert.Empty(t, x.ran)

	s = agenttest.WithApproval(stored(t, s), "3", agent.Approval{Verdict: agent.Approve, By: "bob"})
	assert.False(t, s.Waiting())
	run := s.Run()
	s, err = a.Resume(t.Context(), stored(t, s)).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, run, s.Run())
	assert.Equal(t, []string{`write{"n":1}`, "read", `write{"n":3}`}, x.ran)
	assert.Equal(t, 2, *asked)
	assert.Equal(t, 2, s.RunStepCount())
	assert.EqualValues(t, 7, s.RunUsage().InputTokens, "what the reply cost counts once")
	assert.False(t, agent.Checkpoint(s).StepOpen())
	assert.Equal(t, 6, s.MessageCount())
	stored(t, s)

	again, err := a.Resume(t.Context(), s).Get()
	require.NoError(t, err)
	assert.Equal(t, s, again, "a run that has ended stays as it is")
}

// LH-64, LH-65, LH-66: the answers that a person can give, and the cases in which they have no
// effect.
func TestAnswers(t *testing.T) {
	start := func(t *testing.T) (*agent.Agent, *wantsYes, agent.State) {
		t.Helper()
		x := &wantsYes{question: agent.Question{By: "guard", Within: time.Minute, OnTimeout: agent.RejectAndContinue}}
		a, _ := parking(t, x, write("1"), write("2"))
		s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		return a, x, stored(t, s)
	}
	t.Run("a no ends the run, whatever else waits", func(t *testing.T) {
		a, x, s := start(t)
		s, err := a.Resume(t.Context(), agenttest.WithApproval(s, "2", agent.Approval{By: "ann", Reason: "not today"})).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusInterrupted, s.Status())
		assert.Equal(t, agent.StopRejected, s.StopSignal().Reason)
		assert.Empty(t, x.ran)
		step := s.LastStep()
		one, two := step.Result(0), step.Result(1)
		assert.Equal(t, agent.ReasonRunStopped, one.Reason)
		assert.Equal(t, agent.ReasonRejected, two.Reason)
		assert.Contains(t, two.Text(), "not today")
		assert.Equal(t, "ann", two.DecidedBy)
	})
	t.Run("a no that goes on", func(t *testing.T) {
		a, x, s := start(t)
		s = agenttest.WithApproval(s, "2", agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"})
		s = agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Approve})
		s, err := a.Resume(t.Context(), s).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDone, s.Status())
		assert.Equal(t, []string{`write{"n":1}`}, x.ran)
	})
	t.Run("an approval of something else", func(t *testing.T) {
		a, x, s := start(t)
		s = agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Approve, Arguments: `{"n":10}`})
		s = agenttest.WithApproval(s, "2", agent.Approval{Verdict: agent.Approve})
		s, err := a.Resume(t.Context(), stored(t, s)).Get()
		require.NoError(t, err)
		assert.Equal(t, []string{`write{"n":10}`, `write{"n":2}`}, x.ran)
		step, _ := first(s.RunSteps())
		call, _ := first(step.Message().Calls())
		assert.Equal(t, `{"n":1}`, call.Arguments, "what the model asked for stays")
		result := step.Result(0)
		assert.True(t, result.Rewritten())
	})
	t.Run("the time is over", func(t *testing.T) {
		a, x, s := start(t)
		assert.True(t, agent.Checkpoint(s).WithExpired(time.Now()).Waiting())
		s = agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Approve})
		s, err := a.Resume(t.Context(), agent.Checkpoint(s).WithExpired(time.Now().Add(2*time.Minute))).Get()
		require.NoError(t, err)
		assert.Equal(t, []string{`write{"n":1}`}, x.ran)
		step, _ := first(s.RunSteps())
		assert.Equal(t, "timeout", step.Result(1).DecidedBy)
	})
	t.Run("in vain", func(t *testing.T) {
		_, _, s := start(t)
		assert.Equal(t, s, agenttest.WithApproval(s, "7", agent.Approval{Verdict: agent.Approve}), "no such call")
		assert.Equal(t, s, agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Park}), "no answer")
		once := agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Approve})
		assert.Equal(t, once, agenttest.WithApproval(once, "1", agent.Approval{Verdict: agent.RejectAndEnd}), "answered already")
		assert.Equal(t, agent.NewState(), agenttest.WithApproval(agent.NewState(), "1", agent.Approval{Verdict: agent.Approve}))
	})
	t.Run("cancelled while it waits", func(t *testing.T) {
		a, x, s := start(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("no longer wanted"))
		_, err := a.Resume(ctx, s).Get()
		var broken *agent.RunError
		require.ErrorAs(t, err, &broken)
		assert.Equal(t, agent.StatusCancelled, broken.State.Status())
		assert.False(t, agent.Checkpoint(broken.State).StepOpen())
		assert.Equal(t, 1, broken.State.RunStepCount())
		assert.Empty(t, x.ran)
	})
	t.Run("another run in between", func(t *testing.T) {
		a, _, s := start(t)
		_, err := a.Run(t.Context(), s, agent.UserText("and now?")).Get()
		require.ErrorIs(t, err, agent.ErrParked)
	})
	t.Run("an agent of another name", func(t *testing.T) {
		_, _, s := start(t)
		b, err := agent.New(agent.Config{Name: "other", Driver: agent.DriverFunc(nil)}).Get()
		require.NoError(t, err)
		_, err = b.Resume(t.Context(), agenttest.WithApproval(s, "1", agent.Approval{})).Get()
		require.ErrorContains(t, err, `agent "clerk"`)
	})
}

// LH-71: an approval counts only for the call that the person saw.
func TestAChangedCallIsAskedAgain(t *testing.T) {
	x := &wantsYes{}
	a, _ := parking(t, x, write("1"))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	x.change = func(c agent.ToolCall) agent.ToolCall { c.Arguments = `{"n":99}`; return c }
	s, err = a.Resume(t.Context(), agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Approve})).Get()
	require.NoError(t, err)
	assert.True(t, s.Waiting())
	assert.Empty(t, x.ran)
	assert.Equal(t, `{"n":99}`, s.Interventions()[0].Call.Arguments)
	s, err = a.Resume(t.Context(), agenttest.WithApproval(stored(t, s), "1", agent.Approval{Verdict: agent.Approve})).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{`write{"n":99}`}, x.ran)
	assert.Equal(t, agent.StatusDone, s.Status())
}

// LH-53: a question that was asked stays, even if no hook would ask it any more.
func TestAQuestionStands(t *testing.T) {
	a, _ := parking(t, &wantsYes{}, write("1"), write("2"))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	tame := &wantsYes{tame: true}
	b, _ := parking(t, tame, write("1"), write("2"))
	s = agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.RejectAndContinue})
	s, err = b.Resume(t.Context(), agenttest.WithApproval(s, "2", agent.Approval{Verdict: agent.Approve})).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, []string{`write{"n":2}`}, tame.ran)
}

// LH-51: changes restore the state, also in the middle of a step: answered calls are not
// executed again, and begun calls are in doubt.
func TestRestoreInTheMiddleOfAStep(t *testing.T) {
	x := &wantsYes{}
	a, asked := parking(t, x)
	before, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)

	// As a journal sees the second run: begun, a reply with three calls, one answered,
	// one begun.
	var journal [][]byte
	last := agent.State{}
	keep := func(s agent.State) {
		text, err := agent.Checkpoint(s).Changes(last)
		require.NoError(t, err)
		journal, last = append(journal, text), s
	}
	keep(before)
	running := caught(t, a, before)
	keep(running)
	open := agent.Checkpoint(running).WithOpenStep(agent.Step{
		Message: agent.Assistant("", write("1"), agent.ToolCall{ID: "2", Name: "read"}, agent.ToolCall{ID: "3", Name: "list"}),
		Effects: agent.EffectsOf(agent.SessionKey[int]("seen").Set(3), agent.AddContext("mind the gap")),
	}, time.Now())
	keep(open)
	open = agent.Checkpoint(open).WithCallBegun(effective(agent.ToolCall{ID: "2", Name: "read"}))
	keep(open)
	result := agent.NotExecuted(&agent.ToolCall{ID: "1", Name: "write", Arguments: "{}"}, agent.ReasonDenied, "guard", "no")
	result = result.To(&agent.Prepared{Original: new(write("1")), Call: new(write("1"))})
	result.Effects = agent.EffectsOf(agent.AddMessage(agent.UserText("psst").WithSource("guard")))
	open = agent.Checkpoint(open).WithCallAnswered(result)
	keep(open)

	s, err := agent.Restore(journal...)
	require.NoError(t, err)
	assert.JSONEq(t, text(t, open), text(t, s))
	assert.True(t, agent.Checkpoint(s).StepOpen())
	assert.True(t, agent.Checkpoint(s).InDoubt("2"))
	assert.False(t, agent.Checkpoint(s).InDoubt("1"))
	assert.False(t, agent.Checkpoint(s).InDoubt("3"))

	*asked = 0
	s, err = a.Resume(t.Context(), s).Get()
	require.NoError(t, err)
	require.True(t, s.Waiting(), "a person decides whether what began runs again")
	assert.Empty(t, x.ran)
	s, err = a.Resume(t.Context(), agenttest.WithApproval(s, "2", agent.Approval{Verdict: agent.Approve})).Get()
	require.NoError(t, err)
	assert.Equal(t, 1, *asked, "the reply was there already")
	assert.Equal(t, []string{"read", "list"}, x.ran)
	assert.Equal(t, agent.StatusDone, s.Status())
	step, _ := first(s.RunSteps())
	assert.Equal(t, "no", wording(step.Result(0)))
	seen, _ := agent.SessionKey[int]("seen").From(s)
	assert.Equal(t, 3, seen)
	keep(s)
	restored, err := agent.Restore(journal...)
	require.NoError(t, err)
	assert.JSONEq(t, text(t, s), text(t, restored))

	_, err = agent.Restore()
	require.ErrorContains(t, err, "no changes")
	_, err = agent.Restore(journal[1:]...)
	require.ErrorContains(t, err, "change 1 of")
	_, err = agent.Restore([]byte(`{"version":9}`))
	require.ErrorContains(t, err, "version 9")
}

// caught returns a run's state at its first model call.
func caught(t *testing.T, a *agent.Agent, s agent.State) agent.State {
	t.Helper()
	var running agent.State
	b, err := agent.New(agent.Config{Name: a.Name(), Driver: agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		running = s
		return agent.Step{Message: agent.Assistant("x")}, nil
	})}).Get()
	require.NoError(t, err)
	_, err = b.Run(t.Context(), s, agent.UserText("go on")).Get()
	require.NoError(t, err)
	return running
}

func text(t *testing.T, s agent.State) string {
	t.Helper()
	out, err := json.Marshal(s)
	require.NoError(t, err)
	return string(out)
}

func wording(r agent.ToolResult) string { return r.Text() }

func first[K, V any](seq func(yield func(K, V) bool)) (v V, ok bool) {
	for _, v = range seq {
		return v, true
	}
	return v, false
}

// A Session can be parked, answered and resumed with its own methods.
func TestASessionParksAndGoesOn(t *testing.T) {
	x := &wantsYes{}
	a, _ := parking(t, x, write("1"))
	c := a.Session(agent.NewState())
	s, err := c.Run(t.Context(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.True(t, s.Waiting())
	_, err = c.Run(t.Context(), agent.UserText("hello?")).Get()
	require.ErrorIs(t, err, agent.ErrParked)
	assert.True(t, c.State().Waiting(), "it is not lost")
	require.ErrorIs(t, c.Approve("1", agent.Approval{Verdict: agent.Approve}), agent.ErrNotOpen, "an answer names what was asked, not the call")
	assert.True(t, c.State().Waiting())
	card := s.Interventions()[0].ID
	require.ErrorContains(t, c.Approve(card, agent.Approval{Verdict: agent.Park}), "does not take this answer")
	require.NoError(t, c.Approve(card, agent.Approval{Verdict: agent.Approve}))
	require.ErrorIs(t, c.Approve(card, agent.Approval{Verdict: agent.Approve}), agent.ErrNotOpen, "it was answered")
	s, err = c.Resume(t.Context()).Get()
	require.NoError(t, err)
	require.ErrorIs(t, c.Approve(card, agent.Approval{Verdict: agent.Approve}), agent.ErrNotOpen, "the run has ended")
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, s, c.State())
}

// The controls judge arguments that a person changed. If they change the arguments, the person
// is asked again, a limited number of times.
func TestAnEditThatIsChangedIsAskedAgain(t *testing.T) {
	n := 0
	x := &wantsYes{}
	a, err := agent.New(agent.Config{
		Name: "clerk", Executor: x,
		Driver: agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			if s.RunStepCount() == 0 {
				return agent.Step{Message: agent.Assistant("", write("1"))}, nil
			}
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}),
		Approver: agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
			n++
			return agent.Approval{Verdict: agent.Approve, Arguments: fmt.Sprintf(`{"n":%d}`, 100*n)}, nil
		}),
	}).Get()
	require.NoError(t, err)
	x.change = func(c agent.ToolCall) agent.ToolCall { c.Arguments += " "; return c }
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Empty(t, x.ran)
	assert.Equal(t, 4, n)
	step, _ := first(s.RunSteps())
	assert.Contains(t, wording(step.Result(0)), "changed the edited arguments again")
}

// A suspended run is parked in its current state, without an event for its end.
func TestSuspended(t *testing.T) {
	for name, how := range map[string]func(cancel context.CancelCauseFunc) error{
		"by a processor": func(context.CancelCauseFunc) error { return agent.ErrSuspended },
		"by the context": func(cancel context.CancelCauseFunc) error { cancel(agent.ErrSuspended); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var events []string
			steps := 0
			a, err := agent.New(agent.Config{
				Name:     "clerk",
				Observer: agent.ObserverFunc(func(_ context.Context, e agent.Event) { events = append(events, e.EventName()) }),
				AroundStep: []agent.Processor{agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
					if steps++; steps == 2 {
						if err := how(cancel); err != nil {
							return mo.Err[agent.State](err)
						}
					}
					return next(ctx, s)
				})},
				Executor: &wantsYes{},
				Driver: agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
					if ctx.Err() != nil {
						return agent.Step{}, ctx.Err()
					}
					if s.RunStepCount() == 0 {
						return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "1", Name: "read"})}, nil
					}
					return agent.Step{Message: agent.Assistant("Done.")}, nil
				}),
			}).Get()
			require.NoError(t, err)
			s, err := a.Run(ctx, agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			assert.True(t, s.Parked())
			assert.False(t, s.Waiting())
			assert.Equal(t, s, agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Approve}), "no person was asked")
			assert.Equal(t, s, agent.Checkpoint(s).WithExpired(time.Now()))
			assert.Equal(t, 1, s.RunStepCount())
			assert.Equal(t, "run.parked", events[len(events)-1])
			s, err = a.Resume(t.Context(), stored(t, s)).Get()
			require.NoError(t, err)
			assert.Equal(t, agent.StatusDone, s.Status())
			assert.Equal(t, 2, s.RunStepCount())
		})
	}
}
