package backtest

import (
	"context"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
)

// Policy is a named set of hooks.
type Policy struct {
	Name string
	// Hooks returns the hooks for the runs of a suite; suite is empty for recordings without one. It is called once
	// for each suite and set of tools, and all their runs share the result concurrently. If it returns an error, this
	// policy skips those runs, and the report says why.
	Hooks func(suite string) ([]hooks.Hook, error)
	// Undone lists the hooks whose actions a backtest does not perform. These hooks always pass, and the report marks
	// them as not judged.
	Undone []string
}

// Always returns a policy that has the same hooks for every suite.
func Always(name string, list ...hooks.Hook) Policy {
	return Policy{Name: name, Hooks: func(string) ([]hooks.Hook, error) { return list, nil }}
}

// agentWith builds an agent that replays recordings with these tools under these hooks.
func agentWith(name string, tools []replay.ToolSchema, list []hooks.Hook) (*agent.Agent, error) {
	return builder.New().
		WithName(name).
		WithDriver(replay.Driver{}).
		With(
			capability.UseTelemetry{Off: true},
			listening{},
			capability.UseTools(replay.Tools(tools...)...),
			capability.UseHooks(list...),
			// Hooks may name tools, agents and points that this recording lacks.
			capability.UseLater(capability.Later{
				Tools: []string{"*"}, Agents: []string{"*"}, Stages: []string{"*"}, Points: hooks.PointNames(),
			}),
			capability.UseCriteria(replay.GoOn),
		).
		Build().Get()
}

// listening passes hook events to the *heard in the run's context.
type listening struct{}

func (listening) Name() string { return "backtest" }

// Install installs the processor outside all others, so that it receives every hook's events.
func (l listening) Install(p capability.Plan) mo.Result[capability.Plan] {
	return mo.Ok(p.AroundRun(capability.Outside, l.Name(), agent.ProcessorFunc(
		func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
			if heard, ok := ctx.Value(heardKey{}).(*heard); ok {
				agent.Checkpoint(s).Listen(heard)
			}
			return next(ctx, s)
		})))
}

type heardKey struct{}
