package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/firing"
	"github.com/grapnel-go/grapnel/internal/runctx"
	"github.com/grapnel-go/grapnel/policy"
)

// HookRunners returns the runners that call the hooks around runs and tell sessions how runs have ended, for WorkerOptions.Runners.
// The keeper belongs to the worker.
func (c *Coordinator) HookRunners(k *durable.Keeper) map[durable.Kind]durable.Runner {
	own := hookRunner{c: c, keeper: k}
	return map[durable.Kind]durable.Runner{KindHooks: &own, KindCallback: &callbackRunner{own}}
}

type hookRunner struct {
	c      *Coordinator
	keeper *durable.Keeper
}

// Owner returns the owner of the keeper.
func (r *hookRunner) Owner() string { return r.keeper.Owner() }

// Has returns true: every blueprint is in the store.
func (*hookRunner) Has(string) bool { return true }

// Suspend lets hooks end: the worker cuts off those that take too long.
func (*hookRunner) Suspend() {}

// Execute calls the hooks of a run that has not begun, or those of one that has ended.
func (r *hookRunner) Execute(ctx context.Context, about durable.Run) error {
	ctx, span := startSpan(ctx, about)
	defer span.End()
	ctx, x := r.keeper.Open(ctx, about)
	defer x.Close()
	anyway := context.WithoutCancel(ctx)
	o, err := r.c.open(anyway, x, about)
	if cancelled, ok := errors.AsType[*durable.CancelledError](context.Cause(ctx)); err != nil && ok { // its hooks cannot be called
		return x.End(anyway, durable.StatusCancelled, agent.StopUser, durable.Result{Error: cancelled.Error()})
	}
	if err != nil {
		return err
	}
	defer o.close()
	switch {
	case about.Phase == KindHooks && o.held != nil:
		err = o.result(ctx, o.held)
	case about.Phase == KindHooks:
		err = o.begin(ctx)
	default:
		err = o.finish(ctx)
	}
	return o.conclude(ctx, err)
}

// hookedRun is a run whose hooks are called: before it begins, or after it has ended.
type hookedRun struct {
	c         *Coordinator
	x         *durable.Execution
	own       durable.Run // the run that is executed
	about     durable.Run // the run that the hooks are about
	blueprint wire.Stored
	params    json.RawMessage // of the run that the hooks are about, as they were submitted
	journal   *firing.Journal
	events    *eventLog
	waits     []durable.Wait
	held      *heldResult     // what on_result hooks must see; nil for none
	entries   []durable.Entry // of the hooks, as they were when the run was opened
	scope     *hooks.RunScope
}

// open reads what is known about a run and its hooks.
func (c *Coordinator) open(ctx context.Context, x *durable.Execution, own durable.Run) (*hookedRun, error) {
	o := &hookedRun{c: c, x: x, own: own, about: own}
	var err error
	if own.Phase != KindHooks {
		if o.about, err = c.store.Run(ctx, own.Parent); err != nil {
			return nil, fmt.Errorf("run %s: the run that its hooks are about: %w", own.ID, err)
		}
	}
	if o.blueprint, err = c.blueprintOf(ctx, own); err != nil {
		return nil, err
	}
	input, err := c.store.SubmittedInput(ctx, o.about.ID)
	if err == nil {
		o.params, err = parametersOf(o.about.Kind, input)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", o.about.ID, err)
	}
	entries, err := x.Entries(ctx, 0)
	if err != nil {
		return nil, err
	}
	if o.held, o.entries, err = resultOf(entries); err != nil {
		return nil, fmt.Errorf("run %s: %w", own.ID, err)
	}
	if o.waits, err = x.Waits(ctx); err != nil {
		return nil, err
	}
	written, err := c.store.Events(ctx, own.ID, 0, maxHookEvents)
	if err != nil {
		return nil, err
	}
	o.events = newEventLog(o.about, written)
	o.events.noteWaits(o.waits)
	o.events.report = c.reportHook
	o.journal = firing.NewJournal(x, own.ID, own.Entries, o.entries, nil)
	return o, o.compile(ctx)
}

