package capability

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// taskTool is one agent's tool for its sub-agents.
type taskTool struct {
	toolexec.Tool

	agents map[string]*agent.Agent
	names  []string
	depth  int
	scope  hooks.Scope // the sub-agents' tools, points and agents
}

type taskArguments struct {
	Agent       string `json:"agent" jsonschema:"the name of the agent"`
	Instruction string `json:"instruction" jsonschema:"what it is to do, and all that it has to know"`
}

// task is one sub-agent run, as the parent run sees it.
type task struct {
	call     toolexec.Call
	agent    *agent.Agent
	hooks    *hooks.Compiled // the parent run's hooks
	about    hooks.Subagent
	maxDepth int
}

// Policy returns a policy that repeats an interrupted call, because its run continues where it was. It does not retry a
// failed call, because a new run would repeat the first run's work.
func (t *taskTool) Policy() toolexec.Policy {
	return toolexec.Policy{Doubt: toolexec.DoubtRepeat, Retry: toolexec.Retry{Attempts: 1}}
}

// Drain waits for the agents' background work.
func (t *taskTool) Drain(ctx context.Context) error {
	return errors.Join(lo.Map(t.names, func(name string, _ int) error { return t.agents[name].Drain(ctx) })...)
}

// Cancel cancels the agents' background work.
func (t *taskTool) Cancel() {
	for _, a := range t.agents {
		a.Cancel()
	}
}

func (t *taskTool) run(ctx context.Context, c toolexec.Call, in taskArguments) (toolexec.Output, error) {
	if before, _, ok := agent.Checkpoint(c.State).Child(c.ID); ok { // the run has begun, so the current arguments do not matter
		in.Agent = before.Run().Agent
		return t.of(c, in, before.Run()).resume(ctx, before)
	}
	parent := c.State.Run()
	switch {
	case t.agents[in.Agent] == nil:
		return toolexec.Output{}, fmt.Errorf("unknown agent %q: available: %s", in.Agent, strings.Join(t.names, ", "))
	case parent.Depth >= t.depth:
		return toolexec.Output{}, fmt.Errorf("agent %q is not started: its parent has depth %d and the limit is %d", in.Agent, parent.Depth, t.depth)
	}
	key := childKey(c)
	return t.of(c, in, agent.Run{
		ID: agent.RunID("run_" + key), Session: agent.SessionID("ses_" + key), Agent: in.Agent,
		Parent: parent.ID, Root: lo.CoalesceOrEmpty(parent.Root, parent.ID), Depth: parent.Depth + 1,
		Number: 1, Stage: parent.Stage, Iteration: parent.Iteration,
	}).begin(ctx)
}

// of returns the task for a call.
func (t *taskTool) of(c toolexec.Call, in taskArguments, run agent.Run) *task {
	return &task{call: c, agent: t.agents[in.Agent], hooks: hooks.Of(c.State), maxDepth: t.depth, about: hooks.Subagent{
		Agent: in.Agent, Instruction: in.Instruction, CallID: c.ID, Run: run,
	}}
}

// begin starts the sub-agent.
func (t *task) begin(ctx context.Context) (toolexec.Output, error) {
	instruction, denied, err := t.hooks.PreSubagent(ctx, t.call.State, t.about)
	if err = errors.Join(denied, err); err != nil {
		return toolexec.Output{}, err
	}
	t.about.Instruction = instruction
	parent := t.call.State.Run()
	t.call.State.Emit(ctx, SubagentStarted{parent, t.call.ID, t.about.Run, t.maxDepth})
	settings := agent.RunSettings{ID: t.about.Run.ID, Session: t.about.Run.Session, Parent: parent, Stage: parent.Stage, Iteration: parent.Iteration}
	return t.run(ctx, settings, agent.NewState(), agent.UserText(instruction))
}

// resume resumes a sub-agent that was parked or cut off.
func (t *task) resume(ctx context.Context, before agent.State) (toolexec.Output, error) {
	if t.agent == nil {
		return toolexec.Output{}, fmt.Errorf("run %s cannot continue: agent %q no longer exists", t.about.Run.ID, t.about.Agent)
	}
	if before.Waiting() && ctx.Err() == nil {
		return toolexec.Output{}, &agent.ParkedError{State: before}
	}
	t.call.State.Emit(ctx, SubagentResumed{t.call.State.Run(), t.call.ID, t.about.Run})
	return t.run(ctx, agent.RunSettings{Resume: true}, before)
}

