package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// verdicts is a criterion that says the given verdict after each step.
func after(step int, e agent.Evaluation) agent.Criterion {
	return agent.CriterionFunc(func(_ context.Context, s agent.State) (agent.Evaluation, error) {
		if s.RunStepCount() == step {
			return e, nil
		}
		return agent.Evaluation{}, nil
	})
}

// all asks every criterion and takes the strongest answer.
func all(criteria ...agent.Criterion) agent.Criterion {
	return agent.CriterionFunc(func(ctx context.Context, s agent.State) (agent.Evaluation, error) {
		var found []agent.Evaluation
		for _, c := range criteria {
			e, err := c.Evaluate(ctx, s).Get()
			if err != nil {
				return agent.Evaluation{}, err
			}
			found = append(found, e)
		}
		return agent.Strongest(found...), nil
	})
}

func TestTheStrongestVerdictWins(t *testing.T) {
	say := func(v agent.Verdict) agent.Evaluation { return agent.Evaluation{Verdict: v} }
	for name, tc := range map[string]struct {
		stronger, weaker agent.Verdict
	}{
		"IP-65": {agent.RequestContinuation, agent.AllowStop}, // a request to go on suppresses a soft stop
		"IP-66": {agent.Forbid, agent.RequestContinuation},
		"IP-67": {agent.RequestContinuation, agent.AllowStop},
		"IP-68": {agent.AllowStop, agent.AllowContinuation},
		"none":  {agent.AllowContinuation, agent.NoOpinion},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.stronger, agent.Strongest(say(tc.stronger), say(tc.weaker)).Verdict)
			assert.Equal(t, tc.stronger, agent.Strongest(say(tc.weaker), say(tc.stronger)).Verdict)
		})
	}
	assert.Equal(t, agent.Evaluation{}, agent.Strongest(), "IP-69, IP-71: without an opinion there is none, and no reason")
}

