package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/pipeline"
	"github.com/grapnel-go/grapnel/policy"
)

// viewOf returns a run as the API has it.
func viewOf(r durable.Run) wire.Run {
	labels := map[string]string{}
	isPart := r.Kind == durable.KindPipeline || isIteration(r)
	for name, value := range r.Labels {
		if own := isPart && (name == pipeline.LabelPipeline || strings.HasPrefix(name, pipeline.LabelPipeline+".")); !own {
			labels[name] = value
		}
	}
	demands := map[string]string{}
	for name, value := range r.Demands {
		if !strings.HasPrefix(name, reservedPrefix) {
			demands[name] = value
		}
	}
	mode := wire.AsyncPoll
	if r.Traits.CallsBack {
		mode = wire.AsyncCallback
	}
	v := wire.Run{
		RunID: r.ID, SessionID: r.Session, AgentName: r.Name, Version: r.Version, Type: wire.Autonomous,
		Status: StatusOf(r), Blocked: r.Blocked, Paused: r.Paused, CancelCause: r.CancelCause,
		HasHooks: r.Traits.HasHooks, Hook: r.Traits.Hook, ParentRunID: r.Parent, Demands: demands, Labels: labels,
		ParentSessionID: r.Traits.ParentSession, ExecutionMode: mode,
		SubmittedBy: r.By, Summary: r.Summary, Outcome: r.Outcome, Steps: r.Steps, Usage: r.Usage, CreatedAt: r.Created.UTC(), UpdatedAt: r.Updated.UTC(),
		Continues: r.Traits.Turn == durable.TurnLater,
		RetryOf:   r.Traits.RetryOf, PastHook: r.Traits.PastHook, Because: r.Traits.Because,
	}
	if isIteration(r) {
		v.Stage = r.Labels[durable.LabelStage]
		v.Iteration, _ = strconv.Atoi(r.Labels[durable.LabelIteration]) // zero for a part of an iteration
	}
	for _, d := range r.Decisions {
		if v.Decisions == nil {
			v.Decisions = map[durable.Decision]int64{}
		}
		v.Decisions[d.Decision] += d.Count
	}
	if r.Status.Ended() {
		v.EndedAt, v.DurationMS = &v.UpdatedAt, new(r.Updated.Sub(r.Created).Milliseconds())
	}
	switch r.Kind {
	case durable.KindCommand:
		v.Type = wire.Procedural
	case durable.KindPipeline:
		v.Type = wire.Pipeline
	}
	if r.Status == durable.StatusRunning && r.Phase == "" {
		v.Runner = r.Owner
	}
	return v
}

// view returns a run as the API has it, with why it has ended.
func (c *Coordinator) view(ctx context.Context, r durable.Run) (v wire.Run, err error) {
	v = viewOf(r)
	v.Ending, err = EndingOf(ctx, c.store, r)
	return v, err
}

// Run returns everything about a run. It returns durable.ErrNotFound for one that was not submitted through a coordinator.
func (c *Coordinator) Run(ctx context.Context, id agent.RunID) (wire.RunDetail, error) {
	r, err := c.ReadableRun(ctx, id)
	if err != nil {
		return wire.RunDetail{}, err
	}
	d := wire.RunDetail{Hooks: []wire.HookEvent{}}
	if d.Run, err = c.view(ctx, r); err != nil {
		return wire.RunDetail{}, err
	}
	if isOurs(r) { // others need not have an input
		err = c.addParameters(ctx, &d, r)
	}
	if err != nil {
		return wire.RunDetail{}, err
	}
	if r.Kind == durable.KindPipeline {
		if d.Pipeline, err = c.progressOf(ctx, r); err != nil {
			return wire.RunDetail{}, err
		}
	}
	if r.Status.Ended() {
		if err := c.addResult(ctx, &d, r); err != nil {
			return wire.RunDetail{}, err
		}
	}
	if err := c.addRetries(ctx, &d); err != nil {
		return wire.RunDetail{}, err
	}
	if d.LastError, err = c.lastError(ctx, r); err != nil {
		return wire.RunDetail{}, err
	}
	if r.Status == durable.StatusWaiting {
		waits, err := c.store.Waits(ctx, id)
		if err != nil {
			return wire.RunDetail{}, err
		}
		for _, w := range waits {
			if w.Answer == nil {
				d.WaitsFor = append(d.WaitsFor, waitView(w))
			}
		}
	}
	d.Hooks, err = c.hookEvents(ctx, r)
	return d, err
}

// addParameters adds the parameters of a run, and the submitted ones if hooks have changed them.
func (c *Coordinator) addParameters(ctx context.Context, d *wire.RunDetail, r durable.Run) error {
	first, err := c.store.SubmittedInput(ctx, r.ID)
	if err != nil {
		return err
	}
	now, err := c.store.Input(ctx, r.ID)
	if err != nil {
		return err
	}
	if d.Parameters, err = parametersOf(r.Kind, now); err != nil || bytes.Equal(first, now) {
		return err
	}
	d.OriginalParameters, err = parametersOf(r.Kind, first)
	return err
}

