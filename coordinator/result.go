package coordinator

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/firing"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// entryResult is the kind of the journal entry with a result that on_result hooks have not seen. Its key is the fingerprint of the
// commit that would have ended the run, and its runner.
const entryResult durable.EntryKind = "result_before_hooks"

// heldResult is the data of an entryResult.
type heldResult struct {
	// Status is how the run ends; empty for completed.
	Status  durable.Status   `json:"status,omitempty"`
	Reason  agent.StopReason `json:"reason,omitempty"`
	Blocked bool             `json:"blocked,omitempty"`
	Steps   int              `json:"steps,omitempty"`
	Result  json.RawMessage  `json:"result,omitempty"`
}

// RunnerStore returns the store of the coordinator for the keeper of a worker that executes runs of blueprints. In it, a run whose runner
// has ended it goes to its on_result hooks, if it has any, before its result or error is stored.
func (c *Coordinator) RunnerStore() durable.Store { return resultStore{c.store} }

// resultStore holds results for on_result hooks.
type resultStore struct {
	durable.Store
}

// HoldsResults implements resultHolder.
func (resultStore) HoldsResults() {}

// resultHolder is a store that lets on_result hooks see the result of a run before it is stored.
type resultHolder interface{ HoldsResults() }

// Commit writes to a run. Instead of ending a run that has on_result hooks, it turns the run over to them.
func (s resultStore) Commit(ctx context.Context, l durable.Lease, c durable.Commit) (err error) {
	var r durable.Run
	if c.Update.Status.Ended() {
		if r, err = s.Run(ctx, l.Run); err != nil {
			return err
		}
	}
	return s.commitTo(ctx, r, l, c)
}

// commitTo writes to a run. It looks at the run only if the commit ends it.
func (s resultStore) commitTo(ctx context.Context, r durable.Run, l durable.Lease, c durable.Commit) (err error) {
	if !c.Update.Status.Ended() {
		return s.Store.Commit(ctx, l, c)
	}
	key := hex.EncodeToString(c.Fingerprint(l)) + " " + l.Owner
	switch decided := r.Phase == KindHooks && r.Owner != ""; {
	case !r.Traits.HoldsResult || decided:
	case c.Update.Status == durable.StatusCancelled && r.CancelCause != "": // what the runner says about it is not shown
		c.Update.Result, err = json.Marshal(durable.Result{Error: (&durable.CancelledError{Reason: r.CancelReason, Cause: r.CancelCause}).Error()})
	case r.Owner == l.Owner && r.Epoch == l.Epoch:
		c, err = turnToHooks(r, c, key)
	default:
		if held, err := s.isHeld(ctx, r, key); err != nil || held { // a repetition
			return err
		} // otherwise the store refuses it, unless it has ended the run
	}
	if err != nil {
		return err
	}
	return s.Store.Commit(ctx, l, c)
}

// turnToHooks returns a commit that, in place of one that ends a run, writes the result to the journal under a key and passes the run on to
// its on_result hooks: see hookedRun.result.
func turnToHooks(r durable.Run, c durable.Commit, key string) (durable.Commit, error) {
	data, err := json.Marshal(heldResult{c.Update.Status, c.Update.Reason, c.Update.Blocked, c.Update.Steps, c.Update.Result})
	held := durable.Entry{Seq: r.Entries + int64(len(c.Entries)) + 1, Kind: entryResult, Key: key, At: time.Now(), Data: data}
	c.Entries = append(slices.Clip(c.Entries), held)
	c.Update = durable.Update{Pass: &durable.Pass{Phase: KindHooks}}
	return c, err
}

// isHeld reports whether a run has, or had, a result with a key that its hooks must see.
func (s resultStore) isHeld(ctx context.Context, r durable.Run, key string) (bool, error) {
	entries, err := s.Entries(ctx, r.ID, 0)
	return slices.ContainsFunc(entries, func(e durable.Entry) bool { return e.Kind == entryResult && e.Key == key }), err
}