// reportHook reports an event of a hook that is stored.
func (c *Coordinator) reportHook(ctx context.Context, h wire.HookEvent, e hooks.Event) {
	if h.EventType != wire.EventHookStart {
		c.telemetry.Observe(ctx, e)
	}
	if c.observe != nil {
		c.observe(h)
	}
}

// maxHookEvents is the maximum number of events of the hooks of a run.
const maxHookEvents = 10_000

// compile compiles the hooks of the blueprint.
func (o *hookedRun) compile(ctx context.Context) error {
	host := o.c.host
	host.Agents, host.Parks = starter{o}, true
	rules, err := o.c.loadRules(&o.blueprint.Blueprint, policy.Options{Host: host, Wrap: o.checkChanges})
	if err != nil {
		return fmt.Errorf("the hooks of blueprint %q: %w", o.blueprint.Name, err)
	}
	for _, r := range rules.Rules() {
		o.events.rules[r.Hook()] = r
	}
	list, err := rules.Hooks()
	if err != nil {
		return fmt.Errorf("the hooks of blueprint %q: %w", o.blueprint.Name, err)
	}
	around := list[:0:0]
	for _, h := range list {
		if h.Points()[0] != hooks.PreToolUse && !isPassed(o.about, h) { // the first are hooks of the run's agent
			around = append(around, h)
		}
	}
	compiled, err := hooks.NewSet(around...).Compile()
	if err != nil {
		return fmt.Errorf("the hooks of blueprint %q: %w", o.blueprint.Name, err)
	}
	o.scope = compiled.OpenScope(ctx, hooks.ScopeOptions{
		Run: agent.Run{
			ID: o.about.ID, Session: o.about.Session, Agent: o.about.Name, Parent: o.about.Parent, Root: o.about.Root, Started: o.about.Created,
		},
		Observer: o.events, Journal: startJournal{o},
	})
	return nil
}

// close ends detached actions.
func (o *hookedRun) close() {
	if o.scope != nil {
		o.scope.Cancel()
	}
}

// startJournal writes the event that a hook has begun before its action runs.
type startJournal struct{ o *hookedRun }

// Once records an action: see hooks.Journal.
func (j startJournal) Once(
	ctx context.Context, s agent.State, name string, repeat bool, do func(ctx context.Context, key string) ([]byte, error),
) ([]byte, error) {
	if ctx.Err() != nil { // the firing is repeated
		return nil, context.Cause(ctx)
	}
	return j.o.journal.Once(ctx, s, name, repeat, func(ctx context.Context, key string) ([]byte, error) {
		if err := j.o.writeEvents(ctx); err != nil {
			return nil, err
		}
		return do(ctx, key)
	})
}

// writeEvents writes the events so far.
func (o *hookedRun) writeEvents(ctx context.Context) error {
	return o.events.write(false, func(events []durable.Event) error {
		return o.journal.Commit(ctx, durable.Commit{Events: events}, nil)
	})
}

// update writes a change of the run with the events so far.
func (o *hookedRun) update(ctx context.Context, u durable.Update, jobs ...durable.Job) error {
	return o.events.write(true, func(events []durable.Event) error {
		return o.journal.Commit(ctx, durable.Commit{Update: u, Jobs: jobs, Events: events}, nil)
	})
}

// end ends the run.
func (o *hookedRun) end(ctx context.Context, status durable.Status, reason agent.StopReason, blocked bool, failure string) error {
	result, err := json.Marshal(durable.Result{Error: failure})
	if err != nil {
		return err
	}
	if err := o.update(ctx, durable.Update{Status: status, Reason: reason, Blocked: blocked, Result: result}); err != nil {
		return err
	}
	recordEnd(ctx, status, reason)
	return nil
}

// fired is what the hooks of a point have made of a run.
type fired struct {
	hooks.BlueprintRun

	denied *hooks.DeniedError // nil unless a hook has blocked the run
}

