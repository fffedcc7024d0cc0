package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/internal/invisible"
)

// answerOperation is the ID of the operation that answers what a run waits for.
const answerOperation = "answer"

// addStored adds what the store has about runs of all kinds, and what steers them: for "grapnel runs --server". A journal is not for
// viewers: it has the results that on_result hooks have withheld.
func (a *api) addStored() {
	read := func(path, id, summary string, role wire.Role) huma.Operation {
		return route(http.MethodGet, path, id, summary, role)
	}

	type runs struct {
		Runs []durable.Run `json:"runs"`
	}
	add(a, read("/stored-runs", "list-stored-runs", "List runs of all kinds, newest first", wire.Viewer),
		func(ctx context.Context, in *wire.StoredFilter) (runs, error) {
			all, err := a.store.List(ctx, durable.Filter{
				Status: lo.Map(in.Status, func(s string, _ int) durable.Status { return durable.Status(s) }), Kind: in.Kind, Phase: in.Phase, Name: in.Name,
				Session: in.Session, Parent: in.Parent, Label: durable.Label{Name: in.Label, Value: in.Value}, Blocked: in.Blocked,
				Decision: in.Decision, Hook: in.Hook, By: in.By, Top: in.Top, Since: in.Since, Until: in.Until, Before: in.Before, Limit: in.Limit,
			})
			return runs{listOf(all)}, err
		})

	type pruneInput struct {
		Before time.Time `query:"ended_before" required:"true" doc:"Only runs that ended before this time."`
	}
	type pruned struct {
		Deleted int `json:"deleted"`
	}
	add(a, route(http.MethodDelete, "/stored-runs", "delete-ended-runs", "Delete runs that have ended, with all their data", wire.Admin, withOwnAudit),
		func(ctx context.Context, in *pruneInput) (pruned, error) {
			a.record(ctx, "ended before "+in.Before.UTC().Format(time.RFC3339))
			n, err := a.store.Prune(ctx, in.Before)
			return pruned{n}, err
		})
	add(a, read("/stored-runs/{id}", "get-stored-run", "Read a run of any kind", wire.Viewer),
		func(ctx context.Context, in *runInput) (durable.Run, error) { return a.store.Run(ctx, in.ID) })

	type afterInput struct {
		ID    agent.RunID `path:"id"`
		After int64       `query:"after" minimum:"0" doc:"Only those after the one with this number."`
		Limit int         `query:"limit" default:"1000" minimum:"1" doc:"How many events at most."`
	}
	type events struct {
		Events []durable.Event `json:"events"`
	}
	add(a, read("/stored-runs/{id}/events", "list-stored-events", "Read the events of a run of any kind", wire.Viewer),
		func(ctx context.Context, in *afterInput) (events, error) {
			all, err := a.store.Events(ctx, in.ID, in.After, in.Limit)
			return events{listOf(all)}, err
		})

	type entries struct {
		Entries []durable.Entry `json:"entries"`
	}
	add(a, read("/runs/{id}/entries", "list-entries", "Read the journal of a run", wire.Operator),
		func(ctx context.Context, in *struct {
			ID    agent.RunID `path:"id"`
			After int64       `query:"after" minimum:"0" doc:"Only entries after the one with this number."`
		},
		) (entries, error) {
			all, err := a.store.Entries(ctx, in.ID, in.After)
			return entries{listOf(all)}, err
		})

	type waits struct {
		Waits []durable.Wait `json:"waits"`
	}
	add(a, read("/runs/{id}/waits", "list-run-waits", "Read what a run waits for, or has waited for", wire.Viewer),
		func(ctx context.Context, in *runInput) (waits, error) {
			all, err := a.store.Waits(ctx, in.ID)
			return waits{listOf(all)}, err
		})

	type data struct {
		Data []byte `json:"data"`
	}
	type inputInput struct {
		ID        agent.RunID `path:"id"`
		Submitted bool        `query:"submitted" doc:"As it was submitted, before hooks have changed it."`
	}
	add(a, read("/runs/{id}/input", "get-input", "Read what a run begins with", wire.Viewer), func(ctx context.Context, in *inputInput) (out data, err error) {
		get := a.store.Input
		if in.Submitted {
			get = a.store.SubmittedInput
		}
		out.Data, err = get(ctx, in.ID)
		return out, err
	})
	add(a, read("/runs/{id}/result", "get-result", "Read what a run ended with", wire.Viewer), func(ctx context.Context, in *runInput) (out data, err error) {
		out.Data, err = a.store.Result(ctx, in.ID)
		return out, err
	})

	add(a, read("/waits", "list-waits", "List what runs wait for, oldest first", wire.Operator),
		func(ctx context.Context, in *wire.WaitFilter) (waits, error) {
			f := durable.WaitFilter{
				Kinds: lo.Map(in.Kinds, func(k string, _ int) durable.WaitKind { return durable.WaitKind(k) }), Run: in.Run, Expired: in.Expired,
				Limit: in.Limit,
			}
			if in.AfterWait != "" {
				f.After = &durable.Wait{Asked: in.AfterAsked, Run: in.AfterRun, ID: in.AfterWait}
			}
			all, err := a.store.OpenWaits(ctx, f)
			return waits{listOf(all)}, err
		})

	type decisions struct {
		Decisions []durable.AuditRecord `json:"decisions"`
	}
	add(a, read("/decisions", "list-decisions", "List what people have decided, newest first", wire.Operator),
		func(ctx context.Context, in *wire.DecisionFilter) (decisions, error) {
			all, err := a.store.AuditRecords(ctx, durable.AuditFilter{Kind: in.Kind, Run: in.Run, Subject: in.Subject, Before: in.Before, Limit: in.Limit})
			return decisions{listOf(all)}, err
		})

	add(a, read("/waivers", "list-waivers", "List standing answers", wire.Operator),
		func(ctx context.Context, in *struct {
			All bool `query:"all" doc:"Also those that are not in force any more."`
		},
		) (wire.Waivers, error) {
			all, err := a.store.Waivers(ctx, in.All)
			return wire.Waivers{Waivers: listOf(all)}, err
		})

	type queues struct {
		Queues []wire.Queue `json:"queues"`
	}
	add(a, read("/queues", "list-queues", "List the queues of runs, and how workers serve them", wire.Viewer),
		func(ctx context.Context, _ *struct{}) (queues, error) {
			all, err := a.ListQueues(ctx)
			return queues{listOf(all)}, err
		})

	type runners struct {
		Runners []wire.Runner `json:"runners"`
	}
	add(a, read("/runners", "list-runners", "List the runners that are connected, and the runs that they have", wire.Viewer),
		func(ctx context.Context, _ *struct{}) (runners, error) {
			all, err := a.ListRunners(ctx)
			return runners{listOf(all)}, err
		})

	a.addWaiving()
	a.addSteering()
}

