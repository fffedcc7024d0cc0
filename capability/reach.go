package capability

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Later declares tools, agents, stages and points that hooks can name although the agent does not have them when it is built.
type Later struct {
	// Tools and Agents are names of tools and agents, or patterns as in hooks.ToolMatching. Examples are an MCP
	// server's tools when it is connected later, and an agent that a rule starts.
	Tools, Agents []string
	// Stages are names of the pipeline stages in which the agent runs, or patterns.
	Stages []string
	// Points are points that the program fires itself, with hooks.Of or a hooks.Compiled.
	Points []hooks.PointName
}

// UseLater declares tools, agents, stages and points that are added later. Without it, building the agent fails if a hook
// names a tool, an argument, an agent, a stage or a point that neither the agent nor its sub-agents have, because such a hook
// would guard nothing.
//
//	capability.UseLater(capability.Later{Tools: []string{"mcp__files__*"}})
func UseLater(l Later) Capability {
	return Func(func(p Plan) (Plan, error) {
		var wrong []error
		for _, text := range l.Tools {
			wrong = append(wrong, hooks.ToolMatching(text).Err())
		}
		for _, text := range l.Agents {
			wrong = append(wrong, hooks.AgentNamed(text).Err())
		}
		for _, text := range l.Stages {
			wrong = append(wrong, hooks.StageNamed(text).Err())
		}
		for _, at := range l.Points {
			if !slices.Contains(hooks.PointNames(), at) {
				wrong = append(wrong, fmt.Errorf("unknown point %q", at))
			}
		}
		p.later.LaterTools = slices.Concat(p.later.LaterTools, l.Tools)
		p.later.LaterAgents = slices.Concat(p.later.LaterAgents, l.Agents)
		p.later.Stages = slices.Concat(p.later.Stages, l.Stages)
		return p.withPoints(l.Points...), errors.Join(wrong...)
	})
}

// withPoints adds points that the agent can reach, in addition to the points that every agent reaches.
func (p Plan) withPoints(points ...hooks.PointName) Plan {
	p.later.Points = slices.Concat(p.later.Points, points)
	return p
}

// The points that only some agents reach.
var (
	compactionPoints = []hooks.PointName{hooks.PreCompact, hooks.PostCompact, hooks.CompactFailed}
	subagentPoints   = []hooks.PointName{hooks.PreSubagent, hooks.PostSubagent, hooks.SubagentFailed}
	outerPoints      = []hooks.PointName{
		hooks.SessionStart, hooks.SessionComplete, hooks.IterationStart, hooks.IterationComplete, hooks.IterationFailed, hooks.StageComplete,
		hooks.RunStart, hooks.RunResult, hooks.RunFailed, hooks.RunTimeout, hooks.RunFinish,
	}
)

// reach returns the tools, agents and points that the agent's hooks can match. The plan is complete, and box has its
// tools.
func (p Plan) reach(box toolexec.Toolbox) hooks.Reach {
	here := p.later
	here.Agents = append(slices.Clip(here.Agents), p.name)
	here.Points = slices.Concat(here.Points, lo.Without(hooks.PointNames(), slices.Concat(compactionPoints, subagentPoints, outerPoints)...))
	for _, spec := range box.Specs().All() {
		here.Tools = append(slices.Clip(here.Tools), hooks.Tool{Name: spec.Name, Arguments: argumentsOf(spec)})
	}
	if p.executor != nil && len(here.Tools) == 0 {
		here.LaterTools = append(slices.Clip(here.LaterTools), "*") // only the executor knows its tools
	}
	return hooks.Reach{Here: here, Below: p.below}
}

// argumentsOf returns a tool's arguments, or nil if it does not declare them.
func argumentsOf(spec agent.ToolSpec) hooks.Arguments {
	if spec.Parameters == "" {
		return nil
	}
	return &lateSchema{compile: sync.OnceValue(func() *toolexec.Schema {
		schema, err := toolexec.CompileSchema(spec.Parameters)
		if err != nil {
			return nil
		}
		return schema
	})}
}

// lateSchema is a schema that is compiled only when a hook matches arguments.
type lateSchema struct{ compile func() *toolexec.Schema }

func (l *lateSchema) MayHave(steps []string, wild []bool, kind string) bool {
	return l.compile().MayHave(steps, wild, kind)
}

func (l *lateSchema) Names() []string { return l.compile().Names() }

// wholeScope returns everything that an agent and its sub-agents have, for the agent that starts them.
func wholeScope(r hooks.Reach) hooks.Scope { return r.Here.Union(r.Below) }

// checkReach returns an error if the agent's own hooks include one that can never match. Policy files share hooks
// between agents, so policy.Check checks them.
func (p Plan) checkReach(compiled *hooks.Compiled) error {
	return errors.Join(lo.FilterMap(compiled.Gaps(), func(g hooks.Gap, _ int) (error, bool) {
		later := lo.Ternary(g.Tool+g.Agent+g.Stage == "", "", "; declare tools, agents and stages that are added later with UseLater")
		return fmt.Errorf("hook %q: %s%s", g.Hook, g.Text, later), g.Origin == nil && !slices.Contains(p.inherited, g.Hook)
	})...)
}

// Gaps returns the tools, arguments, agents, stages and points that hooks name but cannot match, including hooks of policy
// files. The result is empty if the agent cannot be built for another reason.
func (p Plan) Gaps() []hooks.Gap {
	compiled, err := p.compiledWhole()
	if err != nil {
		return nil
	}
	return lo.Filter(compiled.Gaps(), func(g hooks.Gap, _ int) bool { return !slices.Contains(p.inherited, g.Hook) })
}

// compiledWhole returns the hooks, compiled for the tools of the complete plan.
func (p Plan) compiledWhole() (*hooks.Compiled, error) {
	p, making := p.withMadeTools()
	box, boxing := toolexec.NewToolbox(p.tools...)
	if err := errors.Join(making, boxing); err != nil {
		return nil, err
	}
	return p.compileHooks(p.reach(box))
}
