package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/reserved"
)

// HookSet is a set of hooks for one run, in addition to its agent's hooks. A hooks.Set is one.
type HookSet interface {
	// Controls returns the names of the control hooks.
	Controls() []string
}

// WithHooks returns a copy of the agent with more hooks, for the runs that need them. RunSettings.Hooks does the same
// for one run.
//
// The hooks share one order with the agent's hooks: by priority, and at equal priority the agent's hooks first. A name
// that the agent's hooks already use is an error, and no run starts. Sub-agents inherit control hooks, as they inherit
// the agent's. Drain and Cancel of the receiver include the set's detached hooks.
//
// A run that began with control hooks can be resumed only with hooks of the same names, also in another process.
// Without them, resuming returns a *MissingHooksError. Observing hooks may be omitted.
func (a *Agent) WithHooks(h HookSet) mo.Result[*Agent] {
	fail := func(err error) mo.Result[*Agent] {
		return mo.Err[*Agent](fmt.Errorf("agent %q: hooks for a run: %w", a.config.Name, err))
	}
	if a.config.Extend == nil {
		return fail(errors.New("Config.Extend is not set: build the agent with package builder"))
	}
	more, err := a.config.Extend(h).Get()
	if err != nil {
		return fail(err)
	}
	extended := *more
	extended.controls = lo.Uniq(append(slices.Clip(a.controls), h.Controls()...))
	return mo.Ok(&extended)
}

// MissingHooksError is returned when a run cannot be resumed because some hooks that it began with are missing.
type MissingHooksError struct {
	// Run is the run's ID.
	Run RunID
	// Hooks are the names of the missing hooks.
	Hooks []string
}

func (e *MissingHooksError) Error() string {
	return fmt.Sprintf("resuming run %s: control hooks that it began with are missing: %s: add them with WithHooks",
		e.Run, strings.Join(lo.Map(e.Hooks, func(name string, _ int) string { return fmt.Sprintf("%q", name) }), ", "))
}

// runControls holds the names of the control hooks that a run has in addition to its agent's.
var runControls = ReservedKey[[]string](reserved.InternalToken(), "agent.run_controls", ScopeRun)

// withControls records which hooks the run needs to be resumed.
func (a *Agent) withControls(s State) State {
	if len(a.controls) == 0 {
		return s
	}
	return runControls.In(s, a.controls)
}

// missing returns an error if the run began with hooks that this agent does not have. It returns nil when ctx is done,
// because a run can end without its hooks.
func (a *Agent) missing(ctx context.Context, s State) error {
	before, _ := runControls.From(s)
	if gone := lo.Without(before, a.controls...); len(gone) > 0 && ctx.Err() == nil {
		return &MissingHooksError{Run: s.Run().ID, Hooks: gone}
	}
	return nil
}
