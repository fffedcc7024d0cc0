package agent

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/reserved"
)

// Verdict is a criterion's answer. Of several verdicts the strongest wins,
// regardless of order.
type Verdict uint8

// The verdicts, weakest first.
const (
	// NoOpinion leaves the decision to other criteria.
	NoOpinion Verdict = iota
	// AllowContinuation sees a reason to go on: a tool was called.
	AllowContinuation
	// AllowStop sees no reason to go on: the model gave its answer.
	AllowStop
	// RequestContinuation asks to go on although the run could end.
	RequestContinuation
	// Forbid ends the run; nothing overrides it.
	Forbid
)

var verdictNames = [...]string{"no_opinion", "allow_continuation", "allow_stop", "request_continuation", "forbid"}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// Evaluation is a criterion's judgement. The zero Evaluation has no opinion.
type Evaluation struct {
	Verdict Verdict
	// Signal says why, for AllowStop and Forbid.
	Signal Signal
	// Handled reports that the failure of the last step is handled: the run does not
	// fail because of it.
	Handled bool
	// Effects are applied when this verdict wins. They tell the model why the run
	// goes on.
	Effects Effects
}

// Stops reports whether the run ends with this evaluation.
func (e Evaluation) Stops() bool { return e.Verdict == AllowStop || e.Verdict == Forbid }

// Strongest returns the evaluation that wins among several: the strongest verdict;
// among equals the reason with the highest rank; among those the first. The effects
// of all evaluations that agree with the winner are kept, in order. If one of them
// handled the failure of the last step, the failure does not forbid the run to go
// on.
func Strongest(evaluations ...Evaluation) Evaluation {
	handled := false
	for _, e := range evaluations {
		handled = handled || e.Handled
	}
	var best Evaluation
	for _, e := range evaluations {
		if handled && e.Verdict == Forbid && e.Signal.Reason == StopError && e.Signal.Source == baseSource {
			continue
		}
		switch {
		case e.Verdict > best.Verdict:
			best = e
		case e.Verdict == best.Verdict:
			effects := best.Effects.Add(e.Effects)
			if e.Signal.Reason.rank() > best.Signal.Reason.rank() {
				best = e
			}
			best.Effects = effects
		}
	}
	best.Handled = handled
	return best
}

const baseSource = "agent"

// Base is the criterion that every agent has. A stop signal or a failed step forbids
// going on, tool calls are a reason to go on, and an answer without tool calls ends
// the run, if it has the required form.
var Base Criterion = base{}

type base struct{}

// goesOn reports whether Base lets the run take a step: it has no stop signal, and
// it has just begun or its last step called tools.
func (s State) goesOn() bool {
	d := s.read()
	if d.signal != nil {
		return false
	}
	if d.steps.Len() == d.first {
		return true
	}
	last, _ := d.steps.Last()
	return last.read().failure == nil && len(last.read().message.list()) > 0
}

func (base) Evaluate(_ context.Context, s State) mo.Result[Evaluation] {
	if signal, ok := s.StopSignal().Get(); ok {
		return mo.Ok(Evaluation{Verdict: Forbid, Signal: signal})
	}
	if s.RunStepCount() == 0 {
		return mo.Ok(Evaluation{})
	}
	last, _ := s.LastStep().Get()
	switch {
	case last.Failure() != nil:
		return mo.Ok(Evaluation{Verdict: Forbid, Signal: Signal{
			Reason: StopError, Message: last.Failure().Text, Source: baseSource,
		}})
	case last.Message().CallCount() > 0:
		return mo.Ok(Evaluation{Verdict: AllowContinuation})
	}
	if wrong := checkOutput(s, last); wrong.Verdict != NoOpinion {
		return mo.Ok(wrong)
	}
	signal := last.EndSignal()
	signal.Source = baseSource
	return mo.Ok(Evaluation{Verdict: AllowStop, Signal: signal})
}

// outputAttempts counts the answers of a run that did not have the required form.
var outputAttempts = ReservedKey[int](reserved.Show(), "agent.output_attempts", ScopeRun)

// checkOutput accepts an answer of the required form, and asks the model again after
// any other one, until the attempts are used up.
func checkOutput(s State, last StepRecord) Evaluation {
	out := s.Request().Output
	if out == nil || out.Check == nil {
		return Evaluation{}
	}
	err := out.Check(last.Message().Text())
	if err == nil {
		return Evaluation{}
	}
	attempts := outputAttempts.Or(s, 0) + 1
	if limit := out.Attempts; attempts >= limit && (limit > 0 || attempts >= 3) {
		return Evaluation{Verdict: Forbid, Signal: Signal{
			Reason: StopError, Source: "output",
			Message: fmt.Sprintf("the answer does not have the form %q after %d attempts: %v", out.Name, attempts, err),
			Details: map[string]any{"attempts": attempts},
		}}
	}
	return Evaluation{Verdict: RequestContinuation, Effects: EffectsOf(
		outputAttempts.Set(attempts),
		AddMessage(UserText(fmt.Sprintf("Your answer does not have the form that was asked for: %v\n"+
			"Answer again, with nothing but the corrected JSON.", err)).WithSource("output")),
	)}
}
