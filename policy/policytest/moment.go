package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/fire"
)

// moment converts the event to a moment that can be fired.
func (e *Event) moment() (fire.Moment, error) {
	m, err := e.at()
	if err != nil {
		return m, err
	}
	m = m.WithRun(e.agentRun())
	before, err := e.before()
	if err != nil {
		return m, err
	}
	if before.state.MessageCount() > 0 {
		m = m.WithState(before.state)
	}
	if len(before.steps) > 0 {
		m = m.AfterSteps(before.steps...).Answering(func(step int, c agent.ToolCall) (agent.ToolResult, bool) {
			if step >= len(before.answers) || c.Index >= len(before.answers[step]) {
				return agent.ToolResult{}, false
			}
			return before.answers[step][c.Index], true
		})
	}
	for _, name := range slices.Sorted(maps.Keys(e.Metadata)) {
		m = m.WithEffects(agent.SessionKey[any](name).Set(plainValue(e.Metadata[name])))
	}
	return m, nil
}

// plainValue converts a value to plain Go types; whole numbers become int64.
func plainValue(v Value) any {
	var out any
	if json.Unmarshal(v, &out) != nil {
		return nil
	}
	if f, ok := out.(float64); ok {
		var n int64
		if json.Unmarshal(v, &n) == nil {
			return n
		}
		return f
	}
	return out
}

// starting lists the points before a run's first step, and conversing lists the conversation points: their events do
// not belong to a step.
var (
	starting   = []hooks.PointName{hooks.InputSubmitted, hooks.ExecutionStart}
	conversing = []hooks.PointName{hooks.ConversationStart, hooks.ConversationEnd}
)

// before returns the messages and calls before the event.
func (e *Event) before() (past, error) {
	at := hooks.PointName(e.Point)
	outside := slices.Contains(conversing, at)
	begun := !outside && !slices.Contains(starting, at)
	p := pastOf(e.Messages, begun)
	if e.Input != "" && (begun || outside) {
		p.state = p.state.With(agent.UserText(e.Input))
	}
	for _, tool := range slices.Sorted(maps.Keys(e.Calls)) {
		p.add(tool, e.Calls[tool])
	}
	usage, used := e.Usage.usage()
	if e.Step == nil && used && len(p.steps) == 0 && begun {
		p.steps = make([]agent.Step, 1)
	}
	if e.Step != nil {
		if *e.Step < len(p.steps) {
			return p, fmt.Errorf("step: the event has step %d, but %d earlier steps", *e.Step, len(p.steps))
		}
		p.steps = append(make([]agent.Step, *e.Step-len(p.steps)), p.steps...)
		p.answers = append(make([][]agent.ToolResult, len(p.steps)-len(p.answers)), p.answers...)
	}
	switch {
	case len(p.steps) > 0 && !begun:
		return p, fmt.Errorf("at %s there are no steps of the run: remove step, calls and usage", at)
	case used && len(p.steps) == 0:
		return p, errors.New("usage: a run without steps has no usage: set step: 1")
	case used:
		p.steps[len(p.steps)-1].Usage = usage
	}
	return p, nil
}

// add adds a step with n calls of a tool.
func (p *past) add(tool string, n Calls) {
	if n.Calls == 0 {
		return
	}
	step := Turn{Calls: lo.Times(n.Calls, func(i int) Call {
		c := Call{Tool: tool}
		switch {
		case i < n.Denied:
			c.Denied = "denied"
		case i >= n.Denied+n.OK:
			c.Result = &ToolResult{Text: "failed", IsError: true}
		}
		return c
	})}
	p.steps = append(p.steps, step.modelStep(1000+len(p.steps)))
	p.answers = append(p.answers, lo.Map(step.Calls, func(c Call, _ int) agent.ToolResult { return c.answer() }))
}

func (u Usage) usage() (usage agent.Usage, used bool) {
	usage = agent.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: mo.PointerToOption(u.Cost),
		CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens, ReasoningTokens: u.ReasoningTokens,
	}
	if more := u.Tokens - usage.Tokens(); u.Tokens > 0 && more > 0 {
		usage.InputTokens += more
	}
	return usage, u.Tokens > 0 || usage.Tokens() > 0 || u.Cost != nil
}

// at returns the moment without the earlier steps.
func (e *Event) at() (fire.Moment, error) {
	at := hooks.PointName(e.Point)
	switch at {
	case hooks.PreToolUse, hooks.PostToolUse, hooks.ToolFailed, hooks.InterventionRequested, hooks.InterventionResolved, hooks.InterventionStopped:
		return e.atCall(at)
	case hooks.InputSubmitted:
		return fire.Input(e.Input), nil
	case hooks.ExecutionStart:
		return fire.Start(e.Input), nil
	case hooks.StepStart:
		return fire.StepStart(), nil
	case hooks.PreInference:
		r := e.Request
		return fire.Request(agent.Request{
			Model: r.Model, Instructions: r.Instructions, MaxOutputTokens: r.MaxOutputTokens, Temperature: mo.PointerToOption(r.Temperature),
		}), nil
	case hooks.PostInference:
		return fire.Reply("").WithReply(e.step()), nil
	case hooks.StepEnd:
		return fire.StepEnd("").WithReply(e.step()), nil
	case hooks.Stop:
		m := fire.Stop("").WithReply(e.step()).WithContinuations(e.Continuations)
		if e.End.Reason != "" {
			m = m.WithSignal(e.End.signal())
		}
		return m, nil
	case hooks.ExecutionEnd:
		return fire.End(lo.CoalesceOrEmpty(agent.Status(e.Status), agent.StatusDone)).WithReply(e.step()).WithSignal(e.End.signal()), nil
	case hooks.AgentFailed:
		return fire.RunFailure(e.mustFail()), nil
	case hooks.ConversationStart, hooks.ConversationEnd:
		c := e.Conversation
		about := hooks.Conversation{Source: agent.ConversationSource(c.Source), Reason: agent.CloseReason(c.Reason), Turns: c.Turns}
		return fire.Conversation(at, about), nil
	}
	return e.besides(at)
}

