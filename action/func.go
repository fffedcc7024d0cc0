package action

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/hooks"
)

// Func calls a Go function that the program registered in Host.Funcs.
type Func struct {
	// Name is the name under which the function is registered. Required.
	Name string
	// Timeout is the time limit. Zero means one minute.
	Timeout time.Duration
}

var _ Declared = Func{}

// Type returns "func".
func (Func) Type() string { return "func" }

// Limit returns the longest time that Do may take.
func (f Func) Limit() time.Duration { return cmp.Or(f.Timeout, defaultToolTimeout) + ending }

// Lint returns no warnings.
func (Func) Lint() []Warning { return nil }

// Validate returns an error for each invalid field.
func (f Func) Validate() error {
	var p problems
	if f.Name == "" {
		p.say("func", "missing: name a func that the program has registered")
	}
	p.times(map[string]time.Duration{"timeout": f.Timeout})
	return p.join()
}

// Action returns the action, ready to run with h.
func (f Func) Action(h Host) (Action, error) {
	body := h.Funcs[f.Name]
	var p problems
	if body == nil && f.Name != "" {
		p.say("func", "unknown func %q: %s", f.Name, oneOf("func", slices.Sorted(maps.Keys(h.Funcs))))
	}
	if err := errors.Join(f.Validate(), p.join()); err != nil {
		return nil, err
	}
	return actionFunc(func(ctx context.Context, r *Request) (*Answer, error) {
		d, err := callWithin(ctx, f.Type(), cmp.Or(f.Timeout, defaultToolTimeout), func(ctx context.Context) (*Decision, error) { return body(ctx, r) })
		if err != nil {
			return nil, err
		}
		switch {
		case !r.Decides:
			return &Answer{}, nil
		case d == nil && decidesRun(r.Point):
			return nil, missingDecision(f.Type(), r.Point, "")
		case d == nil:
			return &Answer{}, nil
		case decidesRun(r.Point) && (d.Decision == hooks.Deny || d.Decision == hooks.Withhold): // regardless of its other members
			return &Answer{Decision: &Decision{Decision: refusalAt[r.Point], Reason: d.Reason}}, nil
		}
		if err := d.Validate(); err != nil {
			return nil, &Error{Type: f.Type(), Fault: FaultAnswer, Err: err}
		}
		if !slices.Contains(r.Decisions, d.Decision) {
			return nil, newFault(f.Type(), FaultAnswer, "decision %s is not allowed at %s", d.Decision, r.Point)
		}
		return &Answer{Decision: d}, nil
	}), nil
}

// oneOf lists the available names for an error message.
func oneOf(what string, names []string) string {
	if len(names) == 0 {
		return "the program has not registered any " + what
	}
	return "available: " + strings.Join(names, ", ")
}
