package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/command"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/pipeline"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/registry"
)

// RunnerOptions configures the runners of a worker that executes runs of blueprints.
type RunnerOptions struct {
	// Agents builds the agent of an autonomous blueprint, which must use the keeper, for one run. Rules are the hooks of the
	// blueprint at points of the agent, which the agent must have. CloseAgent, unless nil, is called when the run has ended or
	// waits. Without Agents, the worker executes no agents.
	Agents func(ctx context.Context, d registry.Definition, rules []hooks.Hook) (a *agent.Agent, closeAgent func() error, err error)
	// Commands are the commands of this machine, for procedural blueprints of their names that have none.
	Commands map[string]command.Command
	// Pipelines, unless nil, are the options of pipelines, which need PipelineOptions.Dir. Host and the names of pipelines are
	// not used.
	Pipelines *pipeline.Options
}

// Labels returns labels with those that a worker with the runners of Runners must have to get runs of blueprints, for
// WorkerOptions.Labels.
func (c *Coordinator) Labels(o RunnerOptions, labels map[string]string) map[string]string {
	all := map[string]string{labelRunner: runnerLabel}
	if o.Pipelines != nil && c.folder != nil {
		all[labelPipelines] = c.folder.id
	}
	maps.Copy(all, labels)
	for name := range o.Commands {
		all[labelCommand+name] = "yes"
	}
	return all
}

// Runners returns the runners that a worker needs for runs of blueprints, for WorkerOptions.Runners. The keeper belongs to the
// worker, and has the store that RunnerStore returns or that of a client. HookRunners are further ones.
func (c *Coordinator) Runners(k *durable.Keeper, o RunnerOptions) map[durable.Kind]durable.Runner {
	base := runnerBase{c, k, o}
	all := map[durable.Kind]durable.Runner{durable.KindCommand: &commandRunner{base}}
	if o.Agents != nil {
		all[durable.KindAgent] = &agentRunner{base}
	}
	if o.Pipelines != nil && c.folder != nil {
		c.addPipelines(all, base)
	}
	return all
}

// runnerBase is the common part of the runners.
type runnerBase struct {
	c       *Coordinator
	keeper  *durable.Keeper
	options RunnerOptions
}

// Owner returns the owner of the keeper.
func (r *runnerBase) Owner() string { return r.keeper.Owner() }

// Has returns true: every blueprint is in the store, and the demands select the runners.
func (*runnerBase) Has(string) bool { return true }

// blueprintOf returns the blueprint of a run.
func (r *runnerBase) blueprintOf(ctx context.Context, about durable.Run) (*wire.Stored, error) {
	b, err := r.c.blueprintOf(ctx, about)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", about.ID, err)
	}
	if about.Attempts > 1 {
		entries, err := r.keeper.Store().Entries(ctx, about.ID, 0)
		if err != nil {
			return nil, err
		}
		if isParked(entries) { // this runner cannot tell its program what people have decided
			return nil, fmt.Errorf("run %s was parked by a runner that asks people, and is for such a runner", about.ID)
		}
	}
	if _, ok := r.keeper.Store().(resultHolder); !ok && about.Traits.HoldsResult { // its hooks would not be called
		return nil, fmt.Errorf("run %s has on_result hooks: make the keeper with Coordinator.RunnerStore", about.ID)
	}
	return &b, nil
}

// endCancelled ends a run that cannot be executed, if it is cancelled. Otherwise it returns the failure, with which the worker tries again or
// ends the run.
func (r *runnerBase) endCancelled(ctx context.Context, about durable.Run, failure error) error {
	ctx, x := r.keeper.Open(ctx, about)
	defer x.Close()
	if cancelled, ok := errors.AsType[*durable.CancelledError](context.Cause(ctx)); ok {
		return x.End(context.WithoutCancel(ctx), durable.StatusCancelled, agent.StopUser, durable.Result{Error: cancelled.Error()})
	}
	return failure
}

