package hooks

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// prepareBegun asks the hooks about a call that began before the run was cut off or parked. The call keeps its
// journalled arguments, even if middleware has changed since.
func (x *HookedToolExecutor) prepareBegun(ctx context.Context, s agent.State, begun, original *agent.ToolCall) mo.Result[*agent.Prepared] {
	p, err := x.prepareRewritten(ctx, s, begun)
	if err != nil {
		return mo.Err[*agent.Prepared](err)
	}
	q := *p
	q.Original, q.Begun = original, true
	if !q.Call.IsSame(*begun) {
		q.Carry, q.Strict = nil, false
	}
	q.Call = begun
	return x.judge(ctx, s, pointsOf(x.hooks).tools.hooksFor(begun.Name), original, &q)
}

// ignored reports whether a control's answer is ignored because the call has begun. A rewrite cannot change its
// arguments, and a mock cannot replace a call that may have happened.
func ignored(ctx context.Context, s agent.State, p *agent.Prepared, o *Outcome) bool {
	what := "mock"
	switch {
	case o.decision == Mock:
	case o.decision == Rewrite && !o.prepared.Call.IsSame(*p.Call):
		what = "rewrite"
	default:
		return false
	}
	if s.Observed() {
		s.Emit(ctx, Event{
			Kind: HookConflict, Run: s.Run(), Step: s.RunStepCount(), Call: *p.Call, Hook: o.hook, Point: PreToolUse,
			Decision: o.decision, Reason: fmt.Sprintf("the call has begun: the %s is ignored", what),
			Before: p.Call.Arguments, After: o.Arguments(),
		})
	}
	return true
}
