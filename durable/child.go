package durable

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// nest is the key under which a context says that a run is part of a call.
type nest struct{}

type nested struct {
	above agent.State
	call  string
}

// Within returns a context for a run that a tool call starts and waits for, in the run
// that s belongs to. When both are kept by one Keeper, the run has no row of its own: its
// state is part of that call, and what happens in it stands in the journal of the other,
// under its lease. capability.UseSubagents starts its runs so.
func Within(ctx context.Context, s agent.State, callID string) context.Context {
	return context.WithValue(ctx, nest{}, nested{s, callID})
}

// above returns the run that a run is kept with, and the call there; nil for a run that stands
// alone.
func (k *Keeper) above(ctx context.Context, s agent.State) (*held, string) {
	n, ok := ctx.Value(nest{}).(nested)
	if !ok || n.above.Run().ID != s.Run().Parent {
		return nil, ""
	}
	if up := k.runs.Get(n.above); up.keeper == k {
		return up, n.call
	}
	return nil, ""
}

// runWithin runs a run that is kept with the one above it.
func (h *held) runWithin(ctx context.Context, k *Keeper, up *held, call string, s agent.State, next agent.Next) mo.Result[agent.State] {
	h.keeper, h.up, h.call = k, up, call
	var note error
	switch before := up.childState(call); {
	case !agent.Checkpoint(s).Resumed() && before.Status() != agent.StatusNew && !before.Status().Terminal():
		return mo.Err[agent.State](fmt.Errorf("keeping run %s: call %s has started run %s, which has not ended: resume that one",
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
	if cut(ctx) { // the journal knows better than the state how far it came
		return result
	}
	if err := h.note(context.WithoutCancel(ctx), kind, final, Update{}); err != nil {
		return mo.Err[agent.State](&agent.RunError{State: final, Err: err})
	}
	return result
}

// cut reports whether the run was cut off because its process goes away.
func cut(ctx context.Context) bool { return errors.Is(context.Cause(ctx), agent.ErrSuspended) }

// childState returns the run of a call, as the journal has it.
func (h *held) childState(call string) agent.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	child, _, _ := agent.Checkpoint(h.last).Child(call)
	return child
}

// ofChild returns what an entry of a run is in the journal of the one above it: its kind, and
// its key behind the call.
func ofChild(kind EntryKind, call, key string) (EntryKind, string) {
	if !strings.HasPrefix(string(kind), childPrefix) {
		kind = childPrefix + kind
	}
	return kind, strings.TrimSuffix(call+"/"+key, "/")
}
