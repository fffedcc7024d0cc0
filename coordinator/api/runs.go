package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// runInput names a run.
type runInput struct {
	ID agent.RunID `path:"id"`
}

func (a *api) addRuns() {
	type submitInput struct {
		Key  string `header:"Idempotency-Key" doc:"The same as idempotency_key."`
		Body wire.RunRequest
	}
	add(a, route(http.MethodPost, "/runs", "submit-run", "Submit a run of a blueprint", wire.Operator, withStatusCreated, withOwnAudit),
		func(ctx context.Context, in *submitInput) (wire.Submitted, error) {
			in.Body.IdempotencyKey = cmp.Or(in.Body.IdempotencyKey, in.Key)
			a.record(ctx, in.Body.AgentName)
			return newSubmitted(a.Submit(ctx, in.Body, identityOf(ctx).Name))
		})

	type retryInput struct {
		ID   agent.RunID `path:"id"`
		Key  string      `header:"Idempotency-Key" doc:"The same as idempotency_key."`
		Body *wire.RetryRequest
	}
	add(a, route(http.MethodPost, "/runs/{id}/retry", "retry-run", "Submit a run again that has failed or was stopped", wire.Operator,
		withStatusCreated, withOwnAudit),
		func(ctx context.Context, in *retryInput) (wire.Submitted, error) {
			r := lo.FromPtr(in.Body)
			r.IdempotencyKey = cmp.Or(r.IdempotencyKey, in.Key)
			if err := checkText("the reason", r.Reason); err != nil {
				return wire.Submitted{}, err
			}
			a.record(ctx, r.Detail())
			return newSubmitted(a.Retry(ctx, in.ID, r, identityOf(ctx).Name))
		})

	add(a, route(http.MethodGet, "/runs", "list-runs", "List runs, newest first", wire.Viewer),
		func(ctx context.Context, in *wire.RunFilter) (wire.RunList, error) {
			if in.Mine {
				in.SubmittedBy = identityOf(ctx).Name
			}
			return a.ListRuns(ctx, *in)
		})

	add(a, route(http.MethodGet, "/runs/{id}", "get-run", "Read a run with its parameters, result and hooks", wire.Viewer),
		func(ctx context.Context, in *runInput) (wire.RunDetail, error) {
			d, err := a.Run(ctx, in.ID)
			if err != nil {
				return d, err
			}
			if d.Rules, err = a.RulesOf(ctx, in.ID); err != nil {
				return d, err
			}
			return d, a.addMayAnswer(ctx, &d)
		})

	type stopInput struct {
		ID   agent.RunID `path:"id"`
		Body *struct {
			Reason string `json:"reason,omitempty" maxLength:"1000"`
		}
	}
	addQuiet(a, route(http.MethodPost, "/runs/{id}/stop", "stop-run", "Stop a run", wire.Operator, func(o *huma.Operation) {
		o.DefaultStatus = http.StatusAccepted
	}), func(ctx context.Context, in *stopInput) error {
		return a.Stop(ctx, in.ID, lo.FromPtr(in.Body).Reason, identityOf(ctx).Name)
	})
}

// addMayAnswer says what the caller may answer of what a run waits for.
func (a *api) addMayAnswer(ctx context.Context, d *wire.RunDetail) error {
	if len(d.WaitsFor) == 0 {
		return nil
	}
	waits, err := a.store.Waits(ctx, d.RunID)
	if err != nil {
		return err
	}
	who := identityOf(ctx)
	for i := range d.WaitsFor {
		v := &d.WaitsFor[i]
		if len(v.Asked) == 0 {
			continue
		}
		if who.Role != wire.Operator && who.Role != wire.Admin {
			v.WhyNot = "answers need the role operator"
			continue
		}
		for _, w := range waits {
			if w.ID != v.Wait {
				continue
			}
			page, err := approval.PageOf(ctx, a.store, w, &approval.Principal{Name: who.Name, Roles: []string{string(who.Role)}}, false)
			if err != nil {
				return err
			}
			v.WhyNot = cmp.Or(page.CannotApprove, page.Message)
			v.MayAnswer = v.WhyNot == ""
		}
	}
	return nil
}

// newSubmitted returns the response for a run that was submitted: the same with and without hooks.
func newSubmitted(r durable.Run, err error) (wire.Submitted, error) {
	out := wire.Submitted{RunID: r.ID, SessionID: r.Session, Status: wire.Pending}
	if status := coordinator.StatusOf(r); r.Status.Ended() || status == wire.Running {
		out.Status = status
	}
	return out, err
}

func (a *api) addSessions() {
	type resumeInput struct {
		ID   agent.SessionID `path:"id"`
		Key  string          `header:"Idempotency-Key" doc:"The same as idempotency_key."`
		Body wire.ResumeRequest
	}
	add(a, route(http.MethodPost, "/sessions/{id}/resume", "resume-session",
		"Submit the next run of a session, in which its agent continues the conversation", wire.Operator, withStatusCreated),
		func(ctx context.Context, in *resumeInput) (wire.Submitted, error) {
			in.Body.IdempotencyKey = cmp.Or(in.Body.IdempotencyKey, in.Key)
			return newSubmitted(a.Resume(ctx, in.ID, in.Body, identityOf(ctx).Name))
		})

	add(a, route(http.MethodGet, "/sessions", "list-sessions", "List sessions, those with the newest runs first", wire.Viewer),
		func(ctx context.Context, in *wire.SessionFilter) (wire.SessionList, error) {
			return a.ListSessions(ctx, *in)
		})

	type sessionInput struct {
		ID agent.SessionID `path:"id"`
	}
	add(a, route(http.MethodGet, "/sessions/{id}", "get-session", "Read a session with its runs, and those that it has started", wire.Viewer),
		func(ctx context.Context, in *sessionInput) (wire.Session, error) { return a.Session(ctx, in.ID) })
}
