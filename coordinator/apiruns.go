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
	"github.com/grapnel-go/grapnel/durable"
)

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// runFilter are the parameters of a list of runs.
type runFilter struct {
	Status        []string  `query:"status" doc:"Only these statuses." enum:"pending,hooking,running,waiting,completed,failed,stopped"`
	AgentName     string    `query:"agent_name" doc:"Only runs of this blueprint."`
	SessionID     string    `query:"session_id"`
	Parent        string    `query:"parent_run_id" doc:"Only runs that hooks of this run have started."`
	ParentSession string    `query:"parent_session_id" doc:"Only runs that this session has started."`
	Label         string    `query:"label" doc:"Only runs with this label, as NAME=VALUE."`
	HasHooks      bool      `query:"has_hooks" doc:"Only runs whose blueprint has hooks around them."`
	Blocked       bool      `query:"blocked" doc:"Only runs that a hook has blocked."`
	HookRuns      bool      `query:"hook_runs" doc:"Also runs that hooks have started. A list for an agent, a parent or a session has them anyway."`
	Since         time.Time `query:"since" doc:"Only runs created at or after this time."`
	Until         time.Time `query:"until" doc:"Only runs created before this time."`
	Before        string    `query:"before" doc:"Only runs after this one in the order of the list: next of the page before."`
	Limit         int       `query:"limit" default:"100" minimum:"1" maximum:"1000"`
}

// RunList is a page of runs, newest first.
type RunList struct {
	Runs []Run `json:"runs"`
	// Next, unless empty, is the value of before for the next page.
	Next string `json:"next,omitempty"`
}

// submitOutput is the response to a request for a run.
type submitOutput struct {
	Body struct {
		RunID     agent.RunID     `json:"run_id"`
		SessionID agent.SessionID `json:"session_id"`
		Status    Status          `json:"status"`
	}
}

func acceptedRun(r durable.Run) *submitOutput {
	out := &submitOutput{}
	out.Body.RunID, out.Body.SessionID, out.Body.Status = r.ID, r.Session, apiStatus(r)
	if !r.Status.Ended() && out.Body.Status != Running { // the same with and without hooks
		out.Body.Status = Pending
	}
	return out
}

