package claudehooks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/hostgate"
)

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

// deliberation is what PreToolUse handlers have said about a call and its rewrites.
type deliberation struct {
	*bound
	c     hooks.ToolContext
	call  agent.ToolCall
	f     *firing
	there hostgate.ClaudeCall
	// now are the arguments after all rewrites. judged are the arguments that each handler has last seen or given itself.
	now       string
	said      map[*handler]answer
	judged    map[*handler]string
	rewriters map[*handler]bool
}

// look fires the event about the arguments after all rewrites.
func (d *deliberation) look() (err error) {
	d.call.Arguments = d.now
	d.f, d.there, err = d.toolFiring(d.c, preToolUse, d.call, map[string]any{})
	return err
}

// rewrite applies a handler's answer, unless the handler has rewritten the call before.
func (d *deliberation) rewrite(a answer) error {
	if a.Input == nil || a.isBlocked || a.Permission == "deny" || a.Permission == "defer" || d.rewriters[a.handler] {
		return nil
	}
	arguments, err := d.there.Arguments(a.Input)
	if err != nil {
		return fmt.Errorf("updatedInput of %s: %w", a.label(), err)
	}
	d.rewriters[a.handler] = true
	d.now, d.judged[a.handler] = string(arguments), string(arguments)
	return nil
}

// askAll asks the handlers together about the call, and applies the first rewrite.
func (d *deliberation) askAll(ctx context.Context, list []*handler) error {
	answers, err := d.fire(ctx, d.f, list)
	if err != nil {
		return err
	}
	before := d.now
	for _, a := range answers {
		d.said[a.handler], d.judged[a.handler] = a, before
	}
	for _, a := range answers {
		if err := d.rewrite(a); err != nil {
			return err
		}
		if d.now != before {
			break // the others have not seen it
		}
	}
	return nil
}

// settle asks handlers that have not judged the rewritten call, one after the other, until all have.
func (d *deliberation) settle(ctx context.Context, list []*handler) error {
	for isSettled := false; !isSettled; {
		isSettled = true
		for _, h := range list {
			if _, hasAnswered := d.said[h]; !hasAnswered || d.judged[h] == d.now {
				continue
			}
			isSettled = false
			if err := d.look(); err != nil {
				return err
			}
			if err := d.askAll(ctx, []*handler{h}); err != nil {
				return err
			}
		}
	}
	return nil
}

// beforeTool fires PreToolUse. All handlers start together. After a rewrite, the handlers that have not seen it are asked about
// it, in configuration order, until all have judged the same arguments. A handler's second rewrite does not count.
func (b *bound) beforeTool(ctx context.Context, c hooks.ToolContext) hooks.Result {
	if c.Invalid() != nil {
		return c.Pass() // the call does not run
	}
	call := c.Call().ToolCall
	d := deliberation{
		bound: b, c: c, call: call, now: call.Arguments,
		said: map[*handler]answer{}, judged: map[*handler]string{}, rewriters: map[*handler]bool{},
	}
	if err := d.look(); err != nil {
		return c.Fail(err)
	}
	list := b.matching(d.f)
	if err := d.askAll(ctx, list); err != nil {
		return c.Fail(err)
	}
	if err := d.settle(ctx, list); err != nil {
		return c.Fail(err)
	}
	var answers []answer
	for _, h := range list {
		if a, ok := d.said[h]; ok {
			answers = append(answers, a)
		}
	}
	s, isRewritten := d.f.sum(answers), d.now != call.Arguments
	question := strings.Join(s.ask, "\n")
	seconds.Get(c.State()).set(thenAsk+call.ID, question, s.isAsked && isRewritten)
	switch {
	case s.isStopped:
		return c.Stop(s.stopReason, s.effects()...)
	case s.isBlocked:
		return c.Deny(s.reason(), s.effects()...)
	case s.isPutOff:
		return c.Stop("tool_deferred: "+d.there.Tool, s.effects()...)
	case isRewritten:
		return c.Rewrite(json.RawMessage(d.now), s.effects()...)
	case s.isAsked:
		return c.Ask(question, s.effects()...)
	case s.isAllowed || len(s.contexts) > 0:
		return c.Allow(s.effects()...)
	}
	return c.Pass()
}

// askAfterRewrite asks about a rewritten call, because one answer cannot do both.
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

// approveAfterRewrite approves a rewritten call.
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
