package claudehooks

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/hostgate"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

// hooks returns a hook for each event with handlers.
func (b *bound) hooks() (out []hooks.Hook) {
	add := func(h hooks.Hook, names ...string) {
		var list []*handler
		for _, name := range names {
			list = append(list, b.handlers[name]...)
		}
		if len(list) > 0 {
			out = append(out, h.WithTimeout(sumOf(list)*2))
		}
	}
	add(hooks.On(hooks.AtConversationStart, "claude-hooks-start", b.startConversation), b.names()...)
	add(hooks.On(hooks.AtInputSubmitted, "claude-hooks-prompt", b.submitPrompt), b.names()...)
	add(hooks.On(hooks.AtStepStart, "claude-hooks-background", b.addBackground), b.names()...)
	add(hooks.On(hooks.AtPreToolUse, "claude-hooks", b.beforeTool), preToolUse)
	add(hooks.On(hooks.AtPreToolUse, "claude-hooks-ask", b.askAfterRewrite), preToolUse)
	add(hooks.On(hooks.AtInterventionRequested, "claude-hooks-permission", b.requestPermission), permissionRequest)
	add(hooks.On(hooks.AtInterventionRequested, "claude-hooks-permitted", b.approveAfterRewrite), permissionRequest)
	add(hooks.Observe(hooks.AtInterventionRequested, "claude-hooks-notification", b.notify), notification)
	// After a call, the last one is asked first.
	add(hooks.On(hooks.AtPostToolUse, "claude-hooks-result-stop", b.stopAfterReplace), postToolUse)
	add(hooks.On(hooks.AtPostToolUse, "claude-hooks-result", b.afterTool), postToolUse, postToolUseFailure)
	add(hooks.On(hooks.AtStepEnd, "claude-hooks-batch", b.afterBatch), postToolBatch)
	add(hooks.On(hooks.AtStop, "claude-hooks-stop", b.stop), b.names()...)
	add(hooks.On(hooks.AtPreSubagent, "claude-hooks-subagent", b.beforeSubagent), subagentStart)
	add(hooks.On(hooks.AtPostSubagent, "claude-hooks-subagent-result", b.afterSubagent), subagentStop)
	add(hooks.On(hooks.AtPreCompact, "claude-hooks-compact", b.beforeCompact), preCompact)
	add(hooks.Observe(hooks.AtPostCompact, "claude-hooks-compacted", b.afterCompact), postCompact, sessionStart)
	add(hooks.Observe(hooks.AtAgentFailed, "claude-hooks-failed", b.reportFailure), stopFailure)
	add(hooks.Observe(hooks.AtExecutionEnd, "claude-hooks-end", b.endRun), b.names()...)
	add(hooks.Observe(hooks.AtConversationEnd, "claude-hooks-conversation-end", b.endConversation), b.names()...)
	return out
}

