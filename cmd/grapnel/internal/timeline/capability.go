package timeline

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
)

// capability shows an event of a capability.
func (t *Timeline) capability(e agent.Event) {
	say := func(look style, mark, format string, args ...any) {
		t.paper.line(2, look, mark, look, fmt.Sprintf(format, args...))
	}
	switch e := e.(type) {
	case capability.CompactionCompleted:
		say(dim, "⇊", "older messages are summarized: %s become %d, %s tokens %s%s",
			Plural(e.MessagesBefore, "message"), e.MessagesAfter, groupDigits(e.TokensBefore), groupDigits(e.TokensAfter), used(e.Usage))
	case capability.CompactionFailed:
		say(yellow, "!", "older messages could not be summarized; the model sees all %s: %s%s",
			Plural(e.Messages, "message"), OneLine(e.Failure.Text), used(e.Usage))
	case capability.SubagentStarted:
		say(cyan, "↳", "%s begins", describeRun(e.Subagent))
	case capability.SubagentParked:
		say(yellow, "↳", "%s waits for a person", describeRun(e.Subagent))
	case capability.SubagentResumed:
		say(cyan, "↳", "%s goes on", describeRun(e.Subagent))
	case capability.SubagentCompleted:
		look, why := dim, ""
		if e.Err != nil {
			look, why = red, describeReason(e.Err.Error())
		}
		say(look, "↳", "%s: %s%s%s", describeRun(e.Subagent), e.Status, why, used(e.Usage))
	case kit.FellBack:
		say(yellow, "⤳", "%s failed: %s; asking %s", place(e.From, e.FromModel), OneLine(e.Err.Error()), place(e.To, e.ToModel))
	case kit.ContextEdited:
		say(dim, "⇊", "%s no longer shown: %s tokens become %s", Plural(e.Results, "old result"), groupDigits(e.Before), groupDigits(e.After))
	case kit.Selected:
		if e.Err != nil {
			say(yellow, "!", "no tools could be selected; the model sees all of them: %s", OneLine(e.Err.Error()))
			return
		}
		say(dim, "⊂", "the model sees %s; %d more are hidden", cmp.Or(OneLine(strings.Join(e.Tools, ", ")), "no tool"), e.Hidden)
	}
}

func describeRun(r agent.Run) string { return cmp.Or(OneLine(r.Agent), "a sub-agent") }

// place returns the model at an index of a list of models.
func place(i int, model string) string {
	return cmp.Or(OneLine(model), fmt.Sprintf("model %d", i+1))
}

// used returns the usage of an operation as the end of a line.
func used(u agent.Usage) string {
	if text := formatUsage(u); text != "" {
		return " · " + text
	}
	return ""
}