// EndFailed ends a run that no further attempt could execute, so that its on_result hooks see why: see durable.Runner.
func (r *runnerBase) EndFailed(ctx context.Context, about durable.Run, failed error) error {
	ctx, x := r.keeper.Open(ctx, about)
	defer x.Close()
	return x.End(context.WithoutCancel(ctx), durable.StatusFailed, agent.StopError, durable.Result{Error: failed.Error()})
}

// agentRunner executes runs of autonomous blueprints.
type agentRunner struct{ runnerBase }

// Suspend suspends the keeper.
func (r *agentRunner) Suspend() { r.keeper.Suspend() }

// Execute runs the agent of a blueprint. Its spans are in the trace of the request for the run.
func (r *agentRunner) Execute(ctx context.Context, about durable.Run) error {
	ctx = withTrace(ctx, about)
	a, closeAgent, err := r.build(ctx, about)
	if err != nil {
		return r.endCancelled(ctx, about, err)
	}
	one := durable.AgentRunner(r.keeper, durable.AgentMap{about.Name: a})
	err = one.Execute(ctx, about)
	if closeAgent != nil {
		err = errors.Join(err, closeAgent())
	}
	return err
}

// build builds the agent of a run.
func (r *agentRunner) build(ctx context.Context, about durable.Run) (*agent.Agent, func() error, error) {
	b, err := r.blueprintOf(ctx, about)
	if err != nil {
		return nil, nil, err
	}
	d, wrong := definitionOf(&b.Blueprint)
	if len(wrong) > 0 {
		return nil, nil, &InvalidError{wrong}
	}
	rules, err := r.c.agentRules(&b.Blueprint)
	if err != nil {
		return nil, nil, err
	}
	a, closeAgent, err := r.options.Agents(ctx, d, rules)
	if err != nil {
		err = fmt.Errorf("run %s: agent of blueprint %q: %w", about.ID, b.Name, err)
	}
	return a, closeAgent, err
}

// agentRules returns the hooks of a blueprint at points of its agent.
func (c *Coordinator) agentRules(b *wire.Blueprint) (list []hooks.Hook, err error) {
	if empty(b.Hooks) {
		return nil, nil
	}
	rules, err := c.loadRules(b, policy.Options{Host: c.checkingHost()})
	if err != nil {
		return nil, err
	}
	all, err := rules.Hooks()
	for _, h := range all {
		if h.Points()[0] == hooks.PreToolUse {
			list = append(list, h)
		}
	}
	return list, err
}

// commandRunner executes runs of procedural blueprints.
type commandRunner struct{ runnerBase }

// Suspend lets programs run to their ends: the worker cuts off those that take too long.
func (*commandRunner) Suspend() {}

// Execute runs the command of a blueprint.
func (r *commandRunner) Execute(ctx context.Context, about durable.Run) error {
	ctx, span := startSpan(ctx, about)
	defer endSpan(ctx, span, r.keeper.Store(), about.ID)
	one, err := r.build(ctx, about)
	if err != nil {
		return r.endCancelled(ctx, about, err)
	}
	return one.Execute(ctx, about)
}

// build returns the runner of the command of a run.
func (r *commandRunner) build(ctx context.Context, about durable.Run) (durable.Runner, error) {
	b, err := r.blueprintOf(ctx, about)
	if err != nil {
		return nil, err
	}
	cmd, known := r.options.Commands[b.Name]
	switch {
	case b.Command != nil:
		cmd = command.Command{
			Argv: b.Command.Argv, Dir: b.Command.Dir, Env: b.Command.Env,
			Timeout: time.Duration(b.Command.TimeoutSeconds) * time.Second, Repeat: b.Command.Repeat,
		}
	case !known:
		return nil, fmt.Errorf("run %s: this runner has no command %q", about.ID, b.Name)
	}
	cmd.Check = func(params json.RawMessage) error { return checkParameters(&b.Blueprint, params) }
	cmd.CheckOutput = func(result json.RawMessage) error { return checkOutput(&b.Blueprint, result) }
	one, err := command.Runner(r.keeper, map[string]command.Command{about.Name: cmd})
	if err != nil {
		err = fmt.Errorf("run %s: %w", about.ID, err)
	}
	return one, err
}
