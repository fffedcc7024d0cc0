package toolexec

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// defaultMaxDelay is the default of Retry.MaxDelay.
const defaultMaxDelay = 30 * time.Second

// Retry configures whether, when and how often a failed tool runs again. Use it only for a tool whose work may be done
// twice, or that sends its Call.IdempotencyKey to the service that it uses. An attempt that has started an agent's run
// is not retried, because the run's work would be done again.
type Retry struct {
	// Attempts is the maximum number of attempts, including the first. Less than two means one attempt.
	Attempts int
	// Delay is the wait before the second attempt. Zero or less means no wait.
	Delay time.Duration
	// Backoff is the factor for each further wait. Less than one, such as zero, means two.
	Backoff float64
	// MaxDelay is the longest wait. Zero means 30 seconds.
	MaxDelay time.Duration
	// Jitter is the largest random fraction by which a wait is shortened, so that many runs do not retry at the same
	// moment. It is between zero, which means none, and one.
	Jitter float64
	// If reports whether an error is worth another attempt. Nil means all errors except a panic and errors of kind
	// agent.KindInvalid. If is not called when another attempt is impossible: after the run was cancelled or stopped,
	// or while an abandoned attempt may still be running.
	If func(err error) bool
}

// again reports whether another attempt follows after attempt n ended with err.
func (r Retry) again(n int, err error) bool {
	switch err := err.(type) { //nolint:errorlint // only the executor's own errors about this attempt count
	case nil, *CancelledError, *agent.ParkedError, *agent.InputError:
		return false
	case *TimeoutError:
		if err.Abandoned {
			return false
		}
	}
	if _, stops := stopIn(err); stops || n >= r.Attempts {
		return false
	}
	if r.If != nil {
		return r.If(err)
	}
	_, panicked := errors.AsType[*PanicError](err)
	return !panicked && agent.KindOf(err) != agent.KindInvalid
}

// wait returns the time between attempt n and the next.
func (r Retry) wait(n int) time.Duration {
	longest := float64(cmp.Or(max(0, r.MaxDelay), defaultMaxDelay))
	backoff := r.Backoff
	if !(backoff >= 1) { // NaN too
		backoff = 2
	}
	wait := min(float64(max(0, r.Delay)), longest)
	for ; n > 1 && wait > 0 && wait < longest; n-- {
		wait = min(wait*backoff, longest)
	}
	if jitter := min(r.Jitter, 1); jitter > 0 {
		wait -= wait * jitter * rand.Float64()
	}
	return time.Duration(wait)
}

// sleepFor waits, and reports whether the time passed before ctx was done.
func sleepFor(ctx context.Context, d time.Duration) bool {
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