// fire fires a point. It returns firing.ErrParked when a hook waits in the store: that is recorded.
func (o *hookedRun) fire(ctx context.Context, point hooks.PointName, about hooks.BlueprintRun) (fired, error) {
	firingCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	now := time.Now()
	if o.own.Updated.After(now) { // by the clock of the store, which has decided that the run is ready
		now = o.own.Updated
	}
	place := &firing.Place{Run: o.scope.Run(), Waits: o.waits, Now: now, Cancel: cancel}
	run, _, denied, err := o.scope.Blueprint(runctx.WithPlace(firingCtx, place), agent.NewState(), hooks.Firing{Point: point}, about)
	if !errors.Is(err, firing.ErrParked) && !errors.Is(context.Cause(firingCtx), firing.ErrParked) {
		out := fired{BlueprintRun: run}
		if denied != nil && !errors.As(denied, &out.denied) {
			err = cmp.Or(err, denied)
		}
		return out, err
	}
	o.events.dropEnds()
	// Actions that are not awaited have their own time: they end before the run waits, and that does not shorten the wait.
	parked := time.Now()
	if err := o.scope.Drain(ctx); err != nil { // another process continues
		return fired{}, err
	}
	for i := range place.Parked {
		if w := &place.Parked[i]; !w.Deadline.IsZero() {
			w.Deadline = w.Deadline.Add(time.Since(parked))
		}
	}
	err = o.update(context.WithoutCancel(ctx), durable.Update{Status: durable.StatusWaiting, Waits: place.Parked}, place.Jobs...)
	return fired{}, cmp.Or(err, firing.ErrParked)
}

// begin calls the hooks before a run, and passes the run on.
func (o *hookedRun) begin(ctx context.Context) error {
	if o.own.Traits.Turn == durable.TurnLater {
		ok, err := o.takeCallbacks(ctx, o.entries)
		if err != nil {
			return err
		}
		if !ok {
			return o.end(context.WithoutCancel(ctx), durable.StatusStopped, agent.StopRequested, false,
				"there is nothing left to tell the agent: another run of the session has done so")
		}
	}
	run, err := o.fire(ctx, hooks.RunStart, hooks.BlueprintRun{Parameters: o.params})
	anyway := context.WithoutCancel(ctx)
	switch {
	case ctx.Err() != nil || errors.Is(err, firing.ErrParked):
		return err
	case err != nil:
		failed, ok := errors.AsType[*hooks.HookError](err)
		if !ok {
			return err
		}
		return o.end(anyway, durable.StatusFailed, agent.StopError, false, o.events.describeFailure(hooks.RunStart, failed.Hook, failed.Err))
	case run.denied != nil && run.denied.Failed:
		return o.end(anyway, durable.StatusFailed, agent.StopError, false,
			o.events.describeFailure(hooks.RunStart, run.denied.Hook, run.denied.Reason))
	case run.denied != nil:
		return o.end(anyway, durable.StatusFailed, agent.StopDenied, true, "Blocked by on_run_start hook: "+orNoReason(run.denied.Reason))
	}
	if err := o.drain(ctx); err != nil { // observers that are not awaited: they write to the journal, which is the runner's next
		return err
	}
	pass := &durable.Pass{}
	switch {
	case o.own.Traits.Turn == durable.TurnLater:
		if pass.Input, err = o.resumedInput(ctx, run.Parameters); err != nil {
			return err
		}
	case string(run.Parameters) != string(o.params):
		if pass.Input, err = o.c.changedInput(ctx, o.own, run.Parameters); err != nil {
			return err
		}
	}
	return o.update(anyway, durable.Update{Pass: pass})
}

// finish calls the hooks after a run, and ends the run that does so.
func (o *hookedRun) finish(ctx context.Context) error {
	if !o.about.Status.Ended() {
		return fmt.Errorf("run %s has not ended: its hooks are called when it has", o.about.ID)
	}
	result, err := durable.ResultOf(ctx, o.c.store, o.about.ID)
	if err != nil {
		return err
	}
	run := hooks.BlueprintRun{Parameters: o.params, Status: o.about.AgentStatus(), Took: o.about.Updated.Sub(o.about.Created)}
	run.ResultText, run.ResultData = resultMembers(&o.blueprint.Blueprint, result)
	var points []hooks.PointName
	if StatusOf(o.about) == wire.Failed { // as the API has it: also a run that nothing took in time
		run.Status, run.Err = agent.StatusFailed, errors.New(failureOf(o.about, result))
		points = append(points, hooks.RunFailed)
	}
	if timedOut(o.about) {
		points = append(points, hooks.RunTimeout)
	}
	for _, point := range append(points, hooks.RunFinish) {
		_, err := o.fire(ctx, point, run)
		if ctx.Err() != nil || errors.Is(err, firing.ErrParked) {
			return err
		}
		if _, failed := errors.AsType[*hooks.HookError](err); err != nil && !failed { // the run is over: a failed hook changes nothing
			return err
		}
	}
	if err := o.drain(ctx); err != nil {
		return err
	}
	if failed := o.events.failureTexts(); len(failed) > 0 { // the run that they are about stays as it is
		return o.end(context.WithoutCancel(ctx), durable.StatusFailed, agent.StopError, false, strings.Join(failed, "; "))
	}
	return o.end(context.WithoutCancel(ctx), durable.StatusCompleted, agent.StopCompleted, false, "")
}