// IP-70: any order of criteria gives the same verdict, for the same reason.
func TestTheOrderOfCriteriaDoesNotMatter(t *testing.T) {
	reasons := []agent.StopReason{
		"", "of my own", agent.StopCompleted, agent.StopFinishReason, agent.StopRequested, agent.StopByHook, agent.StopRetryLimit,
		agent.StopStepsLimit, agent.StopTimeLimit, agent.StopTokenLimit, agent.StopCostLimit, agent.StopDenied, agent.StopRejected,
		agent.StopError, agent.StopUser,
	}
	one := rapid.Custom(func(t *rapid.T) agent.Evaluation {
		return agent.Evaluation{
			Verdict: agent.Verdict(rapid.Uint8Range(0, uint8(agent.Forbid)).Draw(t, "verdict")),
			Signal: agent.Signal{
				Reason: rapid.SampledFrom(reasons).Draw(t, "reason"), Source: rapid.SampledFrom([]string{"agent", "guard"}).Draw(t, "source"),
			},
			Handled: rapid.IntRange(0, 4).Draw(t, "handled") == 0,
			Effects: agent.EffectsOf(agent.AddContext(fmt.Sprint(rapid.Int().Draw(t, "effect")))),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SliceOfN(one, 1, 6).Draw(t, "evaluations")
		shuffled := rapid.Permutation(given).Draw(t, "shuffled")
		a, b := agent.Strongest(given...), agent.Strongest(shuffled...)
		require.Equal(t, a.Verdict, b.Verdict)
		require.Equal(t, a.Handled, b.Handled)
		require.Equal(t, a.Stops(), b.Stops())
		require.Equal(t, a.Effects.Len(), b.Effects.Len())
		if a.Stops() && a.Signal.Reason != "of my own" && a.Signal.Reason != agent.StopByHook { // two that weigh the same
			require.Equal(t, a.Signal.Reason, b.Signal.Reason)
		}
		first, _ := lo.Find(given, func(e agent.Evaluation) bool {
			return e.Verdict == a.Verdict && e.Signal.Reason == a.Signal.Reason
		})
		if !a.Handled && a.Verdict != agent.NoOpinion { // IP-71: ties → the first
			require.Equal(t, first.Signal, a.Signal)
		}
	})
}

// Criteria give the same verdict whether they are asked one by one or in groups.
func TestGroupsOfCriteriaFindTheSame(t *testing.T) {
	for _, v := range []agent.Verdict{agent.NoOpinion, agent.AllowContinuation, agent.AllowStop, agent.RequestContinuation, agent.Forbid} {
		for _, w := range []agent.Verdict{agent.NoOpinion, agent.AllowContinuation, agent.AllowStop, agent.RequestContinuation, agent.Forbid} {
			flat := agent.Strongest(agent.Evaluation{Verdict: v}, agent.Evaluation{Verdict: w}, agent.Evaluation{Verdict: agent.AllowStop})
			grouped := agent.Strongest(agent.Strongest(agent.Evaluation{Verdict: v}, agent.Evaluation{Verdict: w}), agent.Evaluation{Verdict: agent.AllowStop})
			assert.Equal(t, flat.Verdict, grouped.Verdict)
		}
	}
}

func TestEffectsOfAllThatAgreeAreKept(t *testing.T) {
	say := func(v agent.Verdict, text string) agent.Evaluation {
		return agent.Evaluation{Verdict: v, Effects: agent.EffectsOf(agent.AddContext(text))}
	}
	winner := agent.Strongest(
		say(agent.AllowStop, "lost"), say(agent.RequestContinuation, "first"), say(agent.AllowContinuation, "lost"),
		say(agent.RequestContinuation, "second"),
	)
	var got []string
	for _, e := range winner.Effects.All() {
		text, _ := e.Context()
		got = append(got, text)
	}
	assert.Equal(t, []string{"first", "second"}, got)
}

// IP-62, IP-63, IP-64 and IP-69: the evaluations of Base.
func TestBase(t *testing.T) {
	judge := func(s agent.State) agent.Evaluation { return agent.Base.Evaluate(t.Context(), s).MustGet() }

	assert.Equal(t, agent.Evaluation{}, judge(agent.NewState(agent.UserText("hello")))) // IP-69

	answered := play(t, agenttest.Say("hi"))
	answered = throughJSON(t, answered) // the process keeps nothing
	assert.Equal(t, agent.Forbid, judge(answered).Verdict, "the state still says why it ended")

	var seen []agent.Evaluation
	spy := agent.CriterionFunc(func(ctx context.Context, s agent.State) (agent.Evaluation, error) {
		e, err := agent.Base.Evaluate(ctx, s).Get()
		seen = append(seen, e)
		return e, err
	})
	run := func(turns ...agenttest.Turn) {
		seen = nil
		a := build(t, agent.Config{Driver: agenttest.Script(turns...), Executor: tools().Executor(), Criterion: spy})
		a.Run(t.Context(), agent.NewState(agent.UserText("hello")))
	}
	run(calls("add"), agenttest.Say("done"))
	require.Len(t, seen, 3)
	assert.Equal(t, agent.AllowContinuation, seen[1].Verdict) // IP-63
	assert.Equal(t, agent.AllowStop, seen[2].Verdict)         // IP-62
	assert.Equal(t, agent.StopCompleted, seen[2].Signal.Reason)

	run(calls("stop"))
	assert.Equal(t, agent.Forbid, seen[1].Verdict) // IP-64
	assert.Equal(t, stopSignal, seen[1].Signal)

	run(agenttest.Fail(errOutOfPaper))
	assert.Equal(t, agent.Forbid, seen[1].Verdict)
	assert.Equal(t, agent.StopError, seen[1].Signal.Reason)
}

// IP-71: the reason with the highest rank is in the event, in the state and in its status;
// of equal ranks, the first.
func TestTheWeightiestReasonNamesTheEnd(t *testing.T) {
	limit := agent.Signal{Reason: agent.StopTokenLimit, Message: "1000 tokens", Source: "tokens"}
	steps := agent.Signal{Reason: agent.StopStepsLimit, Message: "1 step", Source: "steps"}
	second := agent.Signal{Reason: agent.StopTokenLimit, Message: "2000 tokens", Source: "more tokens"}
	forbid := func(s agent.Signal) agent.Criterion {
		return after(1, agent.Evaluation{Verdict: agent.Forbid, Signal: s})
	}
	events := agenttest.Record()
	a := build(t, agent.Config{
		Driver: agenttest.Script(calls("stop")), Executor: tools().Executor(), Observer: events,
		Criterion: all(agent.Base, forbid(steps), forbid(limit), forbid(second)),
	})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusStopped, final.Status())
	assert.Equal(t, limit, signalOf(t, final))
	ended := agenttest.Of[agent.RunCompleted](events)
	require.Len(t, ended, 1)
	assert.Equal(t, limit, signalOf(t, ended[0].State))
	assert.Equal(t, agent.StatusStopped, ended[0].State.Status())
	judged := agenttest.Of[agent.Judged](events)
	assert.Equal(t, limit, judged[len(judged)-1].Evaluation.Signal)
}

