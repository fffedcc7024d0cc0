package action

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// HookAgent is an agent that hooks may start.
type HookAgent struct {
	// Agent builds the agent. Actions refer to it by its name. Required.
	Agent capability.Planner
	// Input is the agent's input schema, as JSON Schema. Empty accepts any object.
	Input string
}

// Agents starts agents in this process. It is immutable and safe for concurrent use. Make one with NewAgents.
type Agents struct {
	plans  map[string]capability.Plan
	inputs map[string]*toolexec.Schema
}

var _ AgentStarter = (*Agents)(nil)

// NewAgents returns an Agents, or an error that joins all problems of the agents.
func NewAgents(list ...HookAgent) (*Agents, error) {
	a := &Agents{map[string]capability.Plan{}, map[string]*toolexec.Schema{}}
	var wrong []error
	for i, one := range list {
		if err := a.add(one); err != nil {
			wrong = append(wrong, fmt.Errorf("agent %d for hooks: %w", i+1, err))
		}
	}
	return a, errors.Join(wrong...)
}

func (a *Agents) add(one HookAgent) error {
	if one.Agent == nil {
		return errors.New("the agent is nil")
	}
	plan, err := one.Agent.Plan().Get()
	if err != nil {
		return err
	}
	name := plan.Name()
	_, double := a.plans[name]
	switch {
	case name == "":
		return errors.New("missing name: set it with WithName")
	case double:
		return fmt.Errorf("%q: the name is used twice", name)
	}
	if err := plan.Agent().Error(); err != nil { // the plan is built for each run; this reports its errors early
		return fmt.Errorf("%q: %w", name, err)
	}
	if one.Input != "" {
		if a.inputs[name], err = toolexec.CompileSchema(one.Input); err != nil {
			return fmt.Errorf("%q: input schema: %w", name, err)
		}
	}
	a.plans[name] = plan
	return nil
}

// Later returns the agents' tools, for capability.UseLater. An agent inherits the controls of the agent whose hooks
// start it. These controls may name the agents' tools.
func (a *Agents) Later() capability.Later {
	var l capability.Later
	if a == nil {
		return l
	}
	for _, name := range slices.Sorted(maps.Keys(a.plans)) {
		l.Agents = append(l.Agents, hooks.Exact(name))
		for _, t := range a.plans[name].Tools() {
			l.Tools = append(l.Tools, hooks.Exact(t.Spec().Name))
		}
	}
	return l
}

// insideKey is the context key for the agent's name in a run that Agents has started.
type insideKey struct{}

// StartAgent runs the agent in its own session with its input as JSON. Calls that require approval are denied. In a run
// that Agents has started, StartAgent always returns an error. This applies to actions and to hooks in Go, because
// hooks could otherwise start themselves endlessly.
func (a *Agents) StartAgent(ctx context.Context, start AgentStart) (string, error) {
	if inside, ok := ctx.Value(insideKey{}).(string); ok {
		return "", fmt.Errorf("agent %q is not started: hooks cannot start agents in the run of %q, which a hook started", start.Agent, inside)
	}
	if err := a.lacks(start.Agent); err != nil {
		return "", err
	}
	plan := a.plans[start.Agent]
	if schema := a.inputs[start.Agent]; schema != nil {
		if err := schema.Validate(string(start.Input)); err != nil {
			return "", fmt.Errorf("agent %q: invalid input: %w", start.Agent, err)
		}
	}
	built, err := plan.AgentUnder(hooksFor(start.State, plan.Hooks())).Get()
	if err != nil {
		return "", fmt.Errorf("agent %q: %w", start.Agent, err)
	}
	defer built.Cancel()
	settings := agent.RunSettings{Parent: start.State.Run()}
	if start.Output != "" {
		settings.Output = &agent.Output{Name: "decision", Schema: start.Output, Check: func(answer string) error {
			d, err := ParseDecision([]byte(answer))
			if err == nil && d != nil && start.Request != nil && !slices.Contains(start.Request.Decisions, d.Decision) {
				return fmt.Errorf("decision %s is not allowed here: expected one of %v", d.Decision, start.Request.Decisions)
			}
			return err
		}}
	}
	inside := context.WithValue(WithinHookRun(ctx), insideKey{}, start.Agent)
	final, err := built.RunWith(inside, settings, agent.NewState(), agent.UserText(string(start.Input))).Get()
	if err != nil {
		return "", fmt.Errorf("agent %q: %w", start.Agent, err)
	}
	if final.Status() != agent.StatusDone {
		why := final.StopSignal().Message
		return "", fmt.Errorf("agent %q ended as %s: %s", start.Agent, final.Status(), lo.CoalesceOrEmpty(why, "no reason given"))
	}
	if err := built.Drain(ctx); err != nil {
		return "", fmt.Errorf("agent %q: %w", start.Agent, err)
	}
	return final.Answer(), nil
}

