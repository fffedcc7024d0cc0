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

// Within returns a context for a run that a tool call in s's run starts and waits for. If one Keeper records both, the
// started run has no row of its own: its state is part of the call, and its entries are in the calling run's journal.
// capability.UseSubagents starts its runs this way.
func Within(ctx context.Context, s agent.State, callID string) context.Context {
	return context.WithValue(ctx, nest{}, nested{s, callID})
}

// above returns the run whose journal gets a run's entries, and the call there; nil for a run
// with its own journal.
func (k *Keeper) above(ctx context.Context, s agent.State) (*recordedRun, string) {
	n, ok := ctx.Value(nest{}).(nested)
	if !ok || n.above.Run().ID != s.Run().Parent {
		return nil, ""
	}
	if above := k.runs.Get(n.above); above.keeper == k {
		return above, n.call
	}
	return nil, ""
}

// executeNested runs a run that is recorded in the journal of the run above it.
func (r *recordedRun) executeNested(ctx context.Context, above *recordedRun, call string, s agent.State, next agent.Next) mo.Result[agent.State] {
	r.keeper, r.lease, r.signals, r.once = above.keeper, above.lease, above.signals, above.once
	r.journal.lease, r.journal.above, r.journal.call = above.lease, &above.journal, call
	var failed error
	switch before := above.journal.childState(call); {
	case !agent.Checkpoint(s).Resumed() && before.Status() != agent.StatusNew && !before.Status().Terminal():
		return mo.Err[agent.State](fmt.Errorf("keeping run %s: call %s has started run %s, which has not ended: resume that run",
			s.Run().ID, call, before.Run().ID))
	case agent.Checkpoint(s).Resumed():
		if r.journal.state = before; before.Parked() {
			failed = r.recordState(ctx, EntryResume, s, Update{})
		}
	}
	result := mo.Err[agent.State](&agent.RunError{State: s, Err: failed})
	if failed == nil {
		result = agent.Conclude(ctx, s, next(ctx, s))
	}
	final := lastState(result)
	if err := r.lease.err(); err != nil {
		return failedToKeep(final, err)
	}
	kind := EntryEnd
	if final.Parked() {
		kind = EntryPark
	}
	if wasCutOff(ctx) { // the journal is more precise than the state about its progress
		return result
	}
	if err := r.recordState(context.WithoutCancel(ctx), kind, final, Update{}); err != nil {
		return mo.Err[agent.State](&agent.RunError{State: final, Err: err})
	}
	return result
}

// wasCutOff reports whether the run was cut off because its process is shutting down.
func wasCutOff(ctx context.Context) bool { return errors.Is(context.Cause(ctx), agent.ErrSuspended) }

// childEntry returns the kind and key that a run's entry has in the journal of the run above
// it: the key is prefixed with the call.
func childEntry(kind EntryKind, call, key string) (EntryKind, string) {
	if !strings.HasPrefix(string(kind), childPrefix) {
		kind = childPrefix + kind
	}
	return kind, strings.TrimSuffix(call+"/"+key, "/")
}
