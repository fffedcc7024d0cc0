package agent

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/reserved"
)

// Verdict is a criterion's answer. The strongest of several verdicts wins, regardless of order.
type Verdict uint8

// The verdicts, weakest first.
const (
	// NoOpinion: the other criteria decide.
	NoOpinion Verdict = iota
	// AllowContinuation: there is a reason to continue, such as a tool call.
	AllowContinuation
	// AllowStop: there is no reason to continue, because the model gave its answer.
	AllowStop
	// RequestContinuation: the run takes another step although it could end.
	RequestContinuation
	// Forbid: the run ends. No other verdict overrides this one.
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
	// Handled reports that the last step's failure is handled, so that the run does not fail because of it.
	Handled bool
	// Effects are applied when this verdict wins. They can tell the model why the run continues.
	Effects Effects

	ofFailure bool // the verdict of Base about the failure of the last step
}

// Stops reports whether the run ends with this evaluation.
func (e Evaluation) Stops() bool { return e.Verdict == AllowStop || e.Verdict == Forbid }

// Strongest returns the evaluation with the strongest verdict. Among equal verdicts the reason with the highest rank
// wins, and among equal ranks the first evaluation. The result has the effects of all evaluations with the winning
// verdict, in order. If any evaluation handled the last step's failure, Base's verdict about that failure does not
// count.
func Strongest(evaluations ...Evaluation) Evaluation {
	handled := false
	for _, e := range evaluations {
		handled = handled || e.Handled
	}
	var best Evaluation
	for _, e := range evaluations {
		if handled && e.ofFailure {
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

// Base is the criterion that every agent has. It ends the run after a stop signal or a failed step, and lets it
// continue after tool calls. After an answer without tool calls, it ends the run if the answer has the required form.
var Base Criterion = base{}

type base struct{}

func (base) Evaluate(_ context.Context, s State) mo.Result[Evaluation] {
	if s.Stopped() {
		return mo.Ok(Evaluation{Verdict: Forbid, Signal: s.StopSignal()})
	}
	if s.RunStepCount() == 0 {
		return mo.Ok(Evaluation{})
	}
	last := s.LastStep()
	switch {
	case last.Failure() != nil:
		return mo.Ok(Evaluation{Verdict: Forbid, Signal: Signal{
			Reason: StopError, Message: last.Failure().Text, Source: baseSource,
		}, ofFailure: true})
	case last.Message().CallCount() > 0, s.pausesAgain():
		return mo.Ok(Evaluation{Verdict: AllowContinuation})
	}
	if wrong := checkOutput(s); wrong.Verdict != NoOpinion {
		return mo.Ok(wrong)
	}
	signal := last.EndSignal()
	signal.Source = baseSource
	return mo.Ok(Evaluation{Verdict: AllowStop, Signal: signal})
}

// outputAttempts counts the run's answers that did not have the required form.
var outputAttempts = ReservedKey[int](reserved.InternalToken(), "agent.output_attempts", ScopeRun)

// checkOutput accepts an answer of the required form. After any other answer it asks the model again, until the
// attempts are used up.
func checkOutput(s State) Evaluation {
	out := s.Request().Output
	if out == nil || out.Check == nil {
		return Evaluation{}
	}
	err := out.Check(s.Answer())
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
