package toolexec

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// defaultMaxDelay is the longest wait between two attempts where Retry does not say.
const defaultMaxDelay = 30 * time.Second

// Retry is whether, when and how often a tool that failed is run again. Only give it to a tool that may do its work
// twice, or one that tells the service it talks to its Call.IdempotencyKey. It does not apply to an attempt that has
// started a run of an agent: what that run did would be done again.
type Retry struct {
	// Attempts is how often the tool is run at most, the first time included. Below two means once.
	Attempts int
	// Delay is the wait before the second attempt. Zero and less mean no wait.
	Delay time.Duration
	// Backoff is what each further wait is multiplied with. Below one, as zero is, means two.
	Backoff float64
	// MaxDelay is the longest wait. Zero means 30 seconds.
	MaxDelay time.Duration
	// Jitter is by how much of itself a wait may be shorter, by chance, so that many runs do not come back at the same
	// moment: between zero, not at all, and one.
	Jitter float64
	// If says which errors are worth another attempt. Nil means all but a panic and what says that it is
	// agent.KindInvalid. It is not asked where there will be none: after the run was cancelled or stopped, and after an
	// attempt that was given up and may still be at work.
	If func(err error) bool
}

// again reports whether another attempt follows after err, the outcome of attempt n.
func (r Retry) again(n int, err error) bool {
	switch err := err.(type) { //nolint:errorlint // only what the executor itself says of this attempt counts
	case nil, *CancelledError, *agent.ParkedError:
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

// sleepFor waits, and reports whether the time was not cut short.
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
