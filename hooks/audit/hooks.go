package audit

import (
	"context"
	"math"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
)

// lastPriority makes the hooks that write run last. Their priority is -lastPriority at points where higher priorities
// run first, and lastPriority where higher priorities run last.
const lastPriority = 1_000_000

// Hooks returns the hooks that write to the log. They deny only calls, and withhold only results, that could not be
// logged.
func (l *Log) Hooks() []hooks.Hook {
	name := l.options.Name
	return append(l.CallHooks(),
		hooks.On(hooks.AtExecutionStart, name+".run", l.recordStart).WithPriority(-lastPriority).WithFailure(l.options.Failure),
		hooks.Observe(hooks.AtExecutionEnd, name+".end", l.recordEnd).WithFailure(hooks.Open),
	)
}

// CallHooks returns only the hooks that log calls, results and decisions. Package guard needs them, because it fires no
// hook when a run starts or ends.
func (l *Log) CallHooks() []hooks.Hook {
	name, strict, lenient := l.options.Name, l.options.Failure, l.options.Failure
	if strict != hooks.Abort {
		lenient = hooks.Open
	}
	return []hooks.Hook{
		hooks.On(hooks.AtPreToolUse, name+".call", l.recordCall).WithPriority(-lastPriority).WithFailure(strict),
		hooks.On(hooks.AtPostToolUse, name+".result", l.recordResult).WithPriority(lastPriority).WithFailure(strict),
		hooks.ObserveAll(name+".decision", l.recordDecision, lo.Without(hooks.PointNames(), hooks.ExecutionEnd)...).WithFailure(lenient),
	}
}

func (l *Log) recordStart(_ context.Context, c hooks.ExecutionContext) hooks.Result {
	if err := l.write(entryOf(RunStarted, c)); err != nil {
		return c.Fail(err)
	}
	return c.Pass()
}

func (l *Log) recordCall(_ context.Context, c hooks.ToolContext) hooks.Result {
	if c.Invalid() != nil {
		return c.Pass() // the call does not run
	}
	e := entryOf(ToolCall, c)
	l.about(&e, c.Call(), c.Original(), Texts{})
	if err := l.write(e); err != nil {
		return c.Fail(err)
	}
	return c.Pass()
}

func (l *Log) recordResult(_ context.Context, c hooks.ToolResultContext) hooks.Result {
	whole := c.Result()
	r := whole.CutToLimit() // the length that the model receives
	e := entryOf(ToolResult, c)
	l.about(&e, c.Call(), c.Original(), Texts{Result: r.Text()})
	e.Status, e.Reason, e.By = string(r.Status), string(r.Reason), r.DecidedBy
	e.Attempts, e.Milliseconds = r.Attempts, r.Duration.Milliseconds()
	e.Result, e.ResultBytes = l.hash(r.Text()), len(r.Text())
	if err := l.write(e); err != nil {
		return c.Fail(err)
	}
	return c.Pass()
}

// recordDecision writes the controls' decision at a point, unless they let the run continue unchanged.
func (l *Log) recordDecision(_ context.Context, c hooks.Context) error {
	o := c.Frozen()
	if o.Decision() == hooks.Pass || o.Decision() == hooks.Allow {
		return nil
	}
	e := entryOf(Decision, c)
	e.Decision, e.Point, e.By, e.HookFailed = o.Decision(), c.Point(), o.Hook(), o.HookFailed()
	said := Texts{Reason: o.Reason()}
	switch c := c.(type) {
	case hooks.ToolContext:
		l.about(&e, c.Call(), c.Original(), said)
	case hooks.ToolFailureContext:
		l.about(&e, c.Call(), c.Original(), said)
	case hooks.ToolResultContext:
		l.about(&e, c.Call(), c.Original(), said)
	default:
		e.Texts = l.texts(said)
	}
	return l.write(e)
}

func (l *Log) recordEnd(_ context.Context, c hooks.EndContext) error {
	used := c.State().RunUsage()
	e := entryOf(RunEnded, c)
	e.Status, e.Reason, e.By = string(c.Status()), string(c.Reason().Reason), c.Reason().Source
	e.Milliseconds = c.Duration().Milliseconds()
	e.Totals = &Totals{
		Steps: c.State().RunStepCount(), InputTokens: used.InputTokens, OutputTokens: used.OutputTokens,
	}
	if cost, ok := used.Cost.Get(); ok && !math.IsNaN(cost) && !math.IsInf(cost, 0) { // JSON cannot represent NaN and infinity
		e.Totals.Cost = &cost
	}
	e.Texts = l.texts(Texts{Reason: c.Reason().Message})
	return l.write(e)
}

// about sets the fields of an entry that identify a call.
func (l *Log) about(e *Entry, call, original hooks.Call, texts Texts) {
	e.Call, e.Tool, e.Arguments = call.ID, truncateText(call.Name, maxName), l.hash(callArguments(call))
	texts.Arguments = callArguments(call)
	if callArguments(original) != callArguments(call) {
		e.Asked, texts.Asked = l.hash(callArguments(original)), callArguments(original)
	}
	e.Texts = l.texts(texts)
}

// callArguments returns a call's arguments. Missing arguments are an empty object.
func callArguments(c hooks.Call) string { return lo.CoalesceOrEmpty(c.Arguments, "{}") }
