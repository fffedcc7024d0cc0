package agent

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Limits limits the usage of one run and the runs below it: see Spending. Zero means no limit. A negative value or NaN
// allows nothing. It is a plain value.
//
// If a criterion has a method Limits() (Limits, bool), its limits also stop the runs that the run starts. The criteria
// in package continuation and from capability.UseGuards have this method. See LimitsOf.
type Limits struct {
	// Steps is the maximum number of model turns.
	Steps int
	// Tokens is the maximum sum of input and output tokens.
	Tokens int64
	// Cost is the maximum cost in US dollars.
	Cost float64
	// Time is the maximum time that the run is running: see State.Elapsed. Time as a parked run does not count.
	Time time.Duration
}

// LimitsOf returns the result of the criterion's method Limits, if it has one.
func LimitsOf(c Criterion) Limits {
	if limited, ok := c.(interface{ Limits() Limits }); ok {
		return limited.Limits()
	}
	return Limits{}
}

// Merge returns limits that enforce both, which are the smaller ones.
func (l Limits) Merge(m Limits) Limits {
	return Limits{smaller(l.Steps, m.Steps), smaller(l.Tokens, m.Tokens), smaller(l.Cost, m.Cost), smaller(l.Time, m.Time)}
}

// smaller returns the smaller of two limits, where zero means no limit.
func smaller[N int | int64 | float64 | time.Duration](a, b N) N {
	if a == 0 || math.IsNaN(float64(b)) || b != 0 && b < a {
		return b
	}
	return a
}

// StopFor returns the signal that ends s's run because it has reached a limit. Of several, it returns the signal whose
// reason ranks highest. It returns false while the run may continue. The signal's Source is empty.
func (l Limits) StopFor(s State) (Signal, bool) {
	spent := s.Spending()
	if over := l.checkSpending(&spent, s.read().began(), s); over != nil {
		return *over, true
	}
	return Signal{}, false
}

// checkSpending returns the signal for a run's usage. Began is when the run would have begun without pauses: see
// stateData.began. S may be the zero State.
func (l Limits) checkSpending(spent *Spending, began time.Time, s State) *Signal {
	if spent.Usage.InputTokens < 0 || spent.Usage.OutputTokens < 0 || spent.Usage.Tokens() < 0 { // the sum overflowed
		spent.Unclear = true
	}
	switch {
	case l.Cost != 0 && l.costReached(spent):
		return l.costSignal(spent, s)
	case l.Tokens != 0 && (spent.Unclear || spent.Usage.Tokens() >= l.Tokens):
		return l.tokenSignal(spent)
	case l.Time != 0 && !began.IsZero() && time.Since(began) > l.Time:
		passed := time.Since(began)
		return &Signal{
			Reason: StopTimeLimit, Message: fmt.Sprintf("%s of at most %s passed", passed.Round(time.Millisecond), max(l.Time, 0)),
			Details: map[string]any{"elapsedSeconds": passed.Seconds(), "maxSeconds": max(l.Time, 0).Seconds()},
		}
	case l.Steps != 0 && spent.Steps >= l.Steps:
		return &Signal{
			Reason: StopStepsLimit, Message: fmt.Sprintf("%d of at most %d steps taken%s", spent.Steps, max(l.Steps, 0), spent.withBelow()),
			Details: map[string]any{"currentSteps": spent.Steps, "maxSteps": max(l.Steps, 0)},
		}
	}
	return nil
}

// withBelow returns a note if the usage includes the runs below.
func (a *Spending) withBelow() string {
	if a.Below {
		return ", with the runs that it started"
	}
	return ""
}

func (l Limits) tokenSignal(spent *Spending) *Signal {
	limit, used := max(l.Tokens, 0), spent.Usage
	over := &Signal{Reason: StopTokenLimit, Details: map[string]any{"maxTokens": limit}}
	if spent.Unclear {
		over.Message = fmt.Sprintf("the token usage of the run is unknown, so the limit of %d cannot be enforced: a reply came "+
			"without usage, or with a usage that is negative or too large; have the driver set Usage, or remove the token limit", limit)
		return over
	}
	over.Message = fmt.Sprintf("%d of at most %d tokens used%s", used.Tokens(), limit, spent.withBelow())
	over.Details["totalTokens"], over.Details["inputTokens"], over.Details["outputTokens"] = used.Tokens(), used.InputTokens, used.OutputTokens
	return over
}