// resultOf returns the last result in a journal that on_result hooks must see, nil for none, and the entries after it. Only these are of
// the hooks: the runner has written the ones before, and could have decided in their place.
func resultOf(entries []durable.Entry) (held *heldResult, after []durable.Entry, err error) {
	for i, e := range slices.Backward(entries) {
		if e.Kind == entryResult {
			held = &heldResult{}
			if err := json.Unmarshal(e.Data, held); err != nil {
				return nil, nil, fmt.Errorf("reading the result of the runner: %w", err)
			}
			return held, entries[i+1:], nil
		}
	}
	return nil, entries, nil
}

// result calls the hooks that see a result before it is stored, and ends the run.
func (o *hookedRun) result(ctx context.Context, held *heldResult) error {
	var r durable.Result
	if len(held.Result) > 0 {
		if err := json.Unmarshal(held.Result, &r); err != nil {
			return fmt.Errorf("run %s: reading its result: %w", o.own.ID, err)
		}
	}
	input, err := o.c.store.Input(ctx, o.own.ID)
	if err != nil {
		return err
	}
	params, err := parametersOf(o.own.Kind, input)
	if err != nil {
		return err
	}
	status := cmp.Or(held.Status, durable.StatusCompleted)
	about := hooks.BlueprintRun{Parameters: params, Status: durable.Run{Status: status, Reason: held.Reason, Blocked: held.Blocked}.AgentStatus()}
	about.ResultText, about.ResultData = resultMembers(&o.blueprint.Blueprint, r)
	if r.Error != "" {
		about.Err = errors.New(r.Error)
	}
	before := about
	run, err := o.fire(ctx, hooks.RunResult, about)
	anyway := context.WithoutCancel(ctx)
	switch {
	case ctx.Err() != nil || errors.Is(err, firing.ErrParked):
		return err
	case err != nil:
		failed, ok := errors.AsType[*hooks.HookError](err)
		if !ok {
			return err
		}
		return o.end(anyway, durable.StatusFailed, agent.StopError, false, o.events.describeFailure(hooks.RunResult, failed.Hook, failed.Err))
	}
	if err := o.drain(ctx); err != nil {
		return err
	}
	if run.ResultText != before.ResultText || string(run.ResultData) != string(before.ResultData) {
		switch {
		case status != durable.StatusCompleted: // what a hook returns is in the place of the error, too
			r.Text, r.Data, r.Error = "", nil, run.ResultText
		case isResultData(&o.blueprint.Blueprint, run.ResultText):
			r.Text, r.Data, r.Error = "", json.RawMessage(run.ResultText), ""
		default:
			r.Text, r.Data, r.Error = run.ResultText, run.ResultData, ""
		}
	}
	result, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return o.update(anyway, durable.Update{
		Status: status, Reason: cmp.Or(held.Reason, agent.StopCompleted), Blocked: held.Blocked, Steps: held.Steps, Result: result,
	})
}

// isResultData reports whether a result that a hook has returned is data: what output_schema accepts, or an object as the output of a
// command.
func isResultData(b *wire.Blueprint, text string) bool {
	if !empty(b.OutputSchema) {
		return checkOutput(b, json.RawMessage(text)) == nil
	}
	return b.Type == wire.Procedural && strictjson.CheckObject(text) == nil
}

// checkedResult is an action whose replacement of the result of a completed run is checked: if the blueprint does not accept it, the hook
// has failed.
type checkedResult struct {
	action.Action

	blueprint *wire.Blueprint
}

// Do performs the action and checks the result that it returns.
func (a checkedResult) Do(ctx context.Context, r *action.Request) (*action.Answer, error) {
	answer, err := a.Action.Do(ctx, r)
	if err != nil || answer == nil || answer.Decision == nil || answer.Decision.Decision != hooks.Replace || answer.Decision.Result == nil ||
		r.Status != agent.StatusDone {
		return answer, err
	}
	if err := checkOutput(a.blueprint, json.RawMessage(*answer.Decision.Result)); err != nil {
		return nil, &action.Error{
			Type: "hook", Fault: action.FaultAnswer, Err: fmt.Errorf("the output_schema does not accept the changed result: %w", err),
		}
	}
	return answer, nil
}