// run runs the sub-agent to its end, or until it waits.
func (t *task) run(ctx context.Context, settings agent.RunSettings, s agent.State, input ...agent.Message) (toolexec.Output, error) {
	final, err := t.ran(ctx, settings, s, input...)
	if err == nil && final.Parked() {
		t.call.State.Emit(ctx, SubagentParked{t.call.State.Run(), t.call.ID, t.about.Run})
		return toolexec.Output{}, &agent.ParkedError{State: final}
	}
	if err = t.finish(ctx, final, err); err != nil {
		if final.Status() != agent.StatusInterrupted {
			return toolexec.Output{}, err
		}
		// A person's rejection ends both.
		return toolexec.Output{Content: agent.TextContent(err.Error()), Failed: true, Stop: new(final.StopSignal())}, nil
	}
	left, withheld, err := t.hooks.PostSubagent(ctx, t.call.State, t.about)
	if err != nil {
		return toolexec.Output{}, err
	}
	return toolexec.Output{Content: agent.TextContent(cmp.Or(left.Result, "(the agent's answer is empty)")), Failed: withheld != nil}, nil
}

func (t *task) ran(ctx context.Context, settings agent.RunSettings, s agent.State, input ...agent.Message) (agent.State, error) {
	final, err := t.agent.RunWith(durable.Within(ctx, t.call.State, t.call.ID), settings, s, input...).Get()
	if broken, ok := errors.AsType[*agent.RunError](err); ok {
		final = broken.State
	}
	if final.Run().ID != "" { // otherwise the run did not begin
		t.about.Run = final.Run()
	}
	return final, err
}

// finish reports the sub-agent's end. Err is the reason why it has no answer, or nil.
func (t *task) finish(ctx context.Context, final agent.State, err error) error {
	t.about.Status, t.about.Result = final.Status(), final.Answer()
	if began := final.Run().Started; !began.IsZero() {
		t.about.Took = time.Since(began)
	}
	if final.Status() != agent.StatusDone {
		err = t.judgedError(ctx, t.explainUnfinished(final, err))
	}
	t.call.State.Emit(ctx, SubagentCompleted{t.call.State.Run(), t.call.ID, t.about.Run, final.Status(), final.RunUsage(), err})
	if err != nil {
		t.about.Err = err
		t.hooks.SubagentFailed(context.WithoutCancel(ctx), t.call.State, t.about)
	}
	return err
}

// judgedError returns a sub-agent's error as changed by the controls at PostSubagent. It is called before anything
// reports the error.
func (t *task) judgedError(ctx context.Context, err error) error {
	about := t.about
	about.Err = err
	left, _, failed := t.hooks.PostSubagent(context.WithoutCancel(ctx), t.call.State, about)
	if failed != nil {
		return failed
	}
	t.about.Result = left.Result
	return left.Err
}

// errGivenUp cancels a sub-agent whose call was answered in another way.
var errGivenUp = errors.New("the call that started the sub-agent ended without its answer")

// GiveUp ends a call's sub-agent when the call is answered in another way.
func (t *taskTool) GiveUp(ctx context.Context, c toolexec.Call) {
	child, begun, ok := agent.Checkpoint(c.State).Child(c.ID)
	if !ok || child.Status().Terminal() {
		return
	}
	c.ToolCall = begun
	given := t.of(c, taskArguments{Agent: child.Run().Agent}, child.Run())
	if given.agent == nil {
		return
	}
	if ctx.Err() == nil {
		cancelled, cancel := context.WithCancelCause(ctx)
		cancel(errGivenUp)
		ctx = cancelled
	}
	final, err := given.ran(ctx, agent.RunSettings{Resume: true}, child)
	if !final.Parked() { // otherwise the process is shutting down
		_ = given.finish(ctx, final, err)
	}
}

// explainUnfinished returns an error that says why a sub-agent has no answer. It includes the sub-agent's last message,
// unless a control must judge that message first.
func (t *task) explainUnfinished(final agent.State, err error) error {
	said := ""
	if answer := final.Answer(); answer != "" && !t.hooks.HasControls(hooks.PostSubagent) {
		said = "; it had said: " + answer
	}
	if err != nil {
		return fmt.Errorf("agent %q %s: %w%s", t.about.Agent, final.Status(), err, said)
	}
	why := lo.CoalesceOrEmpty(final.StopSignal().Message, "no reason given")
	return fmt.Errorf("agent %q %s: %s%s", t.about.Agent, final.Status(), why, said)
}

// childKey returns the base for the IDs of the child run and its session. It is the same when the call is repeated
// after a restart.
func childKey(c toolexec.Call) string {
	sum := sha256.Sum256([]byte(c.IdempotencyKey()))
	return base32.StdEncoding.EncodeToString(sum[:])[:26]
}