// costReached reports whether the cost limit is reached, or cannot be enforced.
func (l Limits) costReached(spent *Spending) bool {
	cost, known := spent.Usage.Cost.Get()
	return !known || spent.Unclear || !(cost < l.Cost) // negated, so that NaN ends the run
}

func (l Limits) costSignal(spent *Spending, s State) *Signal {
	limit := formatDollars(max(l.Cost, 0))
	over := &Signal{Reason: StopCostLimit, Details: map[string]any{"maxCost": max(l.Cost, 0)}}
	cost, known := spent.Usage.Cost.Get()
	switch {
	case !known:
		over.Message = fmt.Sprintf("the cost of the run is unknown, so the limit of %s cannot be enforced: %s came without a cost; "+
			"have the driver set Usage.Cost, or remove the cost limit", limit, s.firstWithoutCost())
		return over
	case spent.Unclear:
		over.Message = fmt.Sprintf("the cost of the run is unknown, so the limit of %s cannot be enforced: a reply came with a usage "+
			"that is negative or too large", limit)
		return over
	}
	over.Message = fmt.Sprintf("%s of at most %s spent%s", formatDollars(cost), limit, spent.withBelow())
	over.Details["currentCost"] = cost
	return over
}

// formatDollars formats an amount without floating-point noise.
func formatDollars(amount float64) string {
	const dust = 1e6
	return "$" + strconv.FormatFloat(math.Round(amount*dust)/dust, 'f', -1, 64)
}

// firstWithoutCost describes the run's first reply that came without a cost.
func (s State) firstWithoutCost() string {
	for i, step := range s.RunSteps() {
		if step.Message().Role() == "" || step.Usage().Cost.IsPresent() {
			continue
		}
		if model := step.Reply().Model; model != "" {
			return fmt.Sprintf("the reply of model %q in step %d", model, i)
		}
		return fmt.Sprintf("the model's reply in step %d", i)
	}
	return "a model's reply"
}

// checkBelow returns a signal if spent has reached one of this run's limits, and nil otherwise. Spent is the usage of
// this run and the runs below it.
func (a *account) checkBelow(spent *Spending) *Signal {
	if a.limits == (Limits{}) {
		return nil
	}
	over := a.limits.checkSpending(spent, a.began, State{})
	if over != nil {
		over.Source = "limits of run " + string(a.run.ID)
		over.Message = fmt.Sprintf("the run that this one belongs to, %s of agent %q: %s", a.run.ID, a.run.Agent, over.Message)
	}
	return over
}

// exceededExtra returns the limit in RunSettings that the run has reached, or nil. S is the state after a step.
func (a *account) exceededExtra(s State) *Signal {
	if a.extra == (Limits{}) {
		return nil
	}
	spent := a.total()
	over := a.extra.checkSpending(&spent, a.began, s)
	if over != nil {
		over.Source = extraSource
	}
	return over
}

// withTimeLimit returns a context that ends at RunSettings' time limit, if there is one, with the signal as its cause.
func (a *account) withTimeLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := a.extra.Time
	if limit == 0 {
		return ctx, func() {}
	}
	over := &SignalError{Signal{
		Reason: StopTimeLimit, Message: fmt.Sprintf("the time limit of %s has passed", max(limit, 0)), Source: extraSource,
		Details: map[string]any{"elapsedSeconds": max(limit, time.Since(a.began)).Seconds(), "maxSeconds": max(limit, 0).Seconds()},
	}}
	return context.WithDeadlineCause(ctx, a.began.Add(limit), over)
}

// extraSource is the source of signals from RunSettings.Limits.
const extraSource = "limits of the run"
