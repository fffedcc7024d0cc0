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

// Planner is what an agent is planned with: a builder.AgentBuilder is one.
type Planner interface{ Plan() mo.Result[Plan] }

// Subagent is an agent that another one may give work to.
type Subagent struct {
	// Agent is how it is built, with its own driver, tools, hooks and limits. Its name
	// is what the model calls it by. Required.
	Agent Planner
	// Description tells the model what it is good for.
	Description string
	// Allow, when not empty, names the only tools that it gets of its own; Deny names
	// tools that it does not get. A name that it has no tool of is an error.
	Allow, Deny []string
}

// UseSubagents gives the model a tool to have other agents do something: each in a run
// of its own, with its own transcript and limits, of which the model is told the answer.
// Its name is "subagents".
//
// A sub-agent has the control hooks of the agent that starts it, before its own, at all
// points but Stop: giving work away is no way around them. It may have more, under other
// names. Where it has no approver, that of its parent is asked. It is
// cancelled with the call that started it, and what it fails with fails the call. The steps,
// tokens, cost and time that it takes count for the run that started it as well, whose limits
// stop it: see UseGuards. State.RunUsage is what each used itself, State.Spending what it used
// with those below it.
//
// When it has to wait for an answer that comes later, the run that started it parks, too:
// the question is among the Interventions of that one. Calls of the step that were
// answered keep their answers; where calls run one after the other, those behind it come
// when it has answered. Resuming the one run resumes the other in the middle of its step.
// A no that ends the sub-agent ends the run that started it as well, as interrupted; with
// a no that goes on, the sub-agent goes on. When the run ends while it waits, or a control
// has changed its mind about the call, the sub-agent ends as cancelled.
//
// A failed call tells what the sub-agent said last, unless a control at PostSubagent, which
// is asked about answers, has to judge what is told.
//
// The hooks at PreSubagent, PostSubagent and SubagentFailed are those of the agent that
// starts it; of one run of a sub-agent they are told once, however often it is resumed.
// What a sub-agent leaves in the background, Drain and Cancel of that one are for.
//
// With UseDurability its run is kept in the journal of the run that starts it: after a
// crash it goes on where it was. An agent that keeps its runs can be a sub-agent only of
// one that does.
type UseSubagents struct {
	Agents []Subagent
	// MaxDepth is how many runs may stand above one another below the first; zero means two.
	MaxDepth int
	// Tool is the name of the tool; empty means "task".
	Tool string
}

// defaultSubagentDepth is the depth of sub-agents where nothing is said.
const defaultSubagentDepth = 2

// Name returns "subagents": an agent has one.
func (UseSubagents) Name() string { return "subagents" }

// Install adds the tool.
func (u UseSubagents) Install(p Plan) mo.Result[Plan] {
	if len(u.Agents) == 0 {
		return mo.Err[Plan](errors.New("there are no agents"))
	}
	if u.MaxDepth < 0 {
		return mo.Err[Plan](fmt.Errorf("the depth is %d: it must not be negative", u.MaxDepth))
	}
	return mo.Ok(p.withPoints(subagentPoints...).withToolsFor(u.toolsFor))
}

// toolsFor returns the tool for the agent that p is the whole plan of.
func (u UseSubagents) toolsFor(p Plan) ([]toolexec.Tool, error) {
	t := &taskTool{agents: map[string]*agent.Agent{}, depth: cmp.Or(u.MaxDepth, defaultSubagentDepth)}
	var wrong []error
	var told []string
	for i, sub := range u.Agents {
		built, reach, err := sub.build(p)
		if err == nil && t.agents[built.Name()] != nil {
			err = errors.New("there are two of this name")
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
		Name: cmp.Or(u.Tool, "task"),
		Description: "Has another agent do something and tells what it answered. It knows nothing of this conversation: " +
			"the instruction has to say everything. The agents:\n" + strings.Join(told, "\n"),
	}
	t.Tool = toolexec.CallFunc(spec, t.run)
	return []toolexec.Tool{t}, nil
}

// build returns the sub-agent for the agent that p is the plan of, and what its hooks can meet.
func (s Subagent) build(p Plan) (*agent.Agent, hooks.Reach, error) {
	fail := func(err error) (*agent.Agent, hooks.Reach, error) { return nil, hooks.Reach{}, err }
	if nils.Is(s.Agent) {
		return fail(errors.New("there is no agent"))
	}
	plan, err := s.Agent.Plan().Get()
	if err != nil {
		return fail(err)
	}
	name := plan.Name()
	if name == "" {
		return fail(errors.New("it has no name: give it one with WithName"))
	}
	names := lo.Map(plan.tools, func(t toolexec.Tool, _ int) string { return t.Spec().Name })
	if unknown := lo.Without(append(slices.Clone(s.Allow), s.Deny...), names...); len(unknown) > 0 {
		return fail(fmt.Errorf("agent %q: it has no tool %s to allow or deny", name, strings.Join(unknown, ", ")))
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
	if plan, err = plan.keptWith(p.keeper); err != nil {
		return fail(fmt.Errorf("agent %q: %w", name, err))
	}
	a, reach, err := plan.build()
	if err != nil {
		return fail(fmt.Errorf("agent %q: %w", name, err))
	}
	return a, reach, nil
}

// inheritedHooks returns the hooks that a sub-agent has of the one that starts it.
func inheritedHooks(set hooks.Set) hooks.Set {
	var out hooks.Set
	for _, h := range set.All() {
		if h.Control() && !slices.Contains(h.Points(), hooks.Stop) {
			out = out.With(h)
		}
	}
	return out
}