// IP-72: of a signal in a checkpoint and a signal of a step, the one with the higher rank
// stays, in either order.
func TestOfTwoSignalsTheWeightierStays(t *testing.T) {
	user := agent.Signal{Reason: agent.StopUser, Source: "person"}
	hook := agent.Signal{Reason: agent.StopByHook, Source: "hook"}
	other := agent.Signal{Reason: "of my own", Source: "me"}
	assert.Equal(t, user, signalOf(t, agent.State{}.WithStop(hook).WithStop(user)))
	assert.Equal(t, user, signalOf(t, agent.State{}.WithStop(user).WithStop(hook)))
	assert.Equal(t, hook, signalOf(t, agent.State{}.WithStop(hook).WithStop(other)), "of equals the first")
	assert.Equal(t, other, signalOf(t, agent.State{}.WithStop(other).WithStop(hook)), "of equals the first")
	assert.Equal(t, user, signalOf(t, throughJSON(t, agent.State{}.WithStop(hook)).WithStop(user)))
}

func TestEveryReasonHasItsStatus(t *testing.T) {
	for reason, want := range map[agent.StopReason]agent.Status{
		agent.StopCompleted: agent.StatusDone, agent.StopFinishReason: agent.StatusDone,
		agent.StopRequested: agent.StatusStopped, agent.StopByHook: agent.StatusStopped, "of my own": agent.StatusStopped,
		agent.StopRetryLimit: agent.StatusStopped, agent.StopStepsLimit: agent.StatusStopped, agent.StopTimeLimit: agent.StatusStopped,
		agent.StopTokenLimit: agent.StatusStopped, agent.StopCostLimit: agent.StatusStopped, agent.StopUser: agent.StatusStopped,
		agent.StopRejected: agent.StatusInterrupted, agent.StopError: agent.StatusFailed,
	} {
		t.Run(string(reason), func(t *testing.T) {
			forbid := after(0, agent.Evaluation{Verdict: agent.Forbid, Signal: agent.Signal{Reason: reason, Message: "m", Source: "s"}})
			final, err := build(t, agent.Config{Driver: agenttest.Script(), Criterion: forbid}).Run(t.Context(), agent.State{}).Get()
			if want == agent.StatusFailed {
				var failed *agent.RunError
				require.ErrorAs(t, err, &failed)
				require.EqualError(t, failed.Err, "m")
				final, err = failed.State, nil
			}
			require.NoError(t, err)
			assert.Equal(t, want, final.Status())
			assert.Equal(t, reason, signalOf(t, final).Reason)
		})
	}
}

func TestSoftReasonsAreThoseOfARunThatEndsByItself(t *testing.T) {
	for _, reason := range []agent.StopReason{agent.StopCompleted, agent.StopFinishReason, agent.StopRequested} {
		assert.True(t, reason.Soft(), reason)
	}
	for _, reason := range []agent.StopReason{"", "of my own", agent.StopByHook, agent.StopStepsLimit, agent.StopUser, agent.StopError} {
		assert.False(t, reason.Soft(), reason)
	}
}

// IP-65, IP-67: a request to continue overrides a soft stop, and can give the model a
// reason.
func TestARequestToGoOn(t *testing.T) {
	request := agent.Evaluation{
		Verdict: agent.RequestContinuation, Effects: agent.EffectsOf(agent.AddMessage(agent.UserText("are you sure?"))),
	}
	a := build(t, agent.Config{
		Driver: agenttest.Script(agenttest.Say("4"), agenttest.Say("5")), Criterion: all(agent.Base, after(1, request)),
	})
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("2+2?")).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"2+2?", "4", "are you sure?", "5"}, texts(final))
}

// IP-66: a criterion cannot override a signalled stop.
func TestAStopIsNotOverridden(t *testing.T) {
	request := after(1, agent.Evaluation{Verdict: agent.RequestContinuation})
	for name, criterion := range map[string]agent.Criterion{"with Base": all(request, agent.Base), "without Base": request} {
		t.Run(name, func(t *testing.T) {
			driver := agenttest.Script(calls("stop"))
			a := build(t, agent.Config{Driver: driver, Executor: tools().Executor(), Criterion: criterion})
			final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
			require.NoError(t, err)
			assert.Equal(t, stopSignal, signalOf(t, final))
			assert.Len(t, driver.Calls(), 1)
		})
	}
}