// drain waits until the actions that are not awaited have ended.
func (o *hookedRun) drain(ctx context.Context) error {
	err := o.scope.Drain(ctx)
	if err == nil {
		o.events.endBegun()
	}
	return err
}

// conclude returns what Execute returns for the outcome of hooks.
func (o *hookedRun) conclude(ctx context.Context, err error) error {
	if cancelled, ok := errors.AsType[*durable.CancelledError](context.Cause(ctx)); ok {
		return errors.Join(
			o.c.cancelHookRuns(context.WithoutCancel(ctx), o.waits),
			o.end(context.WithoutCancel(ctx), durable.StatusCancelled, agent.StopUser, false, cancelled.Error()),
		)
	}
	if ctx.Err() == nil && !errors.Is(err, firing.ErrParked) {
		return err
	}
	return nil // the run waits, or another process continues
}

// cancelHookRuns cancels the runs that hooks have started and that have not ended.
func (c *Coordinator) cancelHookRuns(ctx context.Context, waits []durable.Wait) error {
	var wrong []error
	for _, w := range waits {
		if w.Kind == durable.WaitChild {
			s := durable.Signal{Kind: durable.SignalCancel, Text: "the run of the hook was cancelled"}
			if err := c.store.Signal(ctx, w.Child, s); err != nil && !errors.Is(err, durable.ErrNotFound) {
				wrong = append(wrong, err)
			}
		}
	}
	return errors.Join(wrong...)
}

// checkChanges returns an action whose changed parameters are checked: if the blueprint does not accept them, the hook has
// failed.
func (o *hookedRun) checkChanges(r policy.Rule, a action.Action) action.Action {
	if r.Point == hooks.RunResult {
		return checkedResult{a, &o.blueprint.Blueprint}
	}
	if r.Point != hooks.RunStart {
		return a
	}
	if o.own.Traits.Turn == durable.TurnLater {
		return checkedAction{a, func(p json.RawMessage) error { return checkAgainst(resumeSchema, "parameters", p) }}
	}
	return checkedAction{a, func(p json.RawMessage) error { return checkParameters(&o.blueprint.Blueprint, p) }}
}

type checkedAction struct {
	action.Action

	check func(params json.RawMessage) error
}

// Do performs the action and checks the parameters that it returns.
func (a checkedAction) Do(ctx context.Context, r *action.Request) (*action.Answer, error) {
	answer, err := a.Action.Do(ctx, r)
	if err != nil || answer == nil || answer.Decision == nil || answer.Decision.Decision != hooks.Rewrite {
		return answer, err
	}
	if err := a.check(answer.Decision.Arguments); err != nil {
		return nil, &action.Error{
			Type: "hook", Fault: action.FaultAnswer, Err: fmt.Errorf("the blueprint does not accept the changed parameters: %w", err),
		}
	}
	return answer, nil
}

// starter starts runs of blueprints for hooks. An awaited one lets the firing wait in the store.
type starter struct{ o *hookedRun }

var _ action.AgentStarter = starter{}

