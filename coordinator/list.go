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
	"github.com/grapnel-go/grapnel/internal/invisible"
)

// maxStopReason is how long the reason for a stop may be, in bytes.
const maxStopReason = 4000

// Stop stops a run. It returns an *InvalidError for a reason that hides characters or is too long.
func (c *Coordinator) Stop(ctx context.Context, id agent.RunID, reason, by string) error {
	if err := invisible.CheckText("it", reason, maxStopReason); err != nil {
		return &InvalidError{[]FieldError{{"reason", err.Error()}}}
	}
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

// lookedAt is how many runs a page looks at to find those that the store cannot select, such as the hits of a search.
const lookedAt = 1000

// ListRuns returns a page of runs. The store filters as far as it can.
func (c *Coordinator) ListRuns(ctx context.Context, f wire.RunFilter) (wire.RunList, error) {
	p, err := c.list(ctx, f, durable.Filter{})
	out := wire.RunList{Runs: make([]wire.Run, len(p.runs)), Next: string(p.end.ID), Searched: p.searched}
	for i := 0; i < len(p.runs) && err == nil; i++ {
		out.Runs[i], err = c.view(ctx, p.runs[i])
	}
	return out, err
}

// listed is a page of runs.
type listed struct {
	runs []durable.Run
	end  durable.Run // unless empty, the last run that was looked at: more may follow
	// searched is how many runs were looked at for a text.
	searched int
}

// list returns a page of the runs that two filters select. The second one has what the first one cannot say.
func (c *Coordinator) list(ctx context.Context, f wire.RunFilter, stored durable.Filter) (p listed, err error) {
	// Of the runs that the store has as waiting, few have hooks called: these are found by their phase.
	others := lo.Without(f.Status, string(wire.Hooking))
	if f.Query != "" || len(others) == 0 || len(others) == len(f.Status) || slices.Contains(others, string(wire.Waiting)) {
		return c.listPage(ctx, f, stored)
	}
	var ends []durable.Run
	for _, statuses := range [][]string{others, {string(wire.Hooking)}} {
		f.Status = statuses
		part, err := c.listPage(ctx, f, stored)
		if err != nil {
			return p, err
		}
		p.runs = append(p.runs, part.runs...)
		if part.end.ID != "" {
			ends = append(ends, part.end)
		}
	}
	newestFirst := func(a, b durable.Run) int { return b.Created.Compare(a.Created) }
	slices.SortStableFunc(p.runs, newestFirst)
	if len(ends) > 0 { // what is behind the first end is for the next page
		p.end = slices.MinFunc(ends, newestFirst)
		p.runs = lo.Reject(p.runs, func(r durable.Run, _ int) bool { return r.Created.Before(p.end.Created) })
	}
	if len(p.runs) > f.Limit {
		p.runs = p.runs[:f.Limit]
		p.end = p.runs[f.Limit-1]
	}
	return p, nil
}

// listPage returns a page from one list of the store. The page is short if few of the runs that it looks at are selected.
func (c *Coordinator) listPage(ctx context.Context, f wire.RunFilter, filter durable.Filter) (p listed, err error) {
	filter.Name, filter.Session, filter.Parent, filter.Blocked = f.AgentName, agent.SessionID(f.SessionID), agent.RunID(f.Parent), f.Blocked
	filter.Since, filter.Until, filter.Before, filter.Limit = f.Since, f.Until, agent.RunID(f.Before), f.Limit
	filter.Top, filter.Decision, filter.Hook, filter.By = f.Top, durable.Decision(f.Decision), f.Hook, f.SubmittedBy
	most := max(lookedAt, 2*f.Limit)
	if f.Query != "" {
		filter.Limit = most
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
			return p, &InvalidError{[]FieldError{{"label", fmt.Sprintf("%q: expected NAME=VALUE", f.Label)}}}
		}
		filter.Label = durable.Label{Name: name, Value: value}
	case f.ParentSession != "":
		filter.ParentSession = agent.SessionID(f.ParentSession)
	case f.HasHooks:
		filter.HasHooks = true
	}
	for looked := 0; ; {
		page, err := c.store.List(ctx, filter)
		if err != nil {
			return p, err
		}
		for _, r := range page {
			filter.Before = r.ID
			looked++
			if f.Query != "" {
				p.searched = looked
			}
			if !isOurs(r) || !selects(f, viewOf(r)) || !r.HasText(f.Query) {
				continue
			}
			if p.runs = append(p.runs, r); len(p.runs) == f.Limit {
				p.end = r
				return p, nil
			}
		}
		if len(page) < filter.Limit {
			return p, nil
		}
		if looked >= most {
			p.end = page[len(page)-1]
			return p, nil
		}
	}
}