// A failure that a criterion handles does not end the run.
func TestAHandledFailureEndsNothing(t *testing.T) {
	handle := agent.CriterionFunc(func(_ context.Context, s agent.State) (agent.Evaluation, error) {
		failure := s.LastStep().Failure()
		return agent.Evaluation{Handled: failure != nil && failure.Kind == agent.KindRateLimit}, nil
	})
	overloaded := kinded{errors.New("overloaded"), agent.KindRateLimit}
	config := agent.Config{
		Driver:    agenttest.Script(agenttest.Fail(overloaded), agenttest.Fail(overloaded), agenttest.Say("at last")),
		Criterion: all(agent.Base, handle),
	}
	final, err := build(t, config).Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, "at last", final.Answer())
	assert.Equal(t, 2, final.RunFailures())
	assert.Equal(t, 3, final.RunStepCount())

	config.Driver = agenttest.Script(agenttest.Fail(overloaded), agenttest.Fail(errOutOfPaper))
	failed := runError(t, build(t, config).Run(t.Context(), agent.NewState(agent.UserText("hello"))))
	require.ErrorIs(t, failed, errOutOfPaper)
}

func TestACriterionThatFailsFailsTheRun(t *testing.T) {
	a := build(t, agent.Config{Name: "x", Driver: agenttest.Script(agenttest.Say("hi")), Criterion: agent.CriterionFunc(
		func(_ context.Context, s agent.State) (agent.Evaluation, error) {
			if s.RunStepCount() == 1 {
				return agent.Evaluation{}, errOutOfPaper
			}
			return agent.Evaluation{}, nil
		},
	)})
	failed := runError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))))
	require.ErrorIs(t, failed, errOutOfPaper)
	require.ErrorContains(t, failed, "judging after step 1: out of paper")
	assert.Equal(t, 1, failed.State.RunStepCount(), "the step is not lost")
	assert.Nil(t, lastStep(t, failed.State).Failure())
}

// An answer must have the form that was asked for; the model may try again.
func TestAnAnswerOfTheWrongFormIsSentBack(t *testing.T) {
	check := func(answer string) error {
		if answer != `{"n":4}` {
			return fmt.Errorf("at /n: missing, in %s", answer)
		}
		return nil
	}
	script := func(answers ...string) *agenttest.Driver {
		return agenttest.Script(lo.Map(answers, func(text string, _ int) agenttest.Turn { return agenttest.Say(text) })...)
	}
	for name, tc := range map[string]struct {
		attempts int
		answers  []string
		ok       bool
	}{
		"at once":             {0, []string{`{"n":4}`}, true},
		"at the last attempt": {0, []string{`4`, `{}`, `{"n":4}`}, true},
		"never":               {0, []string{`4`, `{}`, `four`}, false},
		"only once":           {1, []string{`4`}, false},
		"four times":          {4, []string{`1`, `2`, `3`, `{"n":4}`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := build(t, agent.Config{
				Driver: script(tc.answers...), Request: agent.Request{Output: &agent.Output{Name: "sum", Check: check, Attempts: tc.attempts}},
			})
			final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("2+2?")).Get()
			if !tc.ok {
				var failed *agent.RunError
				require.ErrorAs(t, err, &failed)
				require.ErrorContains(t, err, fmt.Sprintf(`the answer does not have the form "sum" after %d attempts: at /n: missing`, len(tc.answers)))
				final = failed.State
				assert.Equal(t, agent.StatusFailed, final.Status())
			} else {
				require.NoError(t, err)
				assert.Equal(t, `{"n":4}`, final.Answer())
			}
			assert.Equal(t, len(tc.answers), final.RunStepCount())
			complaints := 0
			for _, m := range final.Messages() {
				if m.Source() == "output" {
					assert.Contains(t, m.Text(), "at /n: missing")
					complaints++
				}
			}
			assert.Equal(t, len(tc.answers)-1, complaints, "what the model is told")
		})
	}
}

