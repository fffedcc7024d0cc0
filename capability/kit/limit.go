package kit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
)

// StopToolCalls is the stop reason when a ToolCallLimit stops a run.
const StopToolCalls agent.StopReason = "tool_call_limit"

// ToolCallLimit limits how many tool calls run. A call beyond a limit is denied, and the model is told which limit it
// reached. If Stop is set, such a call stops the run instead, before any call of its step runs.
//
// Calls whose tool ran count, whether they succeeded or failed. Denied, mocked, rejected or invalid calls do not. The
// limits are exact, also with parallel calls: the first calls of a step run, in the model's order. A call waiting for
// approval counts until a person rejects it, so it can cause other calls of its step to be denied. If a run was cut off
// in the middle of a step, the step's calls that ran are counted when the step is recorded. Sub-agents' calls are not
// counted, because sub-agents have their own limits.
type ToolCallLimit struct {
	// Run limits all calls in a run. Zero sets no limit.
	Run int
	// PerTool limits a tool's calls in a run, by the tool's name.
	PerTool map[string]int
	// Session limits all calls in the session, including earlier runs. Zero sets no limit.
	Session int
	// Stop ends the run at the first call beyond a limit, with StopToolCalls.
	Stop bool
}

// Name returns "tool-call-limit".
func (ToolCallLimit) Name() string { return "tool-call-limit" }

// Install puts the limit around the executor, outside the hooks, so that calls that the hooks deny are not counted.
func (l ToolCallLimit) Install(p capability.Plan) mo.Result[capability.Plan] {
	if err := l.check(); err != nil {
		return mo.Err[capability.Plan](err)
	}
	l.PerTool = maps.Clone(l.PerTool)
	counts := agent.NewScratch[callCount](nil)
	return mo.Ok(p.WrapExecutor(capability.Outside, l.Name(), func(inner agent.Executor) agent.Executor {
		return limiting{inner, l, counts}
	}))
}

func (l ToolCallLimit) check() error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if l.Run == 0 && l.Session == 0 && len(l.PerTool) == 0 {
		say("no limit is set: set Run, PerTool or Session")
	}
	if l.Run < 0 {
		say("the limit of a run is %d: it must not be negative, and zero means none", l.Run)
	}
	if l.Session < 0 {
		say("the limit of a session is %d: it must not be negative, and zero means none", l.Session)
	}
	for _, tool := range slices.Sorted(maps.Keys(l.PerTool)) {
		if n := l.PerTool[tool]; n <= 0 {
			say("the limit of tool %q is %d: it must be positive; to disable a tool, do not give it to the agent", tool, n)
		}
	}
	return errors.Join(wrong...)
}

// callCount counts the calls that ran in recorded steps, and the current step's calls that are to run.
type callCount struct {
	mu     sync.Mutex
	known  bool
	before int // calls in the session's earlier runs
	steps  int // number of counted steps in this run
	ran    int
	ranOf  map[string]int
	booked
}

// refusal is the limit that a call reached.
type refusal struct {
	what      string
	have, may int
}

// learn counts the calls that were recorded since the previous call of learn.
func (c *callCount) learn(s agent.State) {
	if !c.known {
		c.known, c.ranOf = true, map[string]int{}
		earlier := s.StepCount() - s.RunStepCount()
		for i, step := range s.Steps() {
			if i == earlier {
				break
			}
			for _, r := range step.Results() {
				c.before += lo.Ternary(r.Executed(), 1, 0)
			}
		}
	}
	for i, step := range s.RunStepsBackward() {
		if i < c.steps {
			break
		}
		for _, r := range step.Results() {
			if r.Executed() {
				c.ran++
				c.ranOf[r.Tool()]++
			}
		}
	}
	c.steps = s.RunStepCount()
}

// book counts a call, or returns the limit that it reached.
func (c *callCount) book(l ToolCallLimit, call *agent.ToolCall) *refusal {
	run := c.ran + len(c.calls)
	of := c.ranOf[call.Name] + lo.CountBy(lo.Values(c.calls), func(o agent.ToolCall) bool { return o.Name == call.Name })
	most, limited := l.PerTool[call.Name]
	switch {
	case limited && of >= most:
		return &refusal{fmt.Sprintf("calls of %q in this run", call.Name), of, most}
	case l.Run > 0 && run >= l.Run:
		return &refusal{"tool calls in this run", run, l.Run}
	case l.Session > 0 && c.before+run >= l.Session:
		return &refusal{"tool calls in this session", c.before + run, l.Session}
	}
	c.add(call)
	return nil
}

// limiting enforces the limit around an executor.
type limiting struct {
	agent.Executor
	limit  ToolCallLimit
	counts *agent.Scratch[callCount]
}

var _ agent.Executor = limiting{}

// Prepare denies a call that would run and exceeds a limit.
func (x limiting) Prepare(ctx context.Context, s agent.State, call *agent.ToolCall) mo.Result[*agent.Prepared] {
	result := x.Executor.Prepare(ctx, s, call)
	p, err := result.Get()
	runs := err == nil && p != nil && (p.Disposition == agent.DisposeRun || p.Disposition == agent.DisposeAsk && p.Answer == nil)
	count := x.counts.Get(s)
	count.mu.Lock()
	defer count.mu.Unlock()
	count.learn(s)
	count.judge(s, call)
	if !runs {
		return result
	}
	met := count.book(x.limit, call)
	if met == nil {
		return result
	}
	said := fmt.Sprintf("%d of at most %d %s made", met.have, met.may, met.what)
	q := *p
	q.Original = call
	q.SetQuestions(nil)
	if q.Call == nil {
		q.Call = call
	}
	if x.limit.Stop {
		q.Disposition, q.Stop = agent.DisposeStop, &agent.Signal{
			Reason: StopToolCalls, Message: said, Source: x.limit.Name(), Details: map[string]any{"calls": met.have, "limit": met.may},
		}
		return mo.Ok(&q)
	}
	q.Disposition = agent.DisposeAnswer
	q.Answer = agent.NotExecuted(q.Call, agent.ReasonDenied, x.limit.Name(), fmt.Sprintf(
		"tool %q: denied by %s: %s; the limit does not change, so do not call it again, and finish with the results that you have",
		call.Name, x.limit.Name(), said))
	return mo.Ok(&q)
}
