package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

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

// searchedRuns is how many runs a page of a search looks at.
const searchedRuns = 5000

// ListRuns returns a page of runs. The store filters as far as it can.
func (c *Coordinator) ListRuns(ctx context.Context, f wire.RunFilter) (wire.RunList, error) {
	// Of the runs that the store has as waiting, few have hooks called: these are found by their phase.
	others := lo.Without(f.Status, string(wire.Hooking))
	if f.Query != "" || len(others) == 0 || len(others) == len(f.Status) || slices.Contains(others, string(wire.Waiting)) {
		return c.listPage(ctx, f)
	}
	out := wire.RunList{Runs: []wire.Run{}}
	for _, statuses := range [][]string{others, {string(wire.Hooking)}} {
		f.Status = statuses
		list, err := c.listPage(ctx, f)
		if err != nil {
			return list, err
		}
		out.Runs = append(out.Runs, list.Runs...)
	}
	slices.SortStableFunc(out.Runs, func(a, b wire.Run) int { return b.CreatedAt.Compare(a.CreatedAt) })
	if len(out.Runs) >= f.Limit {
		out.Runs = out.Runs[:f.Limit]
		out.Next = string(out.Runs[f.Limit-1].RunID)
	}
	return out, nil
}

// listPage returns a page of ListRuns from one list of the store.
func (c *Coordinator) listPage(ctx context.Context, f wire.RunFilter) (wire.RunList, error) {
	out := wire.RunList{Runs: []wire.Run{}}
	filter := durable.Filter{
		Name: f.AgentName, Session: agent.SessionID(f.SessionID), Parent: agent.RunID(f.Parent), Blocked: f.Blocked, Since: f.Since, Until: f.Until,
		Before: agent.RunID(f.Before), Limit: f.Limit, Top: f.Top, Decision: durable.Decision(f.Decision), Hook: f.Hook, By: f.SubmittedBy,
	}
	if f.Query != "" {
		filter.Limit = max(f.Limit, searchedRuns/5)
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
	for searched := 0; ; {
		page, err := c.store.List(ctx, filter)
		if err != nil {
			return out, err
		}
		searched += len(page)
		for _, r := range page {
			filter.Before = r.ID
			v := viewOf(r)
			if !isOurs(r) || !selects(f, v) || !r.HasText(f.Query) {
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
		if f.Query != "" && searched >= searchedRuns {
			out.Next = string(filter.Before)
			return out, nil
		}
	}
}

// changedAtOnce is how many changed runs one query reads.
const changedAtOnce = 500

// ChangedRuns returns the runs that have changed at or after a time, in the order of their last changes: those for whose last change
// isNew returns true.
func (c *Coordinator) ChangedRuns(ctx context.Context, since time.Time, isNew func(id agent.RunID, changed time.Time) bool) ([]wire.Run, error) {
	all := []wire.Run{}
	for ended, statuses := range lo.GroupBy(durable.Statuses, durable.Status.Ended) { // each list has an index
		for f := (durable.Filter{Status: statuses, ChangedSince: since, Limit: changedAtOnce}); ; {
			page, err := c.store.List(ctx, f)
			if err != nil {
				return nil, err
			}
			for _, r := range page {
				f.Before = r.ID
				if !isOurs(r) || !isNew(r.ID, r.Updated) {
					continue
				}
				v := viewOf(r)
				if ended {
					if v, err = c.view(ctx, r); err != nil {
						return nil, err
					}
				}
				all = append(all, v)
			}
			if len(page) < f.Limit {
				break
			}
		}
	}
	slices.SortStableFunc(all, func(a, b wire.Run) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	return all, nil
}

// countedAtOnce is the highest number that Counts returns: lists are that long at most.
const countedAtOnce = 1000

// Counts returns how many runs are active, and what waits for people and for the caller.
func (c *Coordinator) Counts(ctx context.Context, caller wire.Token) (out wire.Counts, err error) {
	for _, statuses := range [][]durable.Status{{durable.StatusPending, durable.StatusReady}, {durable.StatusRunning}, {durable.StatusWaiting}} {
		list, err := c.store.List(ctx, durable.Filter{Status: statuses, Limit: countedAtOnce})
		if err != nil {
			return out, err
		}
		for _, r := range list {
			switch {
			case !isOurs(r):
			case StatusOf(r) == wire.Waiting:
				out.Waiting++
			case StatusOf(r) == wire.Pending:
				out.Pending++
			default:
				out.Running++
			}
		}
	}
	waits, err := c.store.OpenWaits(ctx, durable.WaitFilter{Kinds: []durable.WaitKind{
		durable.WaitApproval, durable.WaitDoubt, durable.WaitInput, durable.WaitCallback, durable.WaitFile, durable.WaitCommand,
	}, Limit: countedAtOnce})
	if out.Inbox = len(waits); len(waits) > 0 {
		out.OldestWaitS = int64(time.Since(waits[0].Asked).Seconds())
	}
	if caller.Role == wire.Operator || caller.Role == wire.Admin {
		approval := agent.Approval{Verdict: agent.Approve, Identity: caller.Name, Roles: []string{string(caller.Role)}}
		out.InboxMine = lo.CountBy(waits, func(w durable.Wait) bool { return durable.CheckAnswer(ctx, c.store, w, approval) == nil })
	}
	return out, cmp.Or(err, ctx.Err())
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
