package policies

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
)

func grapnelText() []byte {
	return write(fmt.Sprintf("policy: hundred\nvariables: {limit: %d}\nhooks:\n  PreToolUse:\n", limit), func(id, tool string, i int) string {
		return fmt.Sprintf("    - {id: %s, match: {tool: %s}, when: 'args.n == %d && args.path.startsWith(\"/etc\") || args.n > vars.limit', decision: deny}\n",
			id, tool, i)
	})
}

// grapnel decides as an agent does: with hooks around the execution of calls.
type grapnel struct {
	executor agent.Executor
	state    agent.State
	asked    atomic.Int64
}

// ids are the ids of calls. A new id for each decision makes sure that a run does not reuse what it remembers of an
// earlier call.
var ids = []string{"1", "2", "3", "4", "5"}

func loadGrapnel(_ context.Context, text []byte) (Decider, error) {
	p, err := policy.Parse("hundred.yaml", text, policy.Options{})
	if err != nil {
		return nil, err
	}
	list, err := p.Hooks()
	if err != nil {
		return nil, err
	}
	tools := []string{"other"} // the tools of the agent
	for i := range rules / perTool {
		tools = append(tools, toolName(i))
	}
	compiled, err := hooks.NewSet(list...).Compile(tools...)
	if err != nil {
		return nil, err
	}
	return &grapnel{executor: compiled.WrapExecutor(ready{}), state: underWay()}, nil
}

func (g *grapnel) Decide(ctx context.Context, c Call) (string, error) {
	id := ids[g.asked.Add(1)%int64(len(ids))]
	p, err := g.executor.Prepare(ctx, g.state, &agent.ToolCall{ID: id, Name: c.Tool, Arguments: c.Arguments}).Get()
	if err != nil || p.Disposition == agent.DisposeRun {
		return "", err
	}
	denied, ok := errors.AsType[*hooks.DeniedError](p.Answer.Err)
	if !ok {
		return "", fmt.Errorf("deciding on tool %q: not run and not denied: %w", c.Tool, p.Answer.Err)
	}
	return denied.Hook[strings.LastIndexByte(denied.Hook, '/')+1:], nil
}

// ready is an executor that only reports that the arguments of a call have been read, so that the benchmark measures
// the cost of the policy alone.
type ready struct{}

func (ready) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: c, Call: c, Strict: true})
}

func (ready) Execute(_ context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	return mo.Ok(agent.NewResult(p))
}
