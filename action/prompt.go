package action

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/hooks/judge"
)

// Prompt is a model that judges by a rule. It says allow or deny, and why; deny is the strongest no that the point has. See
// package hooks/judge for what it is shown and how.
type Prompt struct {
	// Rule says, for the model, what is allowed and what is not. Required.
	Rule string
	// Model is its name at the service; empty means the driver's default.
	Model string
	// Timeout is how long it may take. Zero means 30 seconds.
	Timeout time.Duration
	// MaxBytes is how long what it is shown may be. Zero means DefaultMaxBytes.
	MaxBytes int
}

var _ Declared = Prompt{}

// Type returns "prompt".
func (Prompt) Type() string { return "prompt" }

// Limit returns how long Do may take.
func (p Prompt) Limit() time.Duration { return cmp.Or(p.Timeout, defaultPromptTimeout) + ending }

// Lint finds nothing.
func (Prompt) Lint() []Warning { return nil }

// Validate finds what is wrong with it.
func (p Prompt) Validate() error {
	var wrong problems
	if p.Rule == "" {
		wrong.say("rule", "it is missing: say what is allowed and what is not")
	}
	wrong.size("max_bytes", p.MaxBytes)
	wrong.times(map[string]time.Duration{"timeout": p.Timeout})
	return wrong.join()
}

// Action makes it ready.
func (p Prompt) Action(h Host) mo.Result[Action] {
	var wrong problems
	if h.Driver == nil {
		wrong.say("type", "the program has no model to ask: set Host.Driver")
	}
	if err := errors.Join(p.Validate(), wrong.join()); err != nil {
		return mo.Err[Action](err)
	}
	j, err := judge.New(judge.Options{Driver: h.Driver, Model: p.Model, Rule: p.Rule, MaxBytes: cmp.Or(p.MaxBytes, DefaultMaxBytes)})
	if err != nil {
		return mo.Err[Action](err)
	}
	return mo.Ok[Action](actionFunc(func(ctx context.Context, r *Request) (*Answer, error) {
		about, err := r.json()
		if err != nil {
			return nil, &Error{p.Type(), FaultSetup, err}
		}
		verdict, err := callWithin(ctx, p.Type(), cmp.Or(p.Timeout, defaultPromptTimeout), func(ctx context.Context) (judge.Verdict, error) {
			return j.Decide(ctx, about)
		})
		if err != nil {
			return nil, err
		}
		return r.verdict(p.Type(), verdict.Allowed, verdict.Reason, verdict.Reason)
	}))
}
