package action

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/grapnel-go/grapnel/hooks/judge"
)

// Prompt lets a model judge a request by a rule. The model answers allow or deny, with a reason. A denial becomes the
// strongest refusal that the point supports. Package hooks/judge documents the request and how the model sees it.
type Prompt struct {
	// Rule tells the model what is allowed and what is not. Required.
	Rule string
	// Model is the service's name for the model. Empty means the driver's default.
	Model string
	// Timeout is the time limit. Zero means 30 seconds.
	Timeout time.Duration
	// MaxBytes limits the request size that the model sees. Zero means DefaultMaxBytes.
	MaxBytes int
}

var _ Declared = Prompt{}

// Type returns "prompt".
func (Prompt) Type() string { return "prompt" }

// Limit returns the longest time that Do may take.
func (p Prompt) Limit() time.Duration { return cmp.Or(p.Timeout, defaultPromptTimeout) + ending }

// Lint returns no warnings.
func (Prompt) Lint() []Warning { return nil }

// Validate returns an error for each invalid field.
func (p Prompt) Validate() error {
	var wrong problems
	if p.Rule == "" {
		wrong.say("rule", "missing: state what is allowed and what is not")
	}
	wrong.size("max_bytes", p.MaxBytes)
	wrong.times(map[string]time.Duration{"timeout": p.Timeout})
	return wrong.join()
}

// Action returns the action, ready to run with h.
func (p Prompt) Action(h Host) (Action, error) {
	var wrong problems
	if h.Driver == nil {
		wrong.say("type", "no model configured: set Host.Driver")
	}
	if err := errors.Join(p.Validate(), wrong.join()); err != nil {
		return nil, err
	}
	j, err := judge.New(judge.Options{Driver: h.Driver, Model: p.Model, Rule: p.Rule, MaxBytes: cmp.Or(p.MaxBytes, DefaultMaxBytes)})
	if err != nil {
		return nil, err
	}
	return actionFunc(func(ctx context.Context, r *Request) (*Answer, error) {
		about, err := r.json()
		if err != nil {
			return nil, &Error{Type: p.Type(), Fault: FaultSetup, Err: err}
		}
		verdict, err := callWithin(ctx, p.Type(), cmp.Or(p.Timeout, defaultPromptTimeout), func(ctx context.Context) (judge.Verdict, error) {
			return j.Decide(ctx, about)
		})
		if err != nil {
			return nil, err
		}
		return r.verdict(p.Type(), verdict.Allowed, verdict.Reason, verdict.Reason)
	}), nil
}