// names returns the events that have handlers.
func (b *bound) names() (out []string) {
	for name := range b.handlers {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// firing returns a run's event, with the fields that all events have.
func (b *bound) firing(c hooks.Context, name string, fields map[string]any, values ...string) *firing {
	run := c.Run()
	x := b.sessionOf(run)
	if fields == nil {
		fields = map[string]any{}
	}
	path := x.record(c.State())
	if run.Depth > 0 {
		path = x.transcriptOf("")
		fields["agent_id"], fields["agent_type"] = string(run.ID), run.Agent
	}
	fields["hook_event_name"], fields["session_id"], fields["transcript_path"], fields["cwd"] = name, x.id, path, b.workDir()
	if id := x.promptID(); id != "" {
		fields["prompt_id"] = id
	}
	switch name {
	case sessionStart, sessionEnd:
	default:
		fields["permission_mode"] = "default"
	}
	return &firing{event: name, values: values, fields: fields, session: x, run: run, bound: b}
}

// summary is what all handlers of one event said together.
type summary struct {
	isStopped  bool
	stopReason string
	// isBlocked and reasons come from decisions to block and from exit code 2.
	isBlocked bool
	reasons   []string
	contexts  []string
	ask       []string
	isAsked   bool
	isAllowed bool
	isPutOff  bool // defer
}

func (s *summary) reason() string { return strings.Join(s.reasons, "\n") }

// effects returns the context for the model.
func (s *summary) effects() (out []agent.Effect) {
	for _, text := range s.contexts {
		out = append(out, agent.AddContext(text))
	}
	return out
}

const (
	maxText     = 10_000
	previewText = 2_000
)

// limit returns a text for the model. A long text is put in a file.
func (x *session) limit(text string) string {
	if len([]rune(text)) <= maxText {
		return text
	}
	f, err := os.CreateTemp(x.set.dir, "output-*.txt")
	if err == nil {
		_, err = f.WriteString(text)
		_ = f.Close()
	}
	preview := string([]rune(text)[:previewText])
	if err != nil {
		return preview + "\n(cut)"
	}
	return fmt.Sprintf("%s\n(The output has %d characters. All of it is in %s.)", preview, len([]rune(text)), f.Name())
}

// sum combines answers, in configuration order.
func (f *firing) sum(answers []answer) (s summary) {
	about := events[f.event]
	for _, a := range answers {
		if a.Continue != nil && !*a.Continue && !about.dropsContinue && !about.isDeaf && !s.isStopped {
			s.isStopped, s.stopReason = true, a.StopReason
			if s.stopReason == "" {
				s.stopReason = "stopped by a hook"
			}
		}
		if a.isBlocked {
			s.isBlocked, s.reasons = true, append(s.reasons, a.why)
		} else if reason, ok := a.blocks(f.event); ok {
			s.isBlocked, s.reasons = true, append(s.reasons, reason)
		}
		switch {
		case a.isBlocked:
		case a.Permission == "ask":
			s.isAsked = true
			if a.PermissionReason != "" {
				s.ask = append(s.ask, a.PermissionReason)
			}
		case a.Permission == "defer":
			s.isPutOff = true
		case a.Permission == "allow", a.Decision == "approve":
			s.isAllowed = true
		}
		if a.Context != "" && about.takesContext && a.Permission != "defer" {
			s.contexts = append(s.contexts, f.session.limit(a.Context))
		}
		if a.text != "" && about.takesText && !a.isBlocked {
			s.contexts = append(s.contexts, f.session.limit(a.text))
		}
		if a.FirstMessage != "" {
			s.contexts = append(s.contexts, f.session.limit(a.FirstMessage))
		}
	}
	s.reasons = slices.DeleteFunc(s.reasons, func(text string) bool { return text == "" })
	return s
}

// ask runs an event's handlers.
func (b *bound) ask(ctx context.Context, f *firing) (summary, []answer, error) {
	list := b.matching(f)
	if len(list) == 0 {
		return summary{}, nil, nil
	}
	answers, err := b.fire(ctx, f, list)
	if err != nil {
		return summary{}, nil, err
	}
	return f.sum(answers), answers, nil
}

// beginSession fires SessionStart.
func (b *bound) beginSession(ctx context.Context, c hooks.Context, origin string) ([]agent.Effect, error) {
	s, _, err := b.ask(ctx, b.firing(c, sessionStart, map[string]any{"source": origin}, origin))
	return s.effects(), err
}

func (b *bound) startConversation(ctx context.Context, c hooks.ConversationContext) hooks.Result {
	if c.Run().Depth > 0 {
		return c.Pass()
	}
	x := b.sessionOf(c.Run())
	x.mu.Lock()
	x.hasStarted, x.isConversation = true, true
	x.mu.Unlock()
	effects, err := b.beginSession(ctx, c, string(c.Conversation().Source))
	if err != nil {
		return c.Fail(err)
	}
	return c.Allow(effects...)
}

// submitPrompt fires UserPromptSubmit and, for a run without an agent.Session, SessionStart before it.
func (b *bound) submitPrompt(ctx context.Context, c hooks.InputContext) hooks.Result {
	if c.Run().Depth > 0 {
		return c.Pass() // the model wrote this prompt
	}
	x := b.sessionOf(c.Run())
	x.mu.Lock()
	hasStarted := x.hasStarted
	x.hasStarted = true
	x.mu.Unlock()
	var effects []agent.Effect
	if !hasStarted {
		origin := agent.ConversationStartup
		if c.State().StepCount() > 0 {
			origin = agent.ConversationResume
		}
		var err error
		if effects, err = b.beginSession(ctx, c, string(origin)); err != nil {
			return c.Fail(err)
		}
	}
	x.newPrompt()
	s, _, err := b.ask(ctx, b.firing(c, userPromptSubmit, map[string]any{"prompt": c.Text(), "source": "user"}))
	switch {
	case err != nil:
		return c.Fail(err)
	case s.isStopped:
		return c.Deny(s.stopReason)
	case s.isBlocked:
		return c.Deny(s.reason())
	}
	return c.Allow(append(effects, s.effects()...)...)
}

// addBackground passes on what handlers in the background have said.
func (b *bound) addBackground(_ context.Context, c hooks.StepContext) hooks.Result {
	x := b.sessionOf(c.Run())
	var effects []agent.Effect
	for _, text := range x.take() {
		effects = append(effects, agent.AddContext(x.limit(text)))
	}
	if len(effects) == 0 {
		return c.Pass()
	}
	return c.Allow(effects...)
}

// afterBatch fires PostToolBatch.
func (b *bound) afterBatch(ctx context.Context, c hooks.StepEndContext) hooks.Result {
	if c.Kind() != agent.StepToolExecution {
		return c.Pass()
	}
	var calls []map[string]any
	for _, r := range c.Record().Results() {
		call := r.Call()
		there, err := hostgate.ToClaude(call.Name, call.Arguments, b.options.Dir)
		if err != nil {
			continue // the model's text was no call
		}
		calls = append(calls, map[string]any{"tool_name": there.Tool, "tool_input": there.Input, "tool_use_id": call.ID, "tool_response": r.Text()})
	}
	s, _, err := b.ask(ctx, b.firing(c, postToolBatch, map[string]any{"tool_calls": calls}))
	switch {
	case err != nil:
		return c.Fail(err)
	case s.isStopped:
		return c.Stop(s.stopReason, s.effects()...)
	case s.isBlocked:
		return c.Stop(s.reason(), s.effects()...)
	}
	return c.Allow(s.effects()...)
}

// stop fires Stop. What handlers in the background have said in the meantime also continues the run.
func (b *bound) stop(ctx context.Context, c hooks.StopContext) hooks.Result {
	if c.Run().Depth > 0 {
		return c.Pass()
	}
	f := b.firing(c, stopEvent, map[string]any{
		"stop_hook_active": c.Continuations() > 0, "last_assistant_message": c.Answer(), "background_tasks": []any{}, "session_crons": []any{},
	})
	s, _, err := b.ask(ctx, f)
	if err != nil {
		return c.Fail(err)
	}
	if s.isStopped {
		return c.Stop(s.stopReason)
	}
	reasons := slices.Concat(s.reasons, s.contexts)
	reasons = append(reasons, f.session.takeWoken()...)
	if s.isBlocked || len(reasons) > 0 {
		return c.Continue(strings.Join(reasons, "\n"))
	}
	return c.Pass()
}

func (b *bound) beforeSubagent(ctx context.Context, c hooks.PreSubagentContext) hooks.Result {
	about := c.Subagent()
	f := b.firing(c, subagentStart, map[string]any{}, about.Agent)
	f.fields["agent_id"], f.fields["agent_type"] = string(about.Run.ID), about.Agent
	s, _, err := b.ask(ctx, f)
	switch {
	case err != nil:
		return c.Fail(err)
	case s.isStopped:
		return c.Deny(s.stopReason)
	case len(s.contexts) > 0:
		return c.Rewrite(about.Instruction + "\n\n" + strings.Join(s.contexts, "\n\n"))
	}
	return c.Pass()
}

// afterSubagent fires SubagentStop. The sub-agent has ended, so a block adds its reason to the answer.
func (b *bound) afterSubagent(ctx context.Context, c hooks.PostSubagentContext) hooks.Result {
	about := c.Subagent()
	f := b.firing(c, subagentStop, map[string]any{
		"stop_hook_active": false, "last_assistant_message": about.Result, "background_tasks": []any{}, "session_crons": []any{},
	}, about.Agent)
	f.fields["agent_id"], f.fields["agent_type"] = string(about.Run.ID), about.Agent
	f.fields["agent_transcript_path"] = f.session.transcriptOf(about.Run.ID)
	s, _, err := b.ask(ctx, f)
	switch {
	case err != nil:
		return c.Fail(err)
	case s.isStopped:
		return c.Withhold(s.stopReason)
	}
	if reasons := slices.Concat(s.reasons, s.contexts); len(reasons) > 0 && about.Err == nil {
		return c.Replace(about.Result + "\n\n" + strings.Join(reasons, "\n"))
	}
	return c.Pass()
}

func (b *bound) beforeCompact(ctx context.Context, c hooks.PreCompactContext) hooks.Result {
	const trigger = "auto"
	s, _, err := b.ask(ctx, b.firing(c, preCompact, map[string]any{"trigger": trigger, "custom_instructions": nil}, trigger))
	switch {
	case err != nil:
		return c.Fail(err)
	case s.isBlocked:
		return c.Deny(s.reason())
	}
	return c.Pass()
}

// afterCompact fires PostCompact, and SessionStart for handlers that restore context.
func (b *bound) afterCompact(ctx context.Context, c hooks.PostCompactContext) error {
	const trigger, origin = "auto", "compact"
	if _, _, err := b.ask(ctx, b.firing(c, postCompact, map[string]any{"trigger": trigger, "compact_summary": c.Compaction().Summary}, trigger)); err != nil {
		return err
	}
	f := b.firing(c, sessionStart, map[string]any{"source": origin}, origin)
	s, _, err := b.ask(ctx, f)
	f.session.add(s.contexts...)
	return err
}

// kinds are Claude Code's words for errors.
var kinds = map[agent.ErrorKind]string{
	agent.KindRateLimit: "rate_limit", agent.KindOverloaded: "overloaded", agent.KindAuth: "authentication_failed", agent.KindBadRequest: "invalid_request",
	agent.KindModel: "server_error", agent.KindBrokenStream: "server_error", agent.KindContextLength: "invalid_request",
}

func (b *bound) reportFailure(ctx context.Context, c hooks.FailureContext) error {
	kind, text := kinds[agent.KindOf(c.Err())], c.Err().Error()
	if kind == "" {
		kind = "unknown"
	}
	_, _, err := b.ask(ctx, b.firing(c, stopFailure, map[string]any{"error": kind, "error_details": text, "last_assistant_message": text}, kind))
	return err
}

// endRun ends the session if no agent.Session does.
func (b *bound) endRun(ctx context.Context, c hooks.EndContext) error {
	x := b.sessionOf(c.Run())
	x.mu.Lock()
	isConversation := x.isConversation
	x.mu.Unlock()
	if isConversation || c.Run().Depth > 0 {
		return nil
	}
	return b.endSession(ctx, c, "other")
}

func (b *bound) endConversation(ctx context.Context, c hooks.ConversationEndContext) error {
	return b.endSession(ctx, c, string(c.Conversation().Reason))
}

// endSession fires SessionEnd, whose handlers share one time limit.
func (b *bound) endSession(ctx context.Context, c hooks.Context, reason string) error {
	f := b.firing(c, sessionEnd, map[string]any{"reason": reason}, reason)
	defer b.forget(f.session)
	limit := endTimeout
	for _, h := range b.handlers[sessionEnd] {
		if h.plugin == "" {
			limit = max(limit, min(h.timeout, longestEnd))
		}
	}
	f.limit = limit
	_, _, err := b.ask(ctx, f)
	return err
}

// withVariables gives shell calls the variables that SessionStart handlers have exported.
func (b *bound) withVariables(inner agent.Executor) agent.Executor { return variables{inner, b} }

type variables struct {
	agent.Executor
	*bound
}

func (v variables) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if path, ok := v.sessionOf(s.Run()).variables(); ok {
		ctx = shell.WithVariables(ctx, map[string]string{"BASH_ENV": path})
	}
	return v.Executor.Execute(ctx, s, p)
}
