package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// submitOutput is the response to a request for a run.
type submitOutput struct {
	Body struct {
		RunID     agent.RunID     `json:"run_id"`
		SessionID agent.SessionID `json:"session_id"`
		Status    wire.Status     `json:"status"`
	}
}

func acceptedRun(r durable.Run) *submitOutput {
	out := &submitOutput{}
	out.Body.RunID, out.Body.SessionID, out.Body.Status = r.ID, r.Session, apiStatus(r)
	if !r.Status.Ended() && out.Body.Status != wire.Running { // the same with and without hooks
		out.Body.Status = wire.Pending
	}
	return out
}

func (a *api) addRuns() {
	type runIDInput struct {
		ID string `path:"id"`
	}
	type submitInput struct {
		Key  string `header:"Idempotency-Key" doc:"The same as idempotency_key."`
		Body wire.RunRequest
	}
	huma.Register(a.huma, route(http.MethodPost, "/runs", "submit-run", "Submit a run of a blueprint", wire.Operator, withStatusCreated, withOwnAudit),
		func(ctx context.Context, in *submitInput) (*submitOutput, error) {
			if in.Body.IdempotencyKey == "" {
				in.Body.IdempotencyKey = in.Key
			}
			err := a.record(ctx, "", in.Body.AgentName)
			var r durable.Run
			if err == nil {
				r, err = a.c.Submit(ctx, in.Body, identityOf(ctx).Name)
			}
			if err != nil {
				return nil, a.problem("submitting a run", err)
			}
			return acceptedRun(r), nil
		})

	type runsOutput struct{ Body wire.RunList }
	huma.Register(a.huma, route(http.MethodGet, "/runs", "list-runs", "List runs, newest first", wire.Viewer),
		func(ctx context.Context, in *wire.RunFilter) (*runsOutput, error) {
			list, err := a.c.listRuns(ctx, *in)
			return &runsOutput{list}, a.problem("listing runs", err)
		})

	type runOutput struct{ Body wire.RunDetail }
	huma.Register(a.huma, route(http.MethodGet, "/runs/{id}", "get-run", "Read a run with its parameters, result and hooks", wire.Viewer),
		func(ctx context.Context, in *runIDInput) (*runOutput, error) {
			d, err := a.c.Run(ctx, agent.RunID(in.ID))
			return &runOutput{d}, a.problem("reading a run", err)
		})

	type resumeInput struct {
		ID   string `path:"id"`
		Key  string `header:"Idempotency-Key" doc:"The same as idempotency_key."`
		Body wire.ResumeRequest
	}
	huma.Register(a.huma, route(http.MethodPost, "/sessions/{id}/resume", "resume-session",
		"Submit the next run of a session, in which its agent continues the conversation", wire.Operator, withStatusCreated),
		func(ctx context.Context, in *resumeInput) (*submitOutput, error) {
			if in.Body.IdempotencyKey == "" {
				in.Body.IdempotencyKey = in.Key
			}
			r, err := a.c.Resume(ctx, agent.SessionID(in.ID), in.Body, identityOf(ctx).Name)
			return acceptedRun(r), a.problem("resuming a session", err)
		})

	type sessionsOutput struct{ Body wire.SessionList }
	huma.Register(a.huma, route(http.MethodGet, "/sessions", "list-sessions", "List sessions, the newest first", wire.Viewer),
		func(ctx context.Context, in *wire.SessionFilter) (*sessionsOutput, error) {
			list, err := a.c.listSessions(ctx, *in)
			return &sessionsOutput{list}, a.problem("listing sessions", err)
		})

	type sessionOutput struct{ Body wire.Session }
	huma.Register(a.huma, route(http.MethodGet, "/sessions/{id}", "get-session", "Read a session with its runs, and those that it has started", wire.Viewer),
		func(ctx context.Context, in *runIDInput) (*sessionOutput, error) {
			s, err := a.c.Session(ctx, agent.SessionID(in.ID))
			return &sessionOutput{s}, a.problem("reading a session", err)
		})

	type stopInput struct {
		ID   string `path:"id"`
		Body *struct {
			Reason string `json:"reason,omitempty" maxLength:"1000"`
		}
	}
	huma.Register(a.huma, route(http.MethodPost, "/runs/{id}/stop", "stop-run", "Stop a run", wire.Operator, func(o *huma.Operation) {
		o.DefaultStatus = http.StatusAccepted
	}), func(ctx context.Context, in *stopInput) (*struct{}, error) {
		return nil, a.problem("stopping a run", a.c.Stop(ctx, agent.RunID(in.ID), lo.FromPtr(in.Body).Reason, identityOf(ctx).Name))
	})

	type eventsInput struct {
		ID    string `path:"id"`
		After int64  `query:"after" minimum:"0" doc:"Only events after the one with this number."`
		Limit int    `query:"limit" default:"1000" minimum:"1" maximum:"10000"`
	}
	type runEventsOutput struct {
		Body struct {
			Events []wire.EventView `json:"events"`
		}
	}
	huma.Register(a.huma, route(http.MethodGet, "/runs/{id}/events", "list-events",
		"Read a run's events: its own, its end, and its later hooks' events", wire.Viewer),
		func(ctx context.Context, in *eventsInput) (*runEventsOutput, error) {
			events, err := a.c.listEvents(ctx, agent.RunID(in.ID), in.After, in.Limit)
			out := &runEventsOutput{}
			out.Body.Events = append([]wire.EventView{}, events...)
			return out, a.problem("reading events", err)
		})
}