// addWaiving adds making and revoking waivers. Their authors are the tokens.
func (a *api) addWaiving() {
	type waiverInput struct{ Body wire.WaiverRequest }
	add(a, route(http.MethodPost, "/waivers", "add-waiver", "Answer questions of a rule until a time", wire.Operator, withStatusCreated, withOwnAudit),
		func(ctx context.Context, in *waiverInput) (durable.Waiver, error) {
			b := in.Body
			s := waiver.Scope{Rule: b.Rule, Tool: b.Tool, Arguments: b.Arguments, Reason: b.Reason}
			w, err := waiver.New(s, identityOf(ctx).Name, b.Expires)
			if err != nil {
				return w, huma.NewError(http.StatusUnprocessableEntity, err.Error())
			}
			a.record(ctx, fmt.Sprintf("%s until %s", s, b.Expires.UTC().Format(time.RFC3339)))
			return w, a.store.AddWaiver(ctx, w)
		})

	type waiverID struct {
		ID string `path:"id"`
	}
	addQuiet(a, route(http.MethodDelete, "/waivers/{id}", "revoke-waiver", "Revoke a standing answer", wire.Operator),
		func(ctx context.Context, in *waiverID) error {
			return a.store.RevokeWaiver(ctx, in.ID, identityOf(ctx).Name)
		})
}

