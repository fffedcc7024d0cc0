package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// Stop stops a run.
func (c *Coordinator) Stop(ctx context.Context, id agent.RunID, reason, by string) error {
	r, err := c.FindRun(ctx, id)
	if err != nil {
		return err
	}
	if r.Status.Ended() {
		return durable.ErrEnded
	}
	if reason == "" && by != "" {
		reason = "by " + by
	}
	return c.store.Signal(ctx, id, durable.Signal{Kind: durable.SignalCancel, Text: reason, By: by})
}

// storedStatuses returns the statuses that runs with a status of the API have in the store.
func storedStatuses(s wire.Status) []durable.Status {
	switch s {
	case wire.Pending:
		return []durable.Status{durable.StatusPending, durable.StatusReady}
	case wire.Hooking:
		return []durable.Status{durable.StatusPending, durable.StatusReady, durable.StatusRunning, durable.StatusWaiting}
	case wire.Running:
		return []durable.Status{durable.StatusRunning}
	case wire.Waiting:
		return []durable.Status{durable.StatusWaiting}
	case wire.Completed:
		return []durable.Status{durable.StatusCompleted}
	case wire.Failed:
		return []durable.Status{durable.StatusFailed, durable.StatusCancelled}
	case wire.Stopped:
		return []durable.Status{durable.StatusStopped, durable.StatusCancelled}
	}
	return nil
}

// selects reports whether a run has what the store does not filter by, or not together with the rest.
func selects(f wire.RunFilter, r wire.Run) bool {
	wanted := f.HookRuns || r.Hook == "" || f.AgentName != "" || f.Parent != "" || f.ParentSession != "" || f.SessionID != ""
	return wanted && (!f.HasHooks || r.HasHooks) && (f.ParentSession == "" || string(r.ParentSessionID) == f.ParentSession) &&
		(len(f.Status) == 0 || slices.Contains(f.Status, string(r.Status)))
}

// ListRuns returns a page of runs. The store filters as far as it can.
func (c *Coordinator) ListRuns(ctx context.Context, f wire.RunFilter) (wire.RunList, error) {
	out := wire.RunList{Runs: []wire.Run{}}
	filter := durable.Filter{
		Name: f.AgentName, Session: agent.SessionID(f.SessionID), Parent: agent.RunID(f.Parent), Blocked: f.Blocked, Since: f.Since, Until: f.Until,
		Before: agent.RunID(f.Before), Limit: f.Limit,
	}
	if len(f.Status) == 1 && wire.Status(f.Status[0]) == wire.Hooking {
		filter.Phase = KindHooks
	}
	for _, s := range f.Status {
		filter.Status = append(filter.Status, storedStatuses(wire.Status(s))...)
	}
	slices.Sort(filter.Status)
	filter.Status = slices.Compact(filter.Status)
	switch {
	case f.Label != "":
		name, value, ok := strings.Cut(f.Label, "=")
		if !ok {
			return out, &InvalidError{[]FieldError{{"label", fmt.Sprintf("%q: expected NAME=VALUE", f.Label)}}}
		}
		filter.Label = durable.Label{Name: name, Value: value}
	case f.ParentSession != "":
		filter.ParentSession = agent.SessionID(f.ParentSession)
	case f.HasHooks:
		filter.HasHooks = true
	}
	for {
		page, err := c.store.List(ctx, filter)
		if err != nil {
			return out, err
		}
		for _, r := range page {
			filter.Before = r.ID
			v := viewOf(r)
			if !isOurs(r) || !selects(f, v) {
				continue
			}
			if v, err = c.view(ctx, r); err != nil {
				return out, err
			}
			if out.Runs = append(out.Runs, v); len(out.Runs) == f.Limit {
				out.Next = string(r.ID)
				return out, nil
			}
		}
		if len(page) < filter.Limit {
			return out, nil
		}
	}
}

// Signal sends a signal to a run of any kind. Those that call hooks after a run or tell a session how one has ended cannot be steered, so
// that no run is kept out of an audit log.
func (c *Coordinator) Signal(ctx context.Context, id agent.RunID, s durable.Signal) error {
	r, err := c.store.Run(ctx, id)
	if err != nil {
		return err
	}
	if r.Kind == KindHooks || r.Kind == KindCallback {
		return &InvalidError{[]FieldError{{
			"kind", fmt.Sprintf("run %s follows run %s and belongs to the coordinator: it cannot be stopped", r.ID, r.Parent),
		}}}
	}
	return c.store.Signal(ctx, id, s)
}