// aroundRun lists the points around a run. When a hook starts an agent, no hooks run at these points, neither the
// agent's nor the calling run's.
var aroundRun = []hooks.PointName{
	hooks.ConversationStart, hooks.InputSubmitted, hooks.ExecutionStart, hooks.Stop, hooks.AgentFailed, hooks.ExecutionEnd,
	hooks.InterventionStopped, hooks.ConversationEnd,
}

// hooksFor returns the hooks for an agent that run s starts: first the run's controls, then the agent's own hooks. It
// omits hooks around the run. If two hooks have the same name, the first one wins.
func hooksFor(s agent.State, own hooks.Set) hooks.Set {
	var out hooks.Set
	taken := map[string]bool{}
	add := func(h hooks.Hook) {
		if taken[h.Name()] {
			return
		}
		inside := lo.Without(h.Points(), aroundRun...)
		if len(inside) == 0 {
			return
		}
		if len(inside) < len(h.Points()) {
			h = h.Matching(hooks.AtPoints(inside...))
		}
		taken[h.Name()] = true
		out = out.With(h)
	}
	if above := hooks.Of(s); above != nil {
		for _, h := range above.Hooks().All() {
			if h.Control() {
				add(h)
			}
		}
	}
	for _, h := range own.All() {
		add(h)
	}
	return out
}

func (a *Agents) lacks(name string) error {
	if _, ok := a.plans[name]; ok {
		return nil
	}
	names := lo.Keys(a.plans)
	slices.Sort(names)
	return fmt.Errorf("unknown agent %q: %s", name, oneOf("agent", names))
}

// Tools calls tools of this process for mcp_tool actions, for example tools connected by toolexec/mcp. It is safe for
// concurrent use. Make one with NewTools.
type Tools struct {
	executor *toolexec.Executor
	names    []string
}

var _ ToolCaller = Tools{}

// NewTools returns a Tools, or an error that joins all problems of the tools.
func NewTools(tools ...toolexec.Tool) (Tools, error) {
	box, err := toolexec.NewToolbox(tools...)
	if err != nil {
		return Tools{}, err
	}
	executor := toolexec.NewExecutor(box, toolexec.Options{Policy: toolexec.Policy{MaxResultBytes: -1}}) // the action limits the answer
	return Tools{executor, lo.Map(tools, func(t toolexec.Tool, _ int) string { return t.Spec().Name })}, nil
}

// toolName returns the full name of a tool: mcp__server__tool, or the name alone if server is empty.
func toolName(server, tool string) string {
	if server == "" {
		return tool
	}
	return strings.Join([]string{"mcp", server, tool}, "__")
}

func (t Tools) lacks(name string) error {
	if slices.Contains(t.names, name) {
		return nil
	}
	names := slices.Sorted(slices.Values(t.names))
	return fmt.Errorf("unknown tool %q: %s", name, oneOf("tool", names))
}

// CallTool calls the tool mcp__server__tool, or the tool of that name if server is empty. It calls no hooks.
func (t Tools) CallTool(ctx context.Context, server, tool string, arguments json.RawMessage) (string, error) {
	tool = toolName(server, tool)
	if err := t.lacks(tool); err != nil {
		return "", err
	}
	state, id := agent.NewState(), cmp.Or(IdempotencyKey(ctx), string(agent.NewRunID()))
	prepared, err := t.executor.Prepare(ctx, state, &agent.ToolCall{ID: id, Name: tool, Arguments: string(arguments)}).Get()
	if err != nil {
		return "", fmt.Errorf("tool %q: %w", tool, err)
	}
	result, err := t.executor.Execute(ctx, state, prepared).Get()
	switch {
	case err != nil:
		return "", fmt.Errorf("tool %q: %w", tool, err)
	case result.IsError():
		return "", fmt.Errorf("tool %q: %s", tool, result.Text())
	}
	return result.Text(), nil
}
