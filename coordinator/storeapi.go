package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// storeMethods are the methods of durable.Store that operators may call over HTTP: those that read runs and what they wait for, and
// those that steer runs, which are recorded. Answers go through decide, which checks them.
var storeMethods = []string{
	"AuditRecords", "DenyTools", "Entries", "Events", "Input", "List", "OpenWaits", "QueueServices", "Queues", "Result", "Run", "SetDenyTools", "Signal",
	"SubmittedInput", "Waits", "Waivers",
}

// viewerMethods lists the storeMethods that viewers may call: they return only data that viewers can read elsewhere. A journal has more: the
// results that on_result hooks have withheld.
var viewerMethods = []string{"Events", "Input", "List", "QueueServices", "Result", "Run", "SubmittedInput", "Waits"}

// answerOperation is the ID of the operation that answers what a run waits for.
const answerOperation = "answer"

// addStore adds what the command line needs of a store: "grapnel runs --server".
func (a *api) addStore() {
	type storeInput struct {
		Method string            `path:"method" doc:"A method of durable.Store that operators may call."`
		Body   []json.RawMessage `doc:"Its arguments, without the context."`
	}
	type storeOutput struct {
		Body struct {
			Results []json.RawMessage `json:"results"`
		}
	}
	huma.Register(a.huma, route(http.MethodPost, "/store/{method}", "call-store", "Read and steer runs: for grapnel runs --server", wire.Viewer, withOwnAudit),
		func(ctx context.Context, in *storeInput) (*storeOutput, error) {
			if about := identityOf(ctx); !allows(about.Role, wire.Operator) && !slices.Contains(viewerMethods, in.Method) {
				return nil, huma.NewError(http.StatusForbidden, missingRole(about, wire.Operator))
			}
			results, err := a.callStore(ctx, in.Method, in.Body)
			out := &storeOutput{}
			out.Body.Results = results
			return out, a.problem("reading the store", err)
		})

	type answerInput struct{ Body wire.StoreAnswer }
	type answerOutput struct{ Body durable.Wait }
	huma.Register(a.huma, route(http.MethodPost, "/store-answers", answerOperation,
		"Answer what a run waits for: for grapnel approvals --server", wire.Operator, withOwnAudit),
		func(ctx context.Context, in *answerInput) (*answerOutput, error) {
			if err := a.record(ctx, in.Body.Run, in.Body.Answer.Verdict.String()+" "+in.Body.Wait); err != nil {
				return nil, a.answerProblem(err)
			}
			w, err := a.c.answer(ctx, in.Body, approval.Principal{Name: identityOf(ctx).Name, Roles: []string{string(identityOf(ctx).Role)}})
			return &answerOutput{w}, a.answerProblem(err)
		})
}

// callStore calls a method of the store. Its arguments are JSON; names of authors in them are replaced by that of the caller.
func (a *api) callStore(ctx context.Context, name string, args []json.RawMessage) ([]json.RawMessage, error) {
	if !slices.Contains(storeMethods, name) {
		return nil, fmt.Errorf("method %q: %w", name, durable.ErrNotFound)
	}
	method := reflect.ValueOf(a.c.store).MethodByName(name)
	of := method.Type()
	if len(args) != of.NumIn()-1 {
		return nil, &InvalidError{[]FieldError{{"body", fmt.Sprintf("%s takes %d arguments, not %d", name, of.NumIn()-1, len(args))}}}
	}
	in := []reflect.Value{reflect.ValueOf(ctx)}
	for i, arg := range args {
		value := reflect.New(of.In(i + 1))
		if err := json.Unmarshal(arg, value.Interface()); err != nil {
			return nil, &InvalidError{[]FieldError{{fmt.Sprintf("body[%d]", i), err.Error()}}}
		}
		switch v := value.Interface().(type) {
		case *durable.Signal:
			v.By = identityOf(ctx).Name
		case *durable.Switch:
			v.By = identityOf(ctx).Name
		}
		in = append(in, value.Elem())
	}
	if err := a.checkCall(ctx, in[1:]); err != nil {
		return nil, err
	}
	call := method.Call
	if of.IsVariadic() {
		call = method.CallSlice
	}
	results := call(in)
	last := len(results) - 1
	if err, _ := reflect.TypeAssert[error](results[last]); err != nil {
		return nil, err
	}
	out := make([]json.RawMessage, last)
	for i, r := range results[:last] {
		var err error
		if out[i], err = json.Marshal(r.Interface()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkCall checks and records a call that steers something, which its arguments tell.
func (a *api) checkCall(ctx context.Context, args []reflect.Value) error {
	for i, arg := range args {
		switch v := arg.Interface().(type) {
		case durable.Switch:
			return a.record(ctx, "", strings.TrimSpace(fmt.Sprintf("on %t %s", v.On, v.Reason)))
		case durable.Signal:
			run, _ := reflect.TypeAssert[agent.RunID](args[i-1])
			if err := a.c.checkSignal(ctx, run); err != nil {
				return err
			}
			return a.record(ctx, run, strings.TrimSpace(string(v.Kind)+" "+v.Text))
		}
	}
	return nil
}

// checkSignal returns an error for a signal to a run that calls the hooks after another one, or tells a session how one has ended: no client
// steers these, so that a run cannot be kept out of an audit log.
func (c *Coordinator) checkSignal(ctx context.Context, run agent.RunID) error {
	r, err := c.store.Run(ctx, run)
	if err != nil {
		return err
	}
	if r.Kind == KindHooks || r.Kind == KindCallback {
		return &InvalidError{[]FieldError{{
			"body[0]", fmt.Sprintf("run %s follows run %s and belongs to the coordinator: it cannot be stopped", r.ID, r.Parent),
		}}}
	}
	return nil
}

// answer records an answer by a person to a wait.
func (c *Coordinator) answer(ctx context.Context, in wire.StoreAnswer, by approval.Principal) (durable.Wait, error) {
	w, err := durable.FindWait(ctx, c.store, in.Run, in.Wait)
	if err != nil {
		return w, err
	}
	a := in.Answer
	if len(a.Covers) == 0 {
		return w, &uncoveredError{openQuestions(w)}
	}
	a.Author, a.By, a.Identity, a.Roles = agent.AuthorPerson, by.Name, by.Name, by.Roles
	return durable.Decide(ctx, c.store, w, a)
}

// uncoveredError is returned for an answer that names no questions.
type uncoveredError struct{ open []string }

func (e *uncoveredError) Error() string {
	return "the answer names no questions: set its member covers; open are: " + strings.Join(e.open, ", ")
}

// answerProblem converts an error of answer to a response.
func (a *api) answerProblem(err error) error {
	refused, isRefused := errors.AsType[*durable.NotAdmittedError](err)
	wrong, isWrong := errors.AsType[*agent.ArgumentsError](err)
	closed, isClosed := errors.AsType[*durable.NotOpenError](err)
	switch {
	case errors.As(err, new(*uncoveredError)):
		return huma.NewError(http.StatusBadRequest, err.Error())
	case isRefused:
		return huma.NewError(http.StatusForbidden, refused.Error())
	case isWrong:
		return huma.NewError(http.StatusUnprocessableEntity, wrong.Error())
	case isClosed:
		return huma.NewError(http.StatusConflict, err.Error(), &huma.ErrorDetail{Location: "body.wait", Message: closed.Err.Error()})
	}
	return a.problem("answering", err)
}
