package claudehooks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/hostgate"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

// hooks returns the hooks of the events that have handlers.
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
	add(hooks.Observe(hooks.AtAgentFailed, "claude-hooks-failed", b.failed), stopFailure)
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

// firing returns an event of a run. The fields that all events have are filled in.
func (b *bound) firing(c hooks.Context, name string, fields map[string]any, values ...string) *firing {
	run := c.Run()
	x := b.sessionOf(run)
	if fields == nil {
		fields = map[string]any{}
	}
	path := x.write(c.State())
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

// toolFiring returns an event of a tool call.
func (b *bound) toolFiring(c hooks.Context, name string, call agent.ToolCall, fields map[string]any) (*firing, hostgate.ClaudeCall, error) {
	there, err := hostgate.ToClaude(call.Name, call.Arguments, b.options.Dir)
	if err != nil {
		return nil, there, fmt.Errorf("translating the call: %w", err)
	}
	fields["tool_name"], fields["tool_input"] = there.Tool, there.Input
	if name != permissionRequest {
		fields["tool_use_id"] = call.ID
	}
	values := []string{there.Tool}
	if there.Tool == "Agent" {
		values = append(values, "Task") // its old name
	}
	if rest, ok := strings.CutPrefix(there.Tool, "mcp__"); ok {
		server, _, _ := strings.Cut(rest, "__")
		fields["mcp_server"] = map[string]string{"name": server, "source": "user"}
	}
	f := b.firing(c, name, fields, values...)
	f.tool, f.input = there.Tool, there.Input
	return f, there, nil
}

// summary is what all handlers of one event said together.
type summary struct {
	isStopped  bool
	stopReason string
	// isBlocked and reasons are of decisions to block, and of exit code 2.
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

// second holds answers that one hook could not give together with another answer, until the next hook gives them. Keys are a
// sort and a call ID.
type second struct {
	mu      sync.Mutex
	reasons map[string]string
}

var seconds = agent.NewScratch(func() *second { return &second{reasons: map[string]string{}} })

// The sorts of second answers.
const (
	thenAsk     = "ask "
	thenApprove = "approve "
	thenStop    = "stop "
)

func (x *second) set(key, reason string, isSet bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if delete(x.reasons, key); isSet {
		x.reasons[key] = reason
	}
}

func (x *second) get(key string) (reason string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	reason, ok = x.reasons[key]
	return reason, ok
}

// beforeTool fires PreToolUse. All handlers start together. After a rewrite, the handlers that have not seen it are asked about
// it, in configuration order, until all have judged the same arguments. A handler's second rewrite does not count.
func (b *bound) beforeTool(ctx context.Context, c hooks.ToolContext) hooks.Result {
	if c.Invalid() != nil {
		return c.Pass() // the call does not run
	}
	call := c.Call().ToolCall
	f, there, err := b.toolFiring(c, preToolUse, call, map[string]any{})
	if err != nil {
		return c.Fail(err)
	}
	list := b.matching(f)
	if len(list) == 0 {
		seconds.Get(c.State()).set(thenAsk+call.ID, "", false)
		return c.Pass()
	}
	first, err := b.fire(ctx, f, list)
	if err != nil {
		return c.Fail(err)
	}
	said, judged, hasRewritten := map[*handler]answer{}, map[*handler]string{}, map[*handler]bool{}
	order := list
	for _, a := range first {
		said[a.handler], judged[a.handler] = a, call.Arguments
	}
	now := call.Arguments
	apply := func(a answer) error {
		if a.Input == nil || a.isBlocked || a.Permission == "deny" || a.Permission == "defer" || hasRewritten[a.handler] {
			return nil
		}
		arguments, err := there.Arguments(a.Input)
		if err != nil {
			return fmt.Errorf("updatedInput of %s: %w", a.label(), err)
		}
		hasRewritten[a.handler] = true
		now, judged[a.handler] = string(arguments), string(arguments)
		return nil
	}
	for _, a := range first {
		if err := apply(a); err != nil {
			return c.Fail(err)
		}
		if now != call.Arguments {
			break // the others have not seen it
		}
	}
	for isSettled := false; !isSettled && now != call.Arguments; {
		isSettled = true
		for _, h := range order {
			if _, asked := said[h]; !asked || judged[h] == now {
				continue
			}
			isSettled = false
			next := call
			next.Arguments = now
			if f, there, err = b.toolFiring(c, preToolUse, next, map[string]any{}); err != nil {
				return c.Fail(err)
			}
			answers, err := b.fire(ctx, f, []*handler{h})
			if err != nil {
				return c.Fail(err)
			}
			judged[h] = now
			for _, a := range answers {
				said[h] = a
				if err := apply(a); err != nil {
					return c.Fail(err)
				}
			}
		}
	}
	var answers []answer
	for _, h := range order {
		if a, ok := said[h]; ok {
			answers = append(answers, a)
		}
	}
	s := f.sum(answers)
	question := strings.Join(s.ask, "\n")
	seconds.Get(c.State()).set(thenAsk+call.ID, question, s.isAsked && now != call.Arguments)
	switch {
	case s.isStopped:
		return c.Stop(s.stopReason, s.effects()...)
	case s.isBlocked:
		return c.Deny(s.reason(), s.effects()...)
	case s.isPutOff:
		return c.Stop("tool_deferred: "+there.Tool, s.effects()...)
	case now != call.Arguments:
		return c.Rewrite(json.RawMessage(now), s.effects()...)
	case s.isAsked:
		return c.Ask(question, s.effects()...)
	case s.isAllowed || len(s.contexts) > 0:
		return c.Allow(s.effects()...)
	}
	return c.Pass()
}

// askAfterRewrite asks about a call that a handler rewrote, because one answer cannot do both.
func (b *bound) askAfterRewrite(_ context.Context, c hooks.ToolContext) hooks.Result {
	if reason, ok := seconds.Get(c.State()).get(thenAsk + c.Call().ID); ok {
		return c.Ask(reason)
	}
	return c.Pass()
}

func (b *bound) requestPermission(ctx context.Context, c hooks.InterventionContext) hooks.Result {
	call := c.Call().ToolCall
	f, there, err := b.toolFiring(c, permissionRequest, call, map[string]any{})
	if err != nil {
		return c.Fail(err)
	}
	s, answers, err := b.ask(ctx, f)
	if err != nil {
		return c.Fail(err)
	}
	approved := seconds.Get(c.State())
	approved.set(thenApprove+call.ID, "", false)
	if s.isStopped {
		return c.RejectAndEnd(s.stopReason)
	}
	arguments, isAllowed := call.Arguments, false
	for _, a := range answers {
		switch {
		case a.hasFailed: // exit code 2 is ignored here
			return c.Deny(a.why)
		case a.Request == nil:
		case a.Request.Behavior == "deny" && a.Request.Interrupt:
			return c.RejectAndEnd(a.Request.Message)
		case a.Request.Behavior == "deny":
			return c.Deny(a.Request.Message)
		default:
			isAllowed = true
			if a.Request.Input != nil {
				raw, err := there.Arguments(a.Request.Input)
				if err != nil {
					return c.Fail(fmt.Errorf("updatedInput of %s: %w", a.label(), err))
				}
				arguments = string(raw)
			}
		}
	}
	switch {
	case !isAllowed:
		return c.Pass()
	case arguments != call.Arguments:
		approved.set(thenApprove+call.ID, "", true)
		return c.Rewrite(json.RawMessage(arguments))
	}
	return c.Approve("allowed by a hook")
}

// approveAfterRewrite approves a call that a handler rewrote and allowed.
func (b *bound) approveAfterRewrite(_ context.Context, c hooks.InterventionContext) hooks.Result {
	if _, ok := seconds.Get(c.State()).get(thenApprove + c.Call().ID); ok {
		return c.Approve("allowed by a hook")
	}
	return c.Pass()
}

// notify fires Notification before a person is asked.
func (b *bound) notify(ctx context.Context, c hooks.InterventionContext) error {
	switch o := c.Frozen(); o.Decision() {
	case hooks.Deny, hooks.Approve, hooks.RejectAndEnd:
		return nil
	}
	there, err := hostgate.ToClaude(c.Call().Name, c.Call().Arguments, b.options.Dir)
	if err != nil {
		return err
	}
	const kind = "permission_prompt"
	_, _, err = b.ask(ctx, b.firing(c, notification, map[string]any{
		"message": "Claude needs your permission to use " + there.Tool, "title": "Permission needed", "notification_type": kind,
	}, kind))
	return err
}

// afterTool fires PostToolUse for good results and PostToolUseFailure for failed calls. Calls that did not run have neither.
func (b *bound) afterTool(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
	r := c.Result()
	if !r.Executed() && !r.Mocked() && r.Attempts == 0 {
		return c.Pass()
	}
	fields := map[string]any{"duration_ms": r.Duration.Milliseconds()}
	name := postToolUse
	var response any
	if c.IsError() {
		name = postToolUseFailure
		fields["error"], fields["is_interrupt"] = c.Text(), false
	}
	f, _, err := b.toolFiring(c, name, c.Call().ToolCall, fields)
	if err != nil {
		return c.Fail(err)
	}
	if name == postToolUse {
		response = hostgate.ClaudeResult(f.tool, f.input, c.Text())
		fields["tool_response"] = response
	}
	s, answers, err := b.ask(ctx, f)
	if err != nil {
		return c.Fail(err)
	}
	if s.isBlocked {
		s.contexts = append(s.contexts, b.sessionOf(c.Run()).limit(s.reason()))
	}
	text, isReplaced := c.Text(), false
	for _, a := range answers {
		raw := a.Output
		if strings.HasPrefix(f.tool, "mcp__") && a.MCPOutput != nil {
			raw = a.MCPOutput
		}
		if raw == nil || name != postToolUse || a.isBlocked {
			continue
		}
		replaced, ok := hostgate.ClaudeResultText(response, raw)
		if !ok {
			if b.options.Notify != nil {
				b.options.Notify(Notice{Event: name, Hook: a.label(), Text: "updatedToolOutput is ignored: it does not have the form of the tool's output"})
			}
			continue
		}
		text, isReplaced = replaced, true
	}
	switch {
	case s.isStopped && isReplaced:
		seconds.Get(c.State()).set(thenStop+c.Call().ID, s.stopReason, true)
		return c.Replace(text, s.effects()...)
	case s.isStopped:
		return c.Stop(s.stopReason, s.effects()...)
	case isReplaced:
		return c.Replace(text, s.effects()...)
	case len(s.contexts) > 0:
		return c.Allow(s.effects()...)
	}
	return c.Pass()
}

// stopAfterReplace ends the run after a handler that also replaced the result.
func (b *bound) stopAfterReplace(_ context.Context, c hooks.ToolResultContext) hooks.Result {
	if reason, ok := seconds.Get(c.State()).get(thenStop + c.Call().ID); ok {
		return c.Stop(reason)
	}
	return c.Pass()
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
	reasons := append(s.reasons, s.contexts...)
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
	if reasons := append(s.reasons, s.contexts...); len(reasons) > 0 && about.Err == nil {
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

func (b *bound) failed(ctx context.Context, c hooks.FailureContext) error {
	kind, text := kinds[agent.KindOf(c.Err())], c.Err().Error()
	if kind == "" {
		kind = "unknown"
	}
	_, _, err := b.ask(ctx, b.firing(c, stopFailure, map[string]any{"error": kind, "error_details": text, "last_assistant_message": text}, kind))
	return err
}

// endRun ends the session of a run without an agent.Session.
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
