package durable

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// nest is the context key that marks a run as part of a call.
type nest struct{}

type nested struct {
	above agent.State
	call  string
}

// Within returns a context for a run that a tool call starts and waits for, in the run that s
// belongs to. When one Keeper records both, the started run has no row of its own: its state
// is part of that call, and its entries are in the journal of the calling run, under that
// run's lease. capability.UseSubagents starts its runs this way.
func Within(ctx context.Context, s agent.State, callID string) context.Context {
	return context.WithValue(ctx, nest{}, nested{s, callID})
}

// above returns the run in whose journal a run is recorded, and the call there; nil for a run
// with its own journal.
func (k *Keeper) above(ctx context.Context, s agent.State) (*recordedRun, string) {
	n, ok := ctx.Value(nest{}).(nested)
	if !ok || n.above.Run().ID != s.Run().Parent {
		return nil, ""
	}
	if up := k.runs.Get(n.above); up.keeper == k {
		return up, n.call
	}
	return nil, ""
}

// runWithin runs a run that is recorded in the journal of the run above it.
func (h *recordedRun) runWithin(ctx context.Context, k *Keeper, up *recordedRun, call string, s agent.State, next agent.Next) mo.Result[agent.State] {
	h.keeper, h.up, h.call = k, up, call
	var note error
	switch before := up.childState(call); {
	case !agent.Checkpoint(s).Resumed() && before.Status() != agent.StatusNew && !before.Status().Terminal():
		return mo.Err[agent.State](fmt.Errorf("keeping run %s: call %s has started run %s, which has not ended: resume that run",
			s.Run().ID, call, before.Run().ID))
	case agent.Checkpoint(s).Resumed():
		if h.last = before; before.Parked() {
			note = h.note(ctx, EntryResume, s, Update{})
		}
	}
	result := mo.Err[agent.State](&agent.RunError{State: s, Err: note})
	if note == nil {
		result = agent.Conclude(ctx, s, next(ctx, s))
	}
	final := lastState(result)
	if lost := h.whyLost(); lost != nil {
		return failedToKeep(final, lost)
	}
	kind := EntryEnd
	if final.Parked() {
		kind = EntryPark
	}
	if cut(ctx) { // the journal is more precise than the state about its progress
		return result
	}
	if err := h.note(context.WithoutCancel(ctx), kind, final, Update{}); err != nil {
		return mo.Err[agent.State](&agent.RunError{State: final, Err: err})
	}
	return result
}

// cut reports whether the run was cut off because its process is shutting down.
func cut(ctx context.Context) bool { return errors.Is(context.Cause(ctx), agent.ErrSuspended) }

// childState returns the state of a call's run from the journal.
func (h *recordedRun) childState(call string) agent.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	child, _, _ := agent.Checkpoint(h.last).Child(call)
	return child
}

// ofChild returns the kind and key that an entry of a run has in the journal of the run above
// it: the key is prefixed with the call.
func ofChild(kind EntryKind, call, key string) (EntryKind, string) {
	if !strings.HasPrefix(string(kind), childPrefix) {
		kind = childPrefix + kind
	}
	return kind, strings.TrimSuffix(call+"/"+key, "/")
}
