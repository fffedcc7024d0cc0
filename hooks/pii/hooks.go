package pii

import (
	"context"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Results returns the hook at PostToolUse, "pii", that filters every text that results from a tool call: see
// hooks.ToolResultContext.Filter. A result with a blocked text is withheld.
func (f *Filter) Results() hooks.Hook {
	return hooks.On(hooks.AtPostToolUse, "pii", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
		result := c.Result()
		replace := f.filter(ctx, Report{Run: c.Run(), Point: c.Point(), Tool: c.Tool(), CallID: result.CallID()}, result.Content, result.Err)
		return c.FilterOrWithhold(func(text string) (string, error) {
			after, blocked := replace(text)
			if blocked != "" {
				return "", fmt.Errorf("the result contains personal data: %s", blocked)
			}
			return after, nil
		})
	}).WithPriority(hooks.PriorityGuard)
}

// Input returns the hook at InputSubmitted, "pii.input", that filters user input. A blocked input is denied.
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

// Replies returns the hook at PostInference, "pii.replies", that filters every text in a model's reply, including tool
// calls' arguments: see hooks.ReplyContext.Filter. A note replaces a blocked text.
func (f *Filter) Replies() hooks.Hook {
	return hooks.On(hooks.AtPostInference, "pii.replies", func(ctx context.Context, c hooks.ReplyContext) hooks.Result {
		replace := f.filter(ctx, Report{Run: c.Run(), Point: c.Point()}, c.Reply().Message.Content(), c.Err())
		return c.Filter(func(text string) string {
			after, blocked := replace(text)
			if blocked != "" {
				return fmt.Sprintf("[withheld: the reply has personal data in it: %s]", blocked)
			}
			return after
		})
	}).WithPriority(hooks.PriorityGuard)
}

// filter returns a func that removes personal data from a text and returns the kinds that block it. Told gets one
// report: about the content if it has a finding, otherwise about the error, otherwise about the first text with a
// finding.
func (f *Filter) filter(ctx context.Context, about Report, content agent.Content, err error) func(string) (after, blocked string) {
	if f.told != nil {
		_, about.Counts = f.Content(content)
		if len(about.Counts) == 0 && err != nil {
			_, about.Counts = f.Text(fmt.Sprint(err))
		}
		f.tell(ctx, about)
	}
	return func(text string) (string, string) {
		after, counts := f.Text(text)
		if len(about.Counts) == 0 {
			about.Counts = counts
			f.tell(ctx, about)
		}
		return after, f.blocking(counts)
	}
}

// tell reports the findings to Told. It returns the kinds that block, or the empty string.
func (f *Filter) tell(ctx context.Context, r Report) (blocked string) {
	if blocked = f.blocking(r.Counts); f.told != nil && len(r.Counts) > 0 {
		r.Blocked = blocked != ""
		f.told(ctx, r)
	}
	return blocked
}

// blocking returns a list of the found kinds that block the text.
func (f *Filter) blocking(counts Counts) string {
	return strings.ToUpper(strings.Join(f.blockedKinds(counts), ", "))
}