// The attempts are counted for each run.
func TestAttemptsAreCountedByRun(t *testing.T) {
	wrong := errors.New("not like that")
	a := build(t, agent.Config{
		Driver: agenttest.Script(agenttest.Say("x"), agenttest.Say("ok")).EachRun(),
		Request: agent.Request{Output: &agent.Output{Name: "o", Attempts: 2, Check: func(answer string) error {
			return lo.Ternary(answer == "ok", nil, wrong)
		}}},
	})
	session := a.Session(agent.NewState())
	for range 3 {
		final, err := session.Run(t.Context(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, "ok", final.Answer())
	}
}

func TestVerdictsHaveNames(t *testing.T) {
	for v, name := range map[agent.Verdict]string{
		agent.NoOpinion: "no_opinion", agent.AllowContinuation: "allow_continuation", agent.AllowStop: "allow_stop",
		agent.RequestContinuation: "request_continuation", agent.Forbid: "forbid", 9: "verdict(9)",
	} {
		assert.Equal(t, name, v.String())
	}
}

func ExampleStrongest() {
	done := agent.Evaluation{Verdict: agent.AllowStop, Signal: agent.Signal{Reason: agent.StopCompleted}}
	goOn := agent.Evaluation{Verdict: agent.RequestContinuation}
	limit := agent.Evaluation{Verdict: agent.Forbid, Signal: agent.Signal{Reason: agent.StopStepsLimit}}
	fmt.Println(agent.Strongest(done, goOn).Verdict)
	fmt.Println(agent.Strongest(limit, goOn, done).Verdict, agent.Strongest(done, limit).Signal.Reason)
	// Output:
	// request_continuation
	// forbid steps_limit
}

// The signal describes the reply with which a run ended, as text and as details.
func TestTheSignalSaysHowTheReplyEnded(t *testing.T) {
	say := agenttest.Say
	for name, tc := range map[string]struct {
		turn    agenttest.Turn
		reason  agent.StopReason
		details map[string]any
	}{
		"an answer":             {say("yes"), agent.StopCompleted, nil},
		"one with a reason":     {say("yes").WithFinish(agent.FinishStop), agent.StopCompleted, nil},
		"of another word":       {say("yes").WithFinish("eos"), agent.StopCompleted, nil},
		"cut":                   {say("ye").WithFinish(agent.FinishLength), agent.StopFinishReason, map[string]any{"finishReason": "length"}},
		"filtered":              {say("ye").WithFinish(agent.FinishFilter), agent.StopFinishReason, map[string]any{"finishReason": "content_filter"}},
		"failed":                {say("ye").WithFinish(agent.FinishError), agent.StopFinishReason, map[string]any{"finishReason": "error"}},
		"empty":                 {say(""), agent.StopEmptyReply, map[string]any{"finishReason": "stop", "emptyReply": true}},
		"white space":           {say(" \n"), agent.StopEmptyReply, map[string]any{"finishReason": "stop", "emptyReply": true}},
		"cut before it said it": {say("").WithFinish(agent.FinishLength), agent.StopFinishReason, map[string]any{"finishReason": "length", "emptyReply": true}},
	} {
		t.Run(name, func(t *testing.T) {
			final := play(t, calls("add"), tc.turn)
			assert.Equal(t, agent.StatusDone, final.Status())
			signal := signalOf(t, final)
			assert.Equal(t, tc.reason, signal.Reason)
			assert.Equal(t, tc.details, signal.Details)
			assert.Equal(t, tc.reason == agent.StopCompleted, signal.Message == "")
			assert.Equal(t, "agent", signal.Source)
		})
	}
}

func TestAnEmptyReplySaysNothing(t *testing.T) {
	of := func(parts ...agent.Part) agent.Step {
		return agent.Step{Message: agent.AssistantContent(agent.ContentOf(parts...))}
	}
	for name, step := range map[string]agent.Step{"zero": {}, "reasoning": of(agent.Reasoning("hm", "")), "white space": of(agent.Text(" "), agent.Text("\n"))} {
		assert.True(t, step.Empty(), name)
	}
	for name, step := range map[string]agent.Step{
		"text": of(agent.Reasoning("hm", ""), agent.Text("x")), "an image": of(agent.ImageURL("https://example.com")),
		"a file": of(agent.File("a", "b", nil)), "a call": {Message: agent.Assistant("", agent.ToolCall{ID: "1", Name: "a"})},
	} {
		assert.False(t, step.Empty(), name)
	}
}