func (a *api) addRuns() {
	type runIDInput struct {
		ID string `path:"id"`
	}
	type submitInput struct {
		Key  string `header:"Idempotency-Key" doc:"The same as idempotency_key."`
		Body RunRequest
	}
	huma.Register(a.huma, route(http.MethodPost, "/runs", "submit-run", "Submit a run of a blueprint", Operator, withStatusCreated, withOwnAudit),
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

	type runsOutput struct{ Body RunList }
	huma.Register(a.huma, route(http.MethodGet, "/runs", "list-runs", "List runs, newest first", Viewer),
		func(ctx context.Context, in *runFilter) (*runsOutput, error) {
			list, err := a.c.listRuns(ctx, *in)
			return &runsOutput{list}, a.problem("listing runs", err)
		})

	type runOutput struct{ Body RunDetail }
	huma.Register(a.huma, route(http.MethodGet, "/runs/{id}", "get-run", "Read a run with its parameters, result and hooks", Viewer),
		func(ctx context.Context, in *runIDInput) (*runOutput, error) {
			d, err := a.c.Run(ctx, agent.RunID(in.ID))
			return &runOutput{d}, a.problem("reading a run", err)
		})

	type resumeInput struct {
		ID   string `path:"id"`
		Key  string `header:"Idempotency-Key" doc:"The same as idempotency_key."`
		Body ResumeRequest
	}
	huma.Register(a.huma, route(http.MethodPost, "/sessions/{id}/resume", "resume-session",
		"Submit the next run of a session, in which its agent continues the conversation", Operator, withStatusCreated),
		func(ctx context.Context, in *resumeInput) (*submitOutput, error) {
			if in.Body.IdempotencyKey == "" {
				in.Body.IdempotencyKey = in.Key
			}
			r, err := a.c.Resume(ctx, agent.SessionID(in.ID), in.Body, identityOf(ctx).Name)
			return acceptedRun(r), a.problem("resuming a session", err)
		})

	type sessionsOutput struct{ Body SessionList }
	huma.Register(a.huma, route(http.MethodGet, "/sessions", "list-sessions", "List sessions, the newest first", Viewer),
		func(ctx context.Context, in *sessionFilter) (*sessionsOutput, error) {
			list, err := a.c.listSessions(ctx, *in)
			return &sessionsOutput{list}, a.problem("listing sessions", err)
		})

	type sessionOutput struct{ Body Session }
	huma.Register(a.huma, route(http.MethodGet, "/sessions/{id}", "get-session", "Read a session with its runs, and those that it has started", Viewer),
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
	huma.Register(a.huma, route(http.MethodPost, "/runs/{id}/stop", "stop-run", "Stop a run", Operator, func(o *huma.Operation) {
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
			Events []EventView `json:"events"`
		}
	}
	huma.Register(a.huma, route(http.MethodGet, "/runs/{id}/events", "list-events",
		"Read a run's events: its own, its end, and its later hooks' events", Viewer),
		func(ctx context.Context, in *eventsInput) (*runEventsOutput, error) {
			events, err := a.c.listEvents(ctx, agent.RunID(in.ID), in.After, in.Limit)
			out := &runEventsOutput{}
			out.Body.Events = append([]EventView{}, events...)
			return out, a.problem("reading events", err)
		})
}

// EventView is an event as the API has it.
type EventView struct {
	Seq  int64           `json:"seq"`
	Time time.Time       `json:"time"`
	Type string          `json:"event_type"`
	Data json.RawMessage `json:"data,omitempty"`
}

func eventView(e durable.Event) EventView {
	v := EventView{Seq: e.Seq, Time: e.At.UTC(), Type: e.Name}
	if json.Valid(e.Data) {
		v.Data = e.Data
	}
	return v
}

// listEvents returns at most limit events after the one with a number, in the order of the stream: those of the run, its end, and those of
// the hooks after it. They are numbered from one.
func (c *Coordinator) listEvents(ctx context.Context, id agent.RunID, after int64, limit int) (all []EventView, err error) {
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
		all = append(all, EventView{Seq: end, Time: r.Updated.UTC(), Type: name, Data: data})
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
	name = cmp.Or(map[Status]string{Completed: EventRunCompleted, Failed: EventRunFailed}[d.Status], EventRunStopped)
	data, err = json.Marshal(struct {
		Run

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
func storedStatuses(s Status) []durable.Status {
	switch s {
	case Pending:
		return []durable.Status{durable.StatusPending, durable.StatusReady}
	case Hooking:
		return []durable.Status{durable.StatusPending, durable.StatusReady, durable.StatusRunning, durable.StatusWaiting}
	case Running:
		return []durable.Status{durable.StatusRunning}
	case Waiting:
		return []durable.Status{durable.StatusWaiting}
	case Completed:
		return []durable.Status{durable.StatusCompleted}
	case Failed:
		return []durable.Status{durable.StatusFailed, durable.StatusCancelled}
	case Stopped:
		return []durable.Status{durable.StatusStopped, durable.StatusCancelled}
	}
	return nil
}

// selects reports whether a run has what the store does not filter by, or not together with the rest.
func selects(f runFilter, r Run) bool {
	wanted := f.HookRuns || r.Hook == "" || f.AgentName != "" || f.Parent != "" || f.ParentSession != "" || f.SessionID != ""
	return wanted && (!f.HasHooks || r.HasHooks) && (f.ParentSession == "" || string(r.ParentSessionID) == f.ParentSession) &&
		(len(f.Status) == 0 || slices.Contains(f.Status, string(r.Status)))
}

// listRuns returns a page of runs. The store filters as far as it can.
func (c *Coordinator) listRuns(ctx context.Context, f runFilter) (RunList, error) {
	out := RunList{Runs: []Run{}}
	filter := durable.Filter{
		Name: f.AgentName, Session: agent.SessionID(f.SessionID), Parent: agent.RunID(f.Parent), Blocked: f.Blocked, Since: f.Since, Until: f.Until,
		Before: agent.RunID(f.Before), Limit: f.Limit,
	}
	if len(f.Status) == 1 && Status(f.Status[0]) == Hooking {
		filter.Phase = KindHooks
	}
	for _, s := range f.Status {
		filter.Status = append(filter.Status, storedStatuses(Status(s))...)
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
