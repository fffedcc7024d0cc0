package capability

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/nils"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Planner plans an agent: a builder.AgentBuilder is one.
type Planner interface{ Plan() mo.Result[Plan] }

// A Subagent is an agent to which another agent can delegate work.
type Subagent struct {
	// Agent is its builder, with its own driver, tools, hooks and limits. The model uses its name. Required.
	Agent Planner
	// Description tells the model what the agent is for.
	Description string
	// Allow, when not empty, restricts the sub-agent to these of its tools. Deny removes tools from it. An unknown tool
	// name is an error.
	Allow, Deny []string
}

// UseSubagents gives the model a tool that delegates work to other agents. Each of them has its own run, with its own
// transcript and limits, and the model receives its answer. The capability's name is "subagents".
//
// A sub-agent has its parent's control hooks, before its own, at all points except Stop, so delegation does not bypass
// them. It can have more control hooks, under other names. If it has no approver, it uses its parent's. It is cancelled
// with the call that started it, and its failure fails the call. Its steps, tokens, cost and time also count for the
// parent run, whose limits stop it: see UseGuards. State.RunUsage is a run's own usage, and State.Spending includes the
// runs below it.
//
// When a sub-agent waits for an answer that comes later, the parent run parks, too, and the question is among its
// Interventions. Answered calls of the step keep their answers. If calls run one after the other, the remaining calls
// run when the sub-agent has answered. Resuming the parent run resumes the sub-agent in the middle of its step.
//
// A rejection that ends the sub-agent also ends the parent run, as interrupted. After RejectAndContinue the sub-agent
// continues. If the run ends while the sub-agent waits, or a control now denies the call, the sub-agent ends as
// cancelled.
//
// The answer to a failed call includes the sub-agent's last message, unless a control at PostSubagent would have to
// judge it first.
//
// The hooks at PreSubagent, PostSubagent and SubagentFailed belong to the parent agent. They are called once for each
// sub-agent run, even if the run is resumed several times. Drain and Cancel of the parent agent include its sub-agents'
// background work.
//
// With UseDurability, a sub-agent's run is recorded in the parent run's journal. After a crash it continues where it
// was. An agent with UseDurability can only be a sub-agent of an agent with UseDurability.
type UseSubagents struct {
	Agents []Subagent
	// MaxDepth is the maximum depth of sub-agents below the first run. Zero means two.
	MaxDepth int
	// Tool is the tool's name. Empty means "task".
	Tool string
}

// defaultSubagentDepth is the default of UseSubagents.MaxDepth.
const defaultSubagentDepth = 2

// Name returns "subagents": an agent can have only one.
func (UseSubagents) Name() string { return "subagents" }

// Install adds the tool.
func (u UseSubagents) Install(p Plan) mo.Result[Plan] {
	if len(u.Agents) == 0 {
		return mo.Err[Plan](errors.New("no agents: set Agents"))
	}
	if u.MaxDepth < 0 {
		return mo.Err[Plan](fmt.Errorf("MaxDepth is %d: it must not be negative", u.MaxDepth))
	}
	return mo.Ok(p.withPoints(subagentPoints...).withToolsFor(u.toolsFor))
}

// toolsFor returns the tool for the agent whose complete plan is p.
func (u UseSubagents) toolsFor(p Plan) ([]toolexec.Tool, error) {
	t := &taskTool{agents: map[string]*agent.Agent{}, depth: cmp.Or(u.MaxDepth, defaultSubagentDepth)}
	var wrong []error
	var told []string
	for i, sub := range u.Agents {
		built, reach, err := sub.build(p)
		if err == nil && t.agents[built.Name()] != nil {
			err = errors.New("the name is used twice")
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("sub-agent %d: %w", i+1, err))
			continue
		}
		t.names = append(t.names, built.Name())
		t.agents[built.Name()] = built
		t.scope = t.scope.Union(wholeScope(reach))
		told = append(told, strings.TrimSuffix(fmt.Sprintf("%s: %s", built.Name(), sub.Description), ": "))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	spec := agent.ToolSpec{
		Name:    cmp.Or(u.Tool, "task"),
		Purpose: &agent.Purpose{Effects: []string{"executes"}, Roles: map[string]string{"agent": "option", "instruction": "content"}},
		Description: "Asks another agent to do something, and returns its answer. It does not see this conversation: " +
			"the instruction has to say everything. The agents:\n" + strings.Join(told, "\n"),
	}
	t.Tool = toolexec.CallFunc(spec, t.run)
	return []toolexec.Tool{t}, nil
}

// build returns the sub-agent for the agent whose plan is p, and everything that the sub-agent's hooks can match.
func (s Subagent) build(p Plan) (*agent.Agent, hooks.Reach, error) {
	fail := func(err error) (*agent.Agent, hooks.Reach, error) { return nil, hooks.Reach{}, err }
	if nils.Is(s.Agent) {
		return fail(errors.New("the agent is nil"))
	}
	plan, err := s.Agent.Plan().Get()
	if err != nil {
		return fail(err)
	}
	name := plan.Name()
	if name == "" {
		return fail(errors.New("missing name: set it with WithName"))
	}
	names := lo.Map(plan.tools, func(t toolexec.Tool, _ int) string { return t.Spec().Name })
	if unknown := lo.Without(append(slices.Clone(s.Allow), s.Deny...), names...); len(unknown) > 0 {
		return fail(fmt.Errorf("agent %q: unknown tool %s in Allow or Deny", name, strings.Join(unknown, ", ")))
	}
	plan.tools = lo.Filter(plan.tools, func(_ toolexec.Tool, i int) bool {
		return (len(s.Allow) == 0 || slices.Contains(s.Allow, names[i])) && !slices.Contains(s.Deny, names[i])
	})
	own := plan.hooks
	plan = plan.under(inheritedHooks(p.hooks))
	plan.hooks = plan.hooks.With(slices.Collect(values(own.All()))...)
	if plan.approver == nil {
		plan.approver = p.approver
	}
	plan.detached, plan.started = p.detached, true
	plan = plan.instrumentedLike(p.telemetry)
	if plan, err = plan.keptWith(p.keeper); err != nil {
		return fail(fmt.Errorf("agent %q: %w", name, err))
	}
	a, reach, err := plan.build()
	if err != nil {
		return fail(fmt.Errorf("agent %q: %w", name, err))
	}
	return a, reach, nil
}

// inheritedHooks returns the hooks that a sub-agent inherits.
func inheritedHooks(set hooks.Set) hooks.Set {
	var out hooks.Set
	for _, h := range set.All() {
		if h.Control() && !slices.Contains(h.Points(), hooks.Stop) {
			out = out.With(h)
		}
	}
	return out
}
