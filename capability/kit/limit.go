package kit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
)

// StopToolCalls is the reason of a run that a ToolCallLimit stopped.
const StopToolCalls agent.StopReason = "tool_call_limit"

// ToolCallLimit limits how many tool calls run. A call beyond a limit is denied, and
// the model is told which limit it met; or it stops the run, before any call of its
// step runs.
//
// What counts is calls whose tool ran, well or badly: not those that were denied,
// mocked, rejected or invalid. The limits are kept exactly, with parallel calls, too:
// of the calls of one step the first ones run, in the order in which the model made
// them. A call that waits for a person's yes is counted until the person said no, so
// that others of its step may be denied for its sake. Calls of sub-agents are not
// counted: they have limits of their own.
type ToolCallLimit struct {
	// Run is for all calls of a run; zero sets no limit.
	Run int
	// PerTool is for the calls of a run of each of these tools, by name.
	PerTool map[string]int
	// Session is for all calls of the session, earlier runs included; zero sets no
	// limit.
	Session int
	// Stop ends the run at the first call that is too many, with StopToolCalls.
	Stop bool
}

// Name is "tool-call-limit".
func (ToolCallLimit) Name() string { return "tool-call-limit" }

// Install puts the limit around the executor, outside of the hooks: what they deny
// is not counted.
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
		say("no limit is set: give Run, PerTool or Session")
	}
	if l.Run < 0 {
		say("the limit of a run is %d: it must not be negative, and zero means none", l.Run)
	}
	if l.Session < 0 {
		say("the limit of a session is %d: it must not be negative, and zero means none", l.Session)
	}
	for _, tool := range slices.Sorted(maps.Keys(l.PerTool)) {
		if n := l.PerTool[tool]; n <= 0 {
			say("the limit of tool %q is %d: it must be positive; a tool that must never run is better left out", tool, n)
		}
	}
	return errors.Join(wrong...)
}

// callCount is the calls of a run that ran, and those of the step under way that are
// to run.
type callCount struct {
	mu     sync.Mutex
	known  bool
	before int // in earlier runs of the session
	ran    int
	ranOf  map[string]int
	step   int
	next   int // the index in the step that may come next
	booked int
	bookOf map[string]int
}

// refusal is which limit a call met.
type refusal struct {
	what      string
	have, may int
}

// learn counts what the state says, once in a run.
func (c *callCount) learn(s agent.State) {
	if c.known {
		return
	}
	c.known, c.ranOf = true, map[string]int{}
	first := s.StepCount() - s.RunStepCount()
	for i, step := range s.Steps() {
		for _, r := range step.Results() {
			switch {
			case !r.Executed():
			case i < first:
				c.before++
			default:
				c.ran++
				c.ranOf[r.Tool()]++
			}
		}
	}
}

// begin makes ready for call i of a step.
func (c *callCount) begin(s agent.State, i int) {
	c.learn(s)
	if step := s.StepCount(); c.bookOf == nil || step != c.step || i < c.next {
		c.step, c.booked, c.bookOf = step, 0, map[string]int{}
	}
	c.next = i + 1
}

// book makes room for a call, or says which limit it met.
func (c *callCount) book(l ToolCallLimit, tool string) *refusal {
	run := c.ran + c.booked
	perTool, limited := l.PerTool[tool]
	switch of := c.ranOf[tool] + c.bookOf[tool]; {
	case limited && of >= perTool:
		return &refusal{fmt.Sprintf("calls of %q in this run", tool), of, perTool}
	case l.Run > 0 && run >= l.Run:
		return &refusal{"tool calls in this run", run, l.Run}
	case l.Session > 0 && c.before+run >= l.Session:
		return &refusal{"tool calls in this session", c.before + run, l.Session}
	}
	c.booked++
	c.bookOf[tool]++
	return nil
}

// limiting keeps the limit around an executor.
type limiting struct {
	inner  agent.Executor
	limit  ToolCallLimit
	counts *agent.Scratch[callCount]
}

var _ agent.Executor = limiting{}

// Prepare denies a call that would run and is too many.
func (x limiting) Prepare(ctx context.Context, s agent.State, call *agent.ToolCall) mo.Result[*agent.Prepared] {
	result := x.inner.Prepare(ctx, s, call)
	p, err := result.Get()
	runs := err == nil && p != nil && (p.Disposition == agent.DisposeRun || p.Disposition == agent.DisposeAsk && p.Answer == nil)
	count := x.counts.Of(s)
	count.mu.Lock()
	defer count.mu.Unlock()
	count.begin(s, call.Index)
	if !runs {
		return result
	}
	met := count.book(x.limit, call.Name)
	if met == nil {
		return result
	}
	said := fmt.Sprintf("%d of at most %d %s made", met.have, met.may, met.what)
	q := *p
	q.Original, q.Question = call, nil
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
		"tool %q: denied by %s: %s; the limit will not be lifted, so do not call it again, and finish with what you have",
		call.Name, x.limit.Name(), said))
	return mo.Ok(&q)
}

// Execute counts what ran.
func (x limiting) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	result := x.inner.Execute(ctx, s, p)
	if p.Disposition != agent.DisposeRun {
		return result
	}
	if r, err := result.Get(); err == nil && r != nil && r.Status == agent.ToolNotExecuted { // cancelled before it began
		return result
	}
	count := x.counts.Of(s)
	count.mu.Lock()
	defer count.mu.Unlock()
	count.learn(s)
	count.ran++
	count.ranOf[p.Call.Name]++
	return result
}