// StartAgent starts a run, and returns its result if a rule awaits it.
func (s starter) StartAgent(ctx context.Context, start action.AgentStart) (string, error) {
	o, key := s.o, start.Request.IdempotencyKey
	place, awaited := runctx.PlaceOf(ctx).(*firing.Place)
	if !awaited && o.events.knownRun(start.Request.Hook) != "" { // before a crash
		return "", nil
	}
	if awaited {
		for _, w := range place.Waits {
			if w.Subject == hookWaitPrefix+key {
				return o.resultOfHook(ctx, place, w, start)
			}
		}
	}
	b, err := o.c.Blueprint(ctx, start.Agent, 0)
	if err != nil {
		return "", err
	}
	if err := o.checkAncestors(ctx, start.Agent); err != nil {
		return "", err
	}
	if err := checkParameters(&b.Blueprint, start.Input); err != nil {
		return "", fmt.Errorf("blueprint %q does not accept the input of the hook: %w", start.Agent, err)
	}
	again := !decidesRun(start.Request.Point)
	once := ""
	if !awaited { // the commit may be repeated by another process
		once = hashKey("hook", key)
	}
	var deadline time.Time // of a run that nothing waits for: the time limit of the hook, if the blueprint has one
	if limit := o.events.rules[start.Request.Hook].Timeout; !awaited && limit > 0 {
		deadline = time.Now().Add(limit)
	}
	jobs, err := o.c.jobsOf(ctx, &b, start.Input, durable.Job{
		IdempotencyKey: once, Session: newSessionID(hookSessionPrefix), Parent: o.about.ID, Root: cmp.Or(o.about.Root, o.about.ID), By: o.about.By,
		Priority: o.about.Priority, Deadline: deadline,
		Traits: durable.Traits{Hook: hookTypes[start.Request.Point], Turn: durable.TurnFirst, ParentSession: o.about.Session},
	}, again)
	if err != nil {
		return "", err
	}
	if !again {
		jobs = jobs[:1]
	}
	o.events.noteRun(start.Request.Hook, jobs[0].ID)
	if !awaited {
		return "", o.update(ctx, durable.Update{}, jobs...)
	}
	w := durable.Wait{
		Run: o.own.ID, ID: string(jobs[0].ID), Kind: durable.WaitChild, Subject: hookWaitPrefix + key, Tool: start.Request.Hook, Child: jobs[0].ID,
		Asked: place.Now,
	}
	if deadline, ok := ctx.Deadline(); ok {
		w.Deadline = place.Now.Add(time.Until(deadline))
	}
	place.Jobs = append(place.Jobs, jobs...)
	return "", place.Wait(w)
}

// checkAncestors returns an error if a run of the blueprint has led to this hook: blueprints that are stored at the same time may
// name each other.
func (o *hookedRun) checkAncestors(ctx context.Context, name string) error {
	for run := o.about; ; {
		if run.Name == name {
			return fmt.Errorf("blueprint %q is not started: the hooks of its own run %s have led to this one", name, run.ID)
		}
		if run.Parent == "" {
			return nil
		}
		var err error
		if run, err = o.c.store.Run(ctx, run.Parent); errors.Is(err, durable.ErrNotFound) {
			return nil // it was deleted
		} else if err != nil {
			return err
		}
	}
}

// resultOfHook returns the result of the run that a hook has started, or ends the firing until it has one.
func (o *hookedRun) resultOfHook(ctx context.Context, place *firing.Place, w durable.Wait, start action.AgentStart) (string, error) {
	o.events.noteRun(start.Request.Hook, w.Child)
	child, err := o.c.store.Run(ctx, w.Child)
	if err != nil {
		return "", err
	}
	if !child.Status.Ended() {
		err := place.Wait(w)
		if !errors.Is(err, runctx.ErrExpired) {
			return "", err
		}
		s := durable.Signal{Kind: durable.SignalCancel, Text: "the time limit of the hook has passed"}
		if err := o.c.store.Signal(ctx, w.Child, s); err != nil {
			return "", err
		}
		return "", &action.Error{
			Type: action.Agent{}.Type(), Fault: action.FaultTimeout,
			Err: fmt.Errorf("run %s of %q did not end in time, and was cancelled", child.ID, start.Agent),
		}
	}
	result, err := durable.ResultOf(ctx, o.c.store, child.ID)
	if err != nil {
		return "", err
	}
	if child.Status != durable.StatusCompleted {
		return "", fmt.Errorf("run %s of %q ended as %s: %s", child.ID, start.Agent, StatusOf(child), cmp.Or(result.Error, string(child.Reason)))
	}
	if len(result.Data) > 0 {
		return string(result.Data), nil
	}
	return result.Text, nil
}
