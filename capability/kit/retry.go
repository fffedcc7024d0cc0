package kit

import (
	"errors"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/processor"
)

// ModelRetry repeats a failed model call. It is processor.Retry, with the same fields and rules, around each step and
// inside the hooks. The zero ModelRetry makes three attempts, and waits one second and then two between them.
//
// Only a call without a reply is repeated, so no tool runs twice. If a service says how long to wait, ModelRetry waits
// at least that long. Permanent errors are not retried, and waiting ends with the context. Failed attempts do not count
// as steps, and are processor.Retrying events.
//
// If a streamed reply broke off, its pieces have already been emitted, and the next attempt starts from the beginning.
// A Retrying event separates the two.
type ModelRetry processor.Retry

// Name returns "model-retry".
func (ModelRetry) Name() string { return "model-retry" }

// Install puts the retry around each step.
func (r ModelRetry) Install(p capability.Plan) mo.Result[capability.Plan] {
	if err := r.check(); err != nil {
		return mo.Err[capability.Plan](err)
	}
	return mo.Ok(p.AroundStep(capability.Inside, r.Name(), processor.Retry(r)))
}

func (r ModelRetry) check() error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if r.Attempts < 0 {
		say("attempts are %d: it must not be negative, and zero means 3 attempts in total", r.Attempts)
	}
	if r.Backoff != 0 && !(r.Backoff >= 1) { // false for NaN
		say("backoff is %v: it must be 1 or more, zero means 2", r.Backoff)
	}
	if r.Max < 0 {
		say("the longest wait is %v: it must not be negative, zero means one minute", r.Max)
	}
	if !(r.Jitter >= 0 && r.Jitter <= 1) {
		say("jitter is %v: it must be between 0 and 1", r.Jitter)
	}
	return errors.Join(wrong...)
}
