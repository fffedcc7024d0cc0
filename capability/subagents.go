package capability

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
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
// names. Where it has nobody to ask for a person's yes, the same people are asked; one
// that would have to wait for an answer fails. It is cancelled with the call that started
// it, and what it fails with fails the call. What it consumed is its own run's, and not
// counted for the one that started it.
//
// The hooks at PreSubagent, PostSubagent and SubagentFailed are those of the agent that
// starts it. A call that is made again after a restart starts the sub-agent anew, under
// the same run id, so that its tools get the same idempotency keys.
type UseSubagents struct {
	Agents []Subagent
	// MaxDepth is how many runs may stand above one another below the first; zero means
	// DefaultSubagentDepth.
	MaxDepth int
	// Tool is the name of the tool; empty means "task".
	Tool string
}

// DefaultSubagentDepth is the depth of sub-agents where nothing is said.
const DefaultSubagentDepth = 2

// Name is "subagents": an agent has one.
func (UseSubagents) Name() string { return "subagents" }

// Install adds the tool.
func (u UseSubagents) Install(p Plan) mo.Result[Plan] {
	if len(u.Agents) == 0 {
		return mo.Err[Plan](errors.New("there are no agents"))
	}
	if u.MaxDepth < 0 {
		return mo.Err[Plan](fmt.Errorf("the depth is %d: it must not be negative", u.MaxDepth))
	}
	return mo.Ok(p.withToolsFor(u.tools))
}

// tools is the tool for the agent that p is the whole plan of.
func (u UseSubagents) tools(p Plan) ([]toolexec.Tool, error) {
	t := &taskTool{agents: map[string]*agent.Agent{}, depth: cmp.Or(u.MaxDepth, DefaultSubagentDepth)}
	var wrong []error
	var told []string
	for i, sub := range u.Agents {
		built, err := sub.build(p)
		if err == nil && t.agents[built.Name()] != nil {
			err = errors.New("there are two of this name")
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("sub-agent %d: %w", i+1, err))
			continue
		}
		t.names = append(t.names, built.Name())
		t.agents[built.Name()] = built
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
	return []toolexec.Tool{toolexec.WithPolicy(toolexec.CallFunc(spec, t.run), toolexec.Policy{Doubt: toolexec.DoubtRepeat})}, nil
}

// build is the sub-agent for the agent that p is the plan of.
func (s Subagent) build(p Plan) (*agent.Agent, error) {
	if s.Agent == nil {
		return nil, errors.New("there is no agent")
	}
	plan, err := s.Agent.Plan().Get()
	if err != nil {
		return nil, err
	}
	name := plan.Name()
	if name == "" {
		return nil, errors.New("it has no name: give it one with WithName")
	}
	own := lo.Map(plan.tools, func(t toolexec.Tool, _ int) string { return t.Spec().Name })
	if unknown := lo.Without(append(slices.Clone(s.Allow), s.Deny...), own...); len(unknown) > 0 {
		return nil, fmt.Errorf("agent %q: it has no tool %s to allow or deny", name, strings.Join(unknown, ", "))
	}
	plan.tools = lo.Filter(plan.tools, func(_ toolexec.Tool, i int) bool {
		return (len(s.Allow) == 0 || slices.Contains(s.Allow, own[i])) && !slices.Contains(s.Deny, own[i])
	})
	plan.hooks = inherited(p.hooks).With(slices.Collect(values(plan.hooks.All()))...)
	if plan.approver == nil {
		plan.approver = p.approver
	}
	a, err := plan.Agent().Get()
	if err != nil {
		return nil, fmt.Errorf("agent %q: %w", name, err)
	}
	return a, nil
}

// inherited is the hooks that a sub-agent has of the one that starts it.
func inherited(set hooks.Set) hooks.Set {
	var out hooks.Set
	for _, h := range set.All() {
		if h.Control() && !slices.Contains(h.Points(), hooks.Stop) {
			out = out.With(h)
		}
	}
	return out
}

// taskTool is the sub-agents of one agent.
type taskTool struct {
	agents map[string]*agent.Agent
	names  []string
	depth  int
}

