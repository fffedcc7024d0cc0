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

// HookSet is hooks that one run has besides those of its agent: a hooks.Set is one.
type HookSet interface {
	// Controls returns the names of the hooks whose answers count.
	Controls() []string
}

// WithHooks returns the agent with more hooks, for the runs that are to have them; the
// receiver stays as it was. RunSettings.Hooks does the same for one run.
//
// The hooks stand behind those of the agent, and are asked in one order with them: by
// priority, and of equals those of the agent first. Their names must be others, or there
// is an error and no run. Sub-agents inherit those that decide, like those of the agent,
// and Drain and Cancel of the receiver are for those that are detached, too.
//
// A run that had hooks that decide goes on only with hooks of the same names: in another
// process, too, they have to be given again, or resuming it is a *MissingHooksError. What
// only watched may be left away.
func (a *Agent) WithHooks(h HookSet) mo.Result[*Agent] {
	fail := func(err error) mo.Result[*Agent] {
		return mo.Err[*Agent](fmt.Errorf("agent %q: hooks for a run: %w", a.config.Name, err))
	}
	if a.config.Extend == nil {
		return fail(errors.New("it was made by hand and has no place for them: build it with package builder"))
	}
	more, err := a.config.Extend(h).Get()
	if err != nil {
		return fail(err)
	}
	extended := *more
	extended.controls = lo.Uniq(append(slices.Clip(a.controls), h.Controls()...))
	return mo.Ok(&extended)
}

// MissingHooksError is that a run cannot go on without hooks that it began with.
type MissingHooksError struct {
	// Run is the run.
	Run RunID
	// Hooks is the names of those that are missing.
	Hooks []string
}

func (e *MissingHooksError) Error() string {
	return fmt.Sprintf("resuming run %s: it was begun with hooks of its own, and %s would no longer decide: give them again, with WithHooks",
		e.Run, strings.Join(lo.Map(e.Hooks, func(name string, _ int) string { return fmt.Sprintf("%q", name) }), ", "))
}

// runControls is the names of the hooks of a run that are not its agent's and decide.
var runControls = ReservedKey[[]string](reserved.Show(), "agent.run_controls", ScopeRun)

// withControls writes down which hooks the run must have to go on.
func (a *Agent) withControls(s State) State {
	if len(a.controls) == 0 {
		return s
	}
	return runControls.In(s, a.controls)
}

// missing finds the hooks that a run began with and this agent does not have. For a run
// that is only to be ended, none are missing.
func (a *Agent) missing(ctx context.Context, s State) error {
	before, _ := runControls.From(s)
	if gone := lo.Without(before, a.controls...); len(gone) > 0 && ctx.Err() == nil {
		return &MissingHooksError{Run: s.Run().ID, Hooks: gone}
	}
	return nil
}
