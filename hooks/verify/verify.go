package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

const (
	defaultName     = "verify"
	defaultAttempts = 3
	defaultTimeout  = 5 * time.Minute
	defaultMaxBytes = 4 << 10
)

// Check checks whether the work is done. An error means that the check could not run, which is not a failed check. A
// Check must return soon after ctx is done, and be safe for concurrent use.
type Check func(ctx context.Context, s agent.State) (Verdict, error)

// Verdict is the result of a check. The zero Verdict is a failed check without output.
type Verdict struct {
	Passed bool
	// Output tells the model what is wrong when the check has not passed. Only its end is used: see Options.MaxBytes.
	Output string
}

// Options configures how often and how long to check. The zero value holds the defaults.
type Options struct {
	// Name is the hook's name. Empty means "verify".
	Name string
	// Attempts is how often a failed check makes one run continue. Zero means three, negative means never. The agent's
	// limit for all Stop hooks together may be lower; see UseGuards.Continuations.
	Attempts int
	// Timeout limits one check. Zero means five minutes.
	Timeout time.Duration
	// MaxBytes is how many bytes from the output's end the model gets. Zero means 4 KiB.
	MaxBytes int
	// Clean, unless nil, returns the output without secrets. It is needed because a check's output does not pass
	// through the PostToolUse hooks. It must be safe for concurrent use.
	Clean func(output string) string
}

// Hook returns a control at Stop that lets a run end only when the check has passed.
func Hook(check Check, o Options) hooks.Hook {
	o.Name = cmp.Or(o.Name, defaultName)
	o.Attempts = cmp.Or(o.Attempts, defaultAttempts)
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	sentBack := agent.NewScratch[int](nil)
	return hooks.On(hooks.AtStop, o.Name, func(ctx context.Context, c hooks.StopContext) hooks.Result {
		if check == nil {
			return c.Fail(errors.New("there is no check: give verify.Hook one"))
		}
		verdict, err := o.make(ctx, check, c.State())
		switch {
		case err != nil:
			return c.Fail(fmt.Errorf("checking: %w", err))
		case verdict.Passed:
			return c.Allow()
		}
		count, told := sentBack.Get(c.State()), o.outputTail(verdict.Output)
		if *count >= o.Attempts || c.ContinuationsLeft() == 0 {
			return c.Stop(fmt.Sprintf("the check has not passed, and the model was sent back %d times: %s", *count, told))
		}
		most := min(o.Attempts, *count+c.ContinuationsLeft())
		*count++
		return c.Continue(fmt.Sprintf("You are not done: the check that your work must pass has failed (%d of %d). Fix what is wrong.\n\n%s",
			*count, most, told))
	}).WithTimeout(o.Timeout + slack)
}

// slack is how long a check can take to return after its time is up.
const slack = 10 * time.Second

// make runs the check with its time limit.
func (o Options) make(ctx context.Context, check Check, s agent.State) (Verdict, error) {
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	verdict, err := check(limited, s)
	switch {
	case ctx.Err() != nil:
		return Verdict{}, context.Cause(ctx)
	case limited.Err() != nil && !verdict.Passed:
		return Verdict{Output: fmt.Sprintf("%s\nThe check did not end within %v.", verdict.Output, o.Timeout)}, nil
	}
	return verdict, err
}

// outputTail returns the output's end, from the beginning of a line if there is one.
func (o Options) outputTail(output string) string {
	if o.Clean != nil {
		output = o.Clean(output)
	}
	output = strings.TrimSpace(strings.ToValidUTF8(output, "\ufffd"))
	if missing := len(output) - o.MaxBytes; missing > 0 {
		if line := strings.IndexByte(output[missing-1:], '\n'); line >= 0 && line < o.MaxBytes/2 {
			missing += line
		}
		output = "[… what came before is left out …]\n" + strings.ToValidUTF8(output[missing:], "")
	}
	return cmp.Or(output, "It wrote nothing.")
}