// mustFail returns the event's error or, because the point requires one, a default error.
func (e *Event) mustFail() error {
	if err := e.failure(); err != nil {
		return err
	}
	return failure("it failed")
}

// step returns the model turn of the event.
func (e *Event) step() agent.Step {
	calls := append(slices.Clone(e.Reply.Calls), lo.Map(e.Reply.Tools, func(tool string, _ int) Call { return Call{Tool: tool} })...)
	usage, _ := e.Reply.Usage.usage()
	return agent.Step{
		Message:      agent.Assistant(lo.CoalesceOrEmpty(e.Reply.Text, e.Answer, lo.Ternary(len(calls) == 0, "done", "")), callsOf(calls, 1)...),
		FinishReason: agent.FinishReason(e.Reply.FinishReason), Model: e.Reply.Model, Usage: usage,
	}
}

func (e End) signal() agent.Signal {
	return agent.Signal{
		Reason: agent.StopReason(e.Reason), Message: e.Message, Source: e.Source,
		Details: lo.MapValues(e.Details, func(v Value, _ string) any { return plainValue(v) }),
	}
}

// atCall returns the moment for a tool call.
func (e *Event) atCall(at hooks.PointName) (fire.Moment, error) {
	arguments := lo.Ternary(e.Original != "", e.Original, e.Arguments).jsonText()
	if e.Tool == "" {
		return fire.Moment{}, fmt.Errorf("the key %q is missing: %s is about a tool call", "tool", at)
	}
	var m fire.Moment
	switch at {
	case hooks.PreToolUse:
		m = fire.ToolCall(e.Tool, arguments)
	case hooks.PostToolUse:
		m = fire.ToolResult(e.Tool, arguments, "ok")
		if e.Result != nil {
			m = m.WithResult(e.Result.tool())
		}
	case hooks.ToolFailed:
		m = fire.ToolFailure(e.Tool, arguments, failure(lo.CoalesceOrEmpty(e.Error, lo.FromPtr(e.Result).Text, "it failed")))
	case hooks.InterventionRequested:
		m = fire.Intervention(e.Tool, arguments)
	case hooks.InterventionStopped:
		m = fire.InterventionStopped(e.Tool, arguments, e.Approval.Reason)
	default:
		verdict, err := verdictOf(e.Approval.Verdict)
		if err != nil {
			return m, fmt.Errorf("approval: %w", err)
		}
		m = fire.InterventionAnswer(e.Tool, arguments, agent.Approval{Verdict: verdict, By: e.Approval.By, Reason: e.Approval.Reason})
	}
	if e.CallID != "" {
		m = m.WithCallID(e.CallID)
	}
	if e.Invalid != "" && (at == hooks.PreToolUse || at == hooks.PostToolUse && e.Result == nil) {
		m = m.Invalid(failure(e.Invalid))
	}
	if e.Question != "" {
		m = m.WithQuestion(e.Question)
	}
	return m, nil
}

// besides returns the moments of points that are not about a run's input, its model or a tool call: sub-agents,
// compactions, pipelines and blueprints.
func (e *Event) besides(at hooks.PointName) (fire.Moment, error) {
	s, c := e.Subagent, e.Compaction
	compaction := hooks.Compaction{ID: c.ID, Messages: c.Messages, Tokens: c.Tokens, MessagesAfter: c.MessagesAfter, Summary: c.Summary}
	switch at {
	case hooks.PreCompact:
		return fire.Compact(compaction), nil
	case hooks.PostCompact:
		return fire.CompactResult(compaction), nil
	case hooks.CompactFailed:
		compaction.Err = e.mustFail()
		return fire.CompactFailure(compaction), nil
	case hooks.PreSubagent:
		return fire.Subagent(s.Agent, s.Instruction), nil
	case hooks.PostSubagent:
		return fire.SubagentResult(s.Agent, s.Instruction, s.Result), nil
	case hooks.SubagentFailed:
		return fire.SubagentFailure(s.Agent, s.Instruction, e.mustFail()), nil
	case hooks.RunStart, hooks.RunResult, hooks.RunFailed, hooks.RunTimeout, hooks.RunFinish:
		about := hooks.BlueprintRun{Parameters: json.RawMessage(e.Parameters), Status: agent.Status(e.Status), Err: e.failure()}
		if len(about.Parameters) == 0 {
			about.Parameters = json.RawMessage("{}")
		}
		if e.Result != nil {
			about.ResultText, about.ResultData = e.Result.Text, json.RawMessage(e.Result.Data)
		}
		return fire.Blueprint(at, about), nil
	}
	return fire.Pipeline(at, e.pipeline()), nil
}
