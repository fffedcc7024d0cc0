package processor

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Retry is a processor that asks the model again when a model call failed. Use it around the step. The zero Retry makes
// three attempts, and waits one second and then two between them.
//
// Only a call without a reply is repeated. After a reply tools may have run, so the criteria decide about a failure.
// They also decide when the last attempt fails. Only the last attempt is recorded. The earlier attempts are Retrying
// events. All attempts together count as one step.
//
// Each attempt repeats everything inside the Retry: processors, the hooks around the model call, a reply that broke off
// while it was streamed.
//
// An error can override the policy. Its method `Retryable() bool` reports whether to make another attempt, and its
// method `RetryAfter() time.Duration` returns the minimum wait. When the context is done, the wait ends and the
// original failure is returned.
type Retry struct {
	// Attempts is the total number of times that the model is asked. Zero means 3.
	Attempts int
	// Delay is the wait before the second attempt. Zero means one second, and less than zero means no wait.
	Delay time.Duration
	// Backoff is the factor from one wait to the next. Zero means 2, and one makes all waits equal.
	Backoff float64
	// Max is the longest wait. Zero means one minute. An error that requires a longer wait is not retried.
	Max time.Duration
	// Jitter is the random part of each wait, from none at zero to all of it at one. It prevents runs that failed at
	// the same moment from retrying at the same moment.
	Jitter float64
	// When reports whether to make another attempt after an error. Nil means agent.Retryable. It must be safe for
	// concurrent use.
	When func(err error) bool
}

var _ agent.Processor = Retry{}

// Retrying: a model call failed and is about to be repeated.
type Retrying struct {
	Run  agent.Run
	Step int
	// Attempt is the number of the attempt that failed, counted from one.
	Attempt int
	// Wait is the time until the next attempt.
	Wait time.Duration
	Err  error
}

// EventName returns "inference.retrying".
func (Retrying) EventName() string { return "inference.retrying" }

// Process takes the step, and repeats it while the model call fails.
func (r Retry) Process(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	r = r.withDefaults()
	for attempt := 1; ; attempt++ {
		out := next(ctx, s)
		err := failedInference(s, out.Error())
		if err == nil || attempt >= r.Attempts || !r.When(err) {
			return out
		}
		wait, ok := r.wait(attempt, err)
		if !ok {
			return out
		}
		s.Emit(ctx, Retrying{Run: s.Run(), Step: s.RunStepCount(), Attempt: attempt, Wait: wait, Err: err})
		if !waitFor(ctx, wait) {
			return out
		}
	}
}

func (r Retry) withDefaults() Retry {
	if r.Attempts == 0 {
		r.Attempts = 3
	}
	if r.Delay == 0 {
		r.Delay = time.Second
	}
	if r.Backoff == 0 {
		r.Backoff = 2
	}
	if r.Max == 0 {
		r.Max = time.Minute
	}
	if r.When == nil {
		r.When = agent.Retryable
	}
	return r
}

// failedInference returns the step's error if its model call returned no reply, and nil otherwise.
func failedInference(s agent.State, err error) error {
	failed, ok := stepError(s, err)
	if !ok {
		return nil
	}
	if failed.State.RunStepCount() == 0 || failed.State.LastStep().Message().Role() != "" {
		return nil
	}
	return failed.Err
}

// wait returns the time until the next attempt. Ok is false when the error requires a wait longer than Max.
func (r Retry) wait(attempt int, err error) (wait time.Duration, ok bool) {
	delay := float64(max(r.Delay, 0))
	for range attempt - 1 {
		if delay *= r.Backoff; delay >= float64(r.Max) {
			break
		}
	}
	delay = min(delay, float64(r.Max))
	wait = time.Duration(delay * (1 - r.Jitter*rand.Float64()))
	var knows interface{ RetryAfter() time.Duration }
	if errors.As(err, &knows) {
		wait = max(wait, knows.RetryAfter())
	}
	return wait, wait <= r.Max
}

// waitFor reports whether the time passed before ctx was done.
func waitFor(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
