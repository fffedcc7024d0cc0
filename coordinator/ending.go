package coordinator

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// EndingOf returns why a run has ended as it did. While the run has not ended, it has only the failures of hooks so far.
func EndingOf(ctx context.Context, store durable.Lister, r durable.Run) (e wire.Ending, err error) {
	if r.Status.Ended() && r.Status != durable.StatusCompleted {
		result, err := durable.ResultOf(ctx, store, r.ID)
		if err != nil {
			return e, err
		}
		e.Reason = failureOf(r, result)
	}
	if !r.Traits.HasHooks {
		return e, nil
	}
	var all []wire.HookEvent
	if hasBoundaryDecision(r) {
		if all, err = boundaryEvents(ctx, store, r); err != nil {
			return e, err
		}
	}
	after, ok, err := finishRunOf(ctx, store, r)
	if err == nil && ok && hasBoundaryDecision(after) {
		var more []wire.HookEvent
		more, err = boundaryEvents(ctx, store, after)
		all = append(all, more...)
	}
	failures := eventLog{}
	for _, h := range all {
		failures.noteFailure(h)
		switch {
		case h.EventType == wire.EventHookBlocked && h.HookType == hookTypeStart:
			e.BlockedBy = h.Title()
		case h.EventType == wire.EventHookBlocked:
			e.Changes = append(e.Changes, h.Title()+" withheld the result: "+h.BlockReason)
		case h.Action == string(hooks.Replace):
			e.Changes = append(e.Changes, h.Title()+" replaced the result")
		case h.ParametersTransformed:
			e.Changes = append(e.Changes, h.Title()+" changed the parameters")
		}
	}
	e.FailedHooks = failures.failureTexts()
	return e, err
}

// hasBoundaryDecision reports whether the events of a run may have a decision that EndingOf returns: see decisionOf.
func hasBoundaryDecision(r durable.Run) bool {
	return slices.ContainsFunc(r.Decisions, func(c durable.DecisionCount) bool {
		return c.Decision != durable.DecisionDenied && c.Decision != durable.DecisionAsked && c.Decision != durable.DecisionShadow
	})
}

// boundary is how many events at the beginning and at the end of a run are searched for hooks around it: on_run_start hooks come before
// everything else, and on_result hooks after it.
const boundary = 100

// boundaryEvents returns the events of the hooks at the beginning and at the end of a run.
func boundaryEvents(ctx context.Context, store durable.Lister, r durable.Run) (all []wire.HookEvent, err error) {
	events, err := store.Events(ctx, r.ID, 0, boundary)
	if err == nil && r.Events > boundary {
		var last []durable.Event
		last, err = store.Events(ctx, r.ID, max(boundary, r.Events-boundary), boundary)
		events = append(slices.Clip(events), last...)
	}
	return hookEventsIn(events), err
}

// hookEventsIn returns the events of hooks around runs among events.
func hookEventsIn(events []durable.Event) (all []wire.HookEvent) {
	for _, e := range events {
		var h wire.HookEvent
		if isHookEvent(e.Name) && json.Unmarshal(e.Data, &h) == nil {
			all = append(all, h)
		}
	}
	return all
}

// finishRunOf returns the run that calls the hooks after a run; ok is false if there is none.
func finishRunOf(ctx context.Context, store durable.Lister, of durable.Run) (r durable.Run, ok bool, err error) {
	list, err := store.List(ctx, durable.Filter{Parent: of.ID, Kind: KindHooks, Limit: 1})
	if err != nil || len(list) == 0 {
		return durable.Run{}, false, err
	}
	return list[0], true, nil
}

// FinishRun returns the run that calls the hooks after a run, such as on_run_finish; it is empty if there is none.
func FinishRun(ctx context.Context, store durable.Lister, of agent.RunID) (durable.Run, error) {
	r, _, err := finishRunOf(ctx, store, durable.Run{ID: of})
	return r, err
}
