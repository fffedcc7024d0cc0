package pii

import (
	"context"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Results is the hook at PostToolUse, "pii", that looks at the results of tools. A blocked one is withheld.
func (f *Filter) Results() hooks.Hook {
	return hooks.On(hooks.AtPostToolUse, "pii", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
		result := c.Result()
		content, counts := f.Content(result.Content)
		if len(counts) == 0 && result.Err != nil { // it may say more than the content; what is replaced takes it along
			_, counts = f.Text(result.Err.Error())
		}
		if len(counts) == 0 {
			return c.Pass()
		}
		if kinds := f.tell(ctx, Report{Run: c.Run(), Point: c.Point(), Tool: c.Tool(), CallID: result.CallID(), Counts: counts}); kinds != "" {
			return c.Withhold("the result has personal data in it: " + kinds)
		}
		return c.ReplaceContent(content)
	}).WithPriority(hooks.PriorityGuard)
}

// Input is the hook at InputSubmitted, "pii.input", that looks at what the user sends. A blocked input is denied.
func (f *Filter) Input() hooks.Hook {
	return hooks.On(hooks.AtInputSubmitted, "pii.input", func(ctx context.Context, c hooks.InputContext) hooks.Result {
		counts := Counts{}
		walker := f.walker(counts)
		var messages []agent.Message
		for _, m := range c.Messages() {
			messages = append(messages, m.WithContent(walker.Content(m.Content())))
		}
		if len(counts) == 0 {
			return c.Pass()
		}
		if kinds := f.tell(ctx, Report{Run: c.Run(), Point: c.Point(), Counts: counts}); kinds != "" {
			return c.Deny(fmt.Sprintf("the input has personal data in it: %s; send it without", kinds))
		}
		return c.Rewrite(messages)
	}).WithPriority(hooks.PriorityGuard)
}

// Replies is the hook at PostInference, "pii.replies", that looks at what the model says. Of a blocked reply, what it says
// is replaced by a note; what it calls stays.
func (f *Filter) Replies() hooks.Hook {
	return hooks.On(hooks.AtPostInference, "pii.replies", func(ctx context.Context, c hooks.ReplyContext) hooks.Result {
		counts := Counts{}
		walker := f.walker(counts)
		reply := c.Reply()
		var parts []agent.Part
		for _, p := range reply.Message.Content().Parts() {
			if p.Kind != agent.PartReasoning { // its service wants it back as it was
				p = walker.Part(p)
			}
			parts = append(parts, p)
		}
		if len(counts) == 0 {
			return c.Pass()
		}
		if kinds := f.tell(ctx, Report{Run: c.Run(), Point: c.Point(), Counts: counts}); kinds != "" {
			return c.ReplaceText(fmt.Sprintf("[withheld: the reply has personal data in it: %s]", kinds))
		}
		reply.Message = reply.Message.WithContent(agent.ContentOf(parts...))
		return c.Replace(reply)
	}).WithPriority(hooks.PriorityGuard)
}

// tell tells of what was found, and is the kinds that are a reason to block; empty when there are none.
func (f *Filter) tell(ctx context.Context, r Report) (blocked string) {
	kinds := f.blocked(r.Counts)
	if r.Blocked = len(kinds) > 0; f.told != nil {
		f.told(ctx, r)
	}
	return strings.ToUpper(strings.Join(kinds, ", "))
}