func eventView(e durable.Event) wire.EventView {
	v := wire.EventView{Seq: e.Seq, Time: e.At.UTC(), Type: e.Name}
	if json.Valid(e.Data) {
		v.Data = e.Data
	}
	return v
}

// listEvents returns at most limit events after the one with a number, in the order of the stream: those of the run, its end, and those of
// the hooks after it. They are numbered from one.
func (c *Coordinator) listEvents(ctx context.Context, id agent.RunID, after int64, limit int) (all []wire.EventView, err error) {
	r, err := c.findRun(ctx, id)
	if err != nil {
		return nil, err
	}
	add := func(of agent.RunID, before int64) error {
		events, err := c.store.Events(ctx, of, max(0, after-before), limit-len(all))
		for _, e := range events {
			v := eventView(e)
			v.Seq += before
			all = append(all, v)
		}
		return err
	}
	if err := add(r.ID, 0); err != nil || !r.Status.Ended() || len(all) == limit {
		return all, err
	}
	end := r.Events + 1
	if after < end {
		name, data, err := c.endOf(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, wire.EventView{Seq: end, Time: r.Updated.UTC(), Type: name, Data: data})
	}
	finish, ok, err := finishRunOf(ctx, c.store, r)
	if err != nil || !ok || len(all) == limit {
		return all, err
	}
	return all, add(finish.ID, end)
}

// endOf returns the type and the data of the event that a run has ended.
func (c *Coordinator) endOf(ctx context.Context, id agent.RunID) (name string, data []byte, err error) {
	d, err := c.Run(ctx, id)
	if err != nil {
		return "", nil, err
	}
	name = cmp.Or(map[wire.Status]string{wire.Completed: wire.EventRunCompleted, wire.Failed: wire.EventRunFailed}[d.Status], wire.EventRunStopped)
	data, err = json.Marshal(struct {
		wire.Run

		ResultText *string         `json:"result_text"`
		ResultData json.RawMessage `json:"result_data"`
		Error      *string         `json:"error"`
	}{d.Run, d.ResultText, d.ResultData, d.Error})
	return name, data, err
}

// Stop stops a run.
func (c *Coordinator) Stop(ctx context.Context, id agent.RunID, reason, by string) error {
	r, err := c.findRun(ctx, id)
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

// listRuns returns a page of runs. The store filters as far as it can.
func (c *Coordinator) listRuns(ctx context.Context, f wire.RunFilter) (wire.RunList, error) {
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
		filter.Label = durable.Label{Name: labelParentSession, Value: f.ParentSession}
	case f.HasHooks:
		filter.Label = durable.Label{Name: LabelHooks, Value: "yes"}
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