// changedAtOnce is how many changed runs one query reads.
const changedAtOnce = 500

// ChangedRuns returns the runs that have changed at or after a time, in the order of their last changes: those for whose last change
// isNew returns true.
func (c *Coordinator) ChangedRuns(ctx context.Context, since time.Time, isNew func(id agent.RunID, changed time.Time) bool) ([]wire.Run, error) {
	all := []wire.Run{}
	for f := (durable.Filter{ChangedSince: since, Limit: changedAtOnce}); ; {
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
			if r.Status.Ended() {
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
	slices.SortStableFunc(all, func(a, b wire.Run) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	return all, nil
}

// Counts stops counting at mostCounted runs and mostAsked questions.
const (
	mostCounted = 1000
	mostAsked   = 100
)

// Counts returns how many runs are active, and what waits for people and for the caller.
func (c *Coordinator) Counts(ctx context.Context, caller wire.Token) (out wire.Counts, err error) {
	count := func(phase durable.Kind, limit int, statuses ...durable.Status) (n int) {
		if err == nil {
			n, err = c.store.Count(ctx, durable.Filter{HasTurn: true, Phase: phase, Status: statuses, Limit: limit})
		}
		return n
	}
	// Runs whose hooks are called have any of these statuses in the store, and count as running.
	early, parked := count(KindHooks, mostCounted, durable.StatusPending, durable.StatusReady), count(KindHooks, mostCounted, durable.StatusWaiting)
	out.Pending = count("", early+mostCounted, durable.StatusPending, durable.StatusReady) - early
	out.Waiting = count("", parked+mostCounted, durable.StatusWaiting) - parked
	out.Running = min(early+parked+count("", mostCounted, durable.StatusRunning), mostCounted)
	if err != nil {
		return wire.Counts{}, err
	}
	waits, err := c.store.OpenWaits(ctx, durable.WaitFilter{Kinds: []durable.WaitKind{
		durable.WaitApproval, durable.WaitDoubt, durable.WaitInput, durable.WaitCallback, durable.WaitFile, durable.WaitCommand,
	}, Limit: mostAsked})
	if out.Inbox = len(waits); len(waits) > 0 {
		out.OldestWaitS = int64(time.Since(waits[0].Asked).Seconds())
	}
	if caller.Role == wire.Operator || caller.Role == wire.Admin {
		approval := agent.Approval{Verdict: agent.Approve, Identity: caller.Name, Roles: []string{string(caller.Role)}}
		out.InboxMine = lo.CountBy(waits, func(w durable.Wait) bool { return durable.CheckAnswer(ctx, c.store, w, approval) == nil })
	}
	return out, cmp.Or(err, ctx.Err())
}

// maxSignalText is how long the text of a signal may be, in bytes.
const maxSignalText = 1 << 20

// Signal sends a signal to a run of any kind. Those that call hooks after a run or tell a session how one has ended cannot be steered, so
// that no run is kept out of an audit log. It returns an *InvalidError for these, and for a text that hides characters or is too long.
func (c *Coordinator) Signal(ctx context.Context, id agent.RunID, s durable.Signal) error {
	if err := invisible.CheckText("it", s.Text, maxSignalText); err != nil {
		return &InvalidError{[]FieldError{{"text", err.Error()}}}
	}
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