type taskArguments struct {
	Agent       string `json:"agent" jsonschema:"the name of the agent"`
	Instruction string `json:"instruction" jsonschema:"what it is to do, and all that it has to know"`
}

// SubagentStarted and SubagentCompleted are told to the observer of the agent that starts
// a sub-agent.
type (
	SubagentStarted struct {
		Run      agent.Run // that starts it
		CallID   string
		Subagent agent.Run
		MaxDepth int
	}
	SubagentCompleted struct {
		Run      agent.Run
		CallID   string
		Subagent agent.Run
		Status   agent.Status
		Usage    agent.Usage
		Err      error
	}
)

// EventName is "subagent.started".
func (SubagentStarted) EventName() string { return "subagent.started" }

// EventName is "subagent.completed".
func (SubagentCompleted) EventName() string { return "subagent.completed" }

func (t *taskTool) run(ctx context.Context, c toolexec.Call, in taskArguments) (toolexec.Output, error) {
	parent := c.State.Run()
	child := t.agents[in.Agent]
	switch {
	case child == nil:
		return toolexec.Output{}, fmt.Errorf("there is no agent %q: there are %s", in.Agent, strings.Join(t.names, ", "))
	case parent.Depth >= t.depth:
		return toolexec.Output{}, fmt.Errorf("agent %q is not started: this is run %d below the first, and %d is the limit", in.Agent, parent.Depth, t.depth)
	}
	about := hooks.Subagent{Agent: in.Agent, Instruction: in.Instruction, CallID: c.ID, Run: agent.Run{
		ID: childID(c), Agent: in.Agent, Parent: parent.ID, Root: lo.CoalesceOrEmpty(parent.Root, parent.ID), Depth: parent.Depth + 1,
		Stage: parent.Stage, Iteration: parent.Iteration,
	}}
	told := hooks.Of(c.State)
	instruction, denied, err := told.PreSubagent(ctx, c.State, about)
	if err = errors.Join(denied, err); err != nil {
		return toolexec.Output{}, err
	}
	about.Instruction = instruction
	c.State.Emit(ctx, SubagentStarted{parent, c.ID, about.Run, t.depth})
	started := time.Now()
	final, err := child.RunWith(ctx, agent.RunSettings{
		ID: about.Run.ID, Parent: parent, Stage: parent.Stage, Iteration: parent.Iteration,
	}, agent.NewState(), agent.UserText(instruction)).Get()
	if broken, ok := errors.AsType[*agent.RunError](err); ok {
		final = broken.State
	}
	about.Took, about.Status, about.Result = time.Since(started), final.Status(), final.Answer()
	if final.Status() != agent.StatusDone {
		err = unfinished(in.Agent, final, err)
	}
	c.State.Emit(ctx, SubagentCompleted{parent, c.ID, about.Run, final.Status(), final.RunUsage(), err})
	if err != nil {
		about.Err = err
		told.SubagentFailed(ctx, c.State, about)
		return toolexec.Output{}, err
	}
	result, withheld, err := told.PostSubagent(ctx, c.State, about)
	if err != nil {
		return toolexec.Output{}, err
	}
	if result == "" {
		result = "(the agent answered with nothing)"
	}
	return toolexec.Output{Content: agent.TextContent(result), Failed: withheld != nil}, nil
}

// unfinished is why a sub-agent has no answer, with what it said last.
func unfinished(name string, final agent.State, err error) error {
	why := final.StopSignal().OrEmpty().Message
	if final.Parked() {
		why = "it would have to wait for a person, and a call cannot"
	}
	said := ""
	if answer := final.Answer(); answer != "" {
		said = "; it had said: " + answer
	}
	if err != nil {
		return fmt.Errorf("agent %q %s: %w%s", name, final.Status(), err, said)
	}
	return fmt.Errorf("agent %q %s: %s%s", name, final.Status(), lo.CoalesceOrEmpty(why, "no reason given"), said)
}

// childID is the id of the run that a call starts: the same when the call is made again
// after a restart, another one for each attempt.
func childID(c toolexec.Call) agent.RunID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", c.IdempotencyKey(), c.Attempt))
	return agent.RunID("run_" + base32.StdEncoding.EncodeToString(sum[:])[:26])
}
