package ratelimit

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/reserved"
)

// Limit says how often a tool can be called.
type Limit struct {
	// Calls is the number of calls allowed in Per. Zero or less allows no call.
	Calls int
	// Per is the time in which used Calls become available again. Zero or less means never: Calls is the limit for the
	// whole run, or with Shared for the hook's lifetime.
	Per time.Duration
	// Shared counts all runs' calls together. Use it for a service that all runs use.
	Shared bool
	// Wait is how long a call can wait for its turn. Zero or less means that it is denied immediately.
	Wait time.Duration
}

// Hook returns a control at PreToolUse that denies or delays calls beyond the limit. Without matchers it limits every tool,
// each separately.
func Hook(name string, limit Limit, matching ...hooks.Matcher) hooks.Hook {
	limit.Calls, limit.Wait = max(limit.Calls, 0), min(max(limit.Wait, 0), longestWait)
	// The remaining turns are stored with the run. A run that waited for a person resumes with them.
	kept := agent.ReservedKey[map[string]turns](reserved.InternalToken(), "hooks.ratelimit."+name, agent.ScopeRun)
	shared, ofRun, counted := new(counters), agent.NewScratch[counters](nil), hooks.CountCalls()
	allow := func(c hooks.ToolContext) hooks.Result {
		if limit.Shared {
			return c.Allow()
		}
		return c.Allow(kept.Set(ofRun.Get(c.State()).snapshot(kept.Or(c.State(), nil))))
	}
	hook := hooks.On(hooks.AtPreToolUse, name, func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		if c.Invalid() != nil {
			return c.Pass() // the call does not run
		}
		if _, parked := c.Asked(); counted.Has(c) || limit.Shared && parked && c.Resumed() {
			return allow(c) // the call already had its turn
		}
		counters, before := shared, map[string]turns(nil)
		if !limit.Shared {
			counters = ofRun.Get(c.State())
			before = kept.Or(c.State(), nil)
		}
		wait, giveBack, ok := counters.take(c.Tool(), limit, before)
		if !ok {
			return c.Deny(limit.denial(c.Tool(), wait))
		}
		if err := sleepFor(ctx, wait); err != nil {
			giveBack()
			return c.Fail(fmt.Errorf("waiting for the turn of %s: %w", c.Tool(), err))
		}
		counted.Add(c)
		return allow(c)
	}, matching...).WithPriority(hooks.PriorityAfterwork)
	if limit.Wait > 0 {
		hook = hook.WithTimeout(limit.Wait + hooks.DefaultTimeout)
	}
	return hook
}

// longestWait is shorter than the wait for a turn that never comes, and leaves time for the hook.
const longestWait = rate.InfDuration - 2*hooks.DefaultTimeout

// counters hold a counter for each tool. The zero value is ready.
type counters struct {
	mu    sync.Mutex
	tools map[string]*rate.Limiter
}

// turns are a tool's remaining calls at some time.
type turns struct {
	At   time.Time `json:"at"`
	Left float64   `json:"left"`
}

// snapshot returns each tool's remaining turns. Tools in before that were not called since keep their entries.
func (c *counters) snapshot(before map[string]turns) map[string]turns {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, out := time.Now(), maps.Clone(before)
	if out == nil {
		out = map[string]turns{}
	}
	for tool, limiter := range c.tools {
		out[tool] = turns{now, limiter.TokensAt(now)}
	}
	return out
}

// take uses one of the tool's calls. It returns the time that the call must wait for its turn, and a func that gives
// the turn back. If the wait is too long, ok is false and no call is used. The wait is rate.InfDuration for a turn that
// never comes. before holds the turns that remained when the run was parked.
func (c *counters) take(tool string, limit Limit, before map[string]turns) (wait time.Duration, giveBack func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	limiter := c.tools[tool]
	if limiter == nil {
		limiter = rate.NewLimiter(limit.rate(), limit.Calls)
		if then, ok := before[tool]; ok {
			limiter.AllowN(then.At, limit.Calls-min(limit.Calls, max(0, int(then.Left))))
		}
		if c.tools == nil {
			c.tools = map[string]*rate.Limiter{}
		}
		c.tools[tool] = limiter
	}
	now := time.Now()
	r := limiter.ReserveN(now, 1)
	if !r.OK() {
		return rate.InfDuration, nil, false
	}
	if wait = r.DelayFrom(now); wait > limit.Wait {
		r.CancelAt(now)
		return wait, nil, false
	}
	return wait, r.Cancel, true
}

func (l Limit) rate() rate.Limit {
	if l.Per <= 0 {
		return 0
	}
	return rate.Limit(float64(l.Calls) / l.Per.Seconds())
}

// denial returns the text for the model. A wait of a day or more counts as never.
func (l Limit) denial(tool string, wait time.Duration) string {
	const day = 24 * time.Hour
	span := "in all"
	if l.Per > 0 {
		span = fmt.Sprintf("in %v", l.Per)
	}
	if wait > day {
		return fmt.Sprintf("%s may be called only %d times %s: continue without it", tool, l.Calls, span)
	}
	return fmt.Sprintf("%s may be called %d times %s: try again in %v", tool, l.Calls, span, roundedUp(wait))
}

// roundedUp returns a time in whole seconds, or in milliseconds if it is shorter than one.
func roundedUp(d time.Duration) time.Duration {
	unit := time.Millisecond
	if d > time.Second {
		unit = time.Second
	}
	return (d + unit - 1).Truncate(unit)
}

// sleepFor waits for d or until ctx is done.
func sleepFor(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