// addSteering adds what operators change: the switch that denies tools, signals to runs, and answers. Their authors are the tokens.
func (a *api) addSteering() {
	add(a, route(http.MethodGet, "/deny-tools", "read-deny-tools", "Read the switch that denies every tool", wire.Operator),
		func(ctx context.Context, _ *struct{}) (durable.Switch, error) { return a.store.DenyTools(ctx) })

	type denyInput struct {
		Body struct {
			On     bool   `json:"on"`
			Reason string `json:"reason,omitempty" maxLength:"1000"`
		}
	}
	addQuiet(a, route(http.MethodPut, "/deny-tools", "set-deny-tools", "Deny every tool of all runs, or no more", wire.Operator, withOwnAudit),
		func(ctx context.Context, in *denyInput) error {
			s := durable.Switch{On: in.Body.On, Reason: in.Body.Reason, By: identityOf(ctx).Name}
			if err := checkText("the reason", s.Reason); err != nil {
				return err
			}
			detail := "off"
			if s.On {
				detail = "on"
			}
			a.record(ctx, strings.TrimSpace(detail+" "+s.Reason))
			return a.store.SetDenyTools(ctx, s)
		})

	type signalInput struct {
		ID   agent.RunID `path:"id"`
		Body struct {
			Kind durable.SignalKind `json:"kind" enum:"cancel,pause,resume,context"`
			Text string             `json:"text,omitempty" doc:"The reason, or what is added to the conversation."`
		}
	}
	addQuiet(a, route(http.MethodPost, "/runs/{id}/signals", "send-signal", "Cancel, pause or resume a run of any kind, or tell it something", wire.Operator,
		withOwnAudit),
		func(ctx context.Context, in *signalInput) error {
			a.record(ctx, strings.TrimSpace(string(in.Body.Kind)+" "+in.Body.Text))
			return a.Signal(ctx, in.ID, durable.Signal{Kind: in.Body.Kind, Text: in.Body.Text, By: identityOf(ctx).Name})
		})

	type answerInput struct {
		ID       agent.RunID    `path:"id"`
		Question string         `path:"question" doc:"What is asked: the id of a wait of the run. An answer to what the run does not ask any more is refused."`
		Body     agent.Approval `doc:"A verdict is approve, reject or reject_and_continue. Covers has the IDs of questions. The author is the token."`
	}
	add(a, route(http.MethodPost, "/runs/{id}/questions/{question}/answers", answerOperation, "Answer what a run waits for", wire.Operator, withOwnAudit),
		func(ctx context.Context, in *answerInput) (durable.Wait, error) {
			a.record(ctx, in.Body.Verdict.String())
			w, err := a.answer(ctx, in.ID, in.Question, in.Body)
			return w, answerProblem(err)
		})
}

// checkText returns a response for text of a person that is not safe to show to others and to a model.
func checkText(what, text string) error {
	if err := invisible.CheckText(what, text, maxBody); err != nil {
		return huma.NewError(http.StatusUnprocessableEntity, err.Error())
	}
	return nil
}

// answer records an answer to a wait.
func (a *api) answer(ctx context.Context, run agent.RunID, wait string, answer agent.Approval) (durable.Wait, error) {
	w, err := durable.FindWait(ctx, a.store, run, wait)
	if err != nil {
		return w, err
	}
	if len(answer.Covers) == 0 {
		var open []string
		if about, err := durable.InterventionOf(w); err == nil {
			open = lo.Map(durable.OpenQuestions(w, about), func(q agent.Question, _ int) string { return q.ID() })
		}
		return w, huma.NewError(http.StatusBadRequest, "the answer names no questions: set its member covers; open are: "+strings.Join(open, ", "))
	}
	by := identityOf(ctx)
	answer.Author, answer.By, answer.Identity, answer.Roles = agent.AuthorPerson, by.Name, by.Name, []string{string(by.Role)}
	return durable.Decide(ctx, a.store, w, answer)
}

// answerProblem converts an error of answer that is about the answer to a response.
func answerProblem(err error) error {
	refused, isRefused := errors.AsType[*durable.NotAdmittedError](err)
	wrong, isWrong := errors.AsType[*agent.ArgumentsError](err)
	_, isUnsafe := errors.AsType[*invisible.UnsafeTextError](err)
	closed, isClosed := errors.AsType[*durable.NotOpenError](err)
	switch {
	case isRefused:
		return huma.NewError(http.StatusForbidden, refused.Error())
	case isWrong:
		return huma.NewError(http.StatusUnprocessableEntity, wrong.Error())
	case isUnsafe:
		return huma.NewError(http.StatusUnprocessableEntity, err.Error())
	case isClosed:
		return huma.NewError(http.StatusConflict, err.Error(), &huma.ErrorDetail{Location: "path.question", Message: closed.Err.Error()})
	}
	return err
}