// waitView returns an open wait as the API has it.
func waitView(w durable.Wait) wire.WaitView {
	v := wire.WaitView{Wait: w.ID, Kind: w.Kind, Tool: w.Tool, Run: w.Child, Since: w.Asked, Deadline: w.Deadline}
	i, err := durable.InterventionOf(w)
	if err != nil { // no answer ends it
		return v
	}
	v.Arguments = i.Call.Arguments
	if i.Original.Arguments != i.Call.Arguments {
		v.Original = i.Original.Arguments
	}
	for _, q := range durable.OpenQuestions(w, i) {
		v.Questions = append(v.Questions, q.ID())
		v.Asked = append(v.Asked, wire.QuestionView{
			ID: q.ID(), By: q.By, Rule: q.Rule, Reason: q.Reason, Approvers: q.Approvers, Quorum: max(q.Quorum, 1), Approvals: q.Approvals(),
			Waivable: waiver.CanAnswer(q),
		})
	}
	return v
}

// RulesOf returns the hooks of the version of its blueprint that a run has.
func (c *Coordinator) RulesOf(ctx context.Context, id agent.RunID) ([]wire.RuleView, error) {
	r, err := c.ReadableRun(ctx, id)
	if err != nil {
		return nil, err
	}
	if !isOurs(r) {
		return nil, nil
	}
	b, err := c.blueprintOf(ctx, r)
	if err != nil {
		return nil, err
	}
	return c.rulesIn(&b)
}

// rulesIn returns the hooks of a version of a blueprint.
func (c *Coordinator) rulesIn(b *wire.Stored) ([]wire.RuleView, error) {
	if empty(b.Hooks) {
		return nil, nil
	}
	rules, err := c.loadRules(&b.Blueprint, policy.Options{Host: c.checkingHost()})
	if err != nil {
		return nil, err
	}
	text, err := textOf(&b.Blueprint)
	if err != nil {
		return nil, err
	}
	paths := pathsIn(text, "")
	return lo.Map(rules.Rules(), func(r policy.Rule, _ int) wire.RuleView {
		return wire.RuleView{Hook: r.Hook(), Point: string(r.Point), Type: r.Action, Mode: r.Mode, Path: pathAt(paths, r.Line, r.Column)}
	}), nil
}

// lastError returns why no runner could execute a run that waits to be tried again; empty for other runs.
func (c *Coordinator) lastError(ctx context.Context, r durable.Run) (string, error) {
	if r.Events == 0 || r.Status != durable.StatusPending && r.Status != durable.StatusReady {
		return "", nil
	}
	events, err := c.store.Events(ctx, r.ID, r.Events-1, 1)
	if err != nil || len(events) == 0 || events[0].Name != durable.EventRunnerError {
		return "", err
	}
	var e durable.RunnerError
	err = json.Unmarshal(events[0].Data, &e)
	return e.Error, err
}

// addResult adds the result of a run that has ended.
func (c *Coordinator) addResult(ctx context.Context, d *wire.RunDetail, r durable.Run) error {
	result, err := durable.ResultOf(ctx, c.store, r.ID)
	if err != nil {
		return err
	}
	var b wire.Stored
	if isOurs(r) {
		if b, err = c.blueprintOf(ctx, r); err != nil {
			return err
		}
	}
	if r.Status == durable.StatusCompleted {
		text, data := resultMembers(&b.Blueprint, result)
		if d.ResultData = data; data == nil {
			d.ResultText = &text
		}
		return nil
	}
	text := failureOf(r, result)
	d.Error = &text
	return nil
}

// FindRun returns a run that was submitted through a coordinator. With Options.AllRuns, it returns others, too.
func (c *Coordinator) FindRun(ctx context.Context, id agent.RunID) (durable.Run, error) {
	r, err := c.store.Run(ctx, id)
	if err == nil && !isOurs(r) && !c.allRuns {
		err = durable.ErrNotFound
	}
	return r, err
}

// ReadableRun returns a run that FindRun returns, or one of an iteration of a pipeline.
func (c *Coordinator) ReadableRun(ctx context.Context, id agent.RunID) (durable.Run, error) {
	r, err := c.store.Run(ctx, id)
	if err == nil && !c.IsReadable(r) {
		err = durable.ErrNotFound
	}
	return r, err
}

// IsReadable reports whether a run belongs to a blueprint or a pipeline iteration. With Options.AllRuns, every run is readable.
func (c *Coordinator) IsReadable(r durable.Run) bool { return c.allRuns || isOurs(r) || isIteration(r) }

// isOurs reports whether a run is one of a blueprint.
func isOurs(r durable.Run) bool {
	if r.Kind == durable.KindPipeline {
		return r.Demands[labelPipelines] != "" && r.Traits.Turn != ""
	}
	return r.Demands[labelRunner] == runnerLabel
}

// hookEvents returns the events of the hooks around a run, in order.
func (c *Coordinator) hookEvents(ctx context.Context, r durable.Run) ([]wire.HookEvent, error) {
	all := []wire.HookEvent{}
	add := func(id agent.RunID) error {
		events, err := c.store.Events(ctx, id, 0, maxHookEvents)
		all = append(all, hookEventsIn(events)...)
		return err
	}
	err := add(r.ID)
	finish, ok, failed := finishRunOf(ctx, c.store, r)
	if err = errors.Join(err, failed); err == nil && ok {
		err = add(finish.ID)
	}
	return all, err
}
