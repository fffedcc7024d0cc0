package continuation

import (
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
)

// failure describes a step's failure for an ErrorPolicy.
type failure struct {
	kind     agent.ErrorKind
	handling Handling
	tool     string // empty when no tool failed
	text     string
}

// worst returns the failure that determines how the step is handled. It is the step's own failure or, if only tools
// failed, the failure of the first tool with the strictest handling.
func (p ErrorPolicy) worst(step agent.StepRecord) (worst failure, failed bool) {
	broken := step.Failure()
	if broken == nil && step.ToolFailures() == 0 {
		return failure{}, false
	}
	for _, result := range step.Results() {
		if result.Status != agent.ToolFailed {
			continue
		}
		kind := kindOf(result)
		f := failure{kind: kind, handling: p.of(kind), tool: result.Tool(), text: result.Text()}
		if !failed || f.handling < worst.handling {
			worst, failed = f, true
		}
	}
	if broken != nil {
		worst.kind, worst.handling, worst.text = broken.Kind, p.of(broken.Kind), broken.Text
	}
	return worst, true
}

// kindOf returns the kind of a tool's failure. A state that was read from JSON has no error, only the reason.
func kindOf(result agent.ToolResult) agent.ErrorKind {
	if kind := agent.KindOf(result.Err); kind != agent.KindUnknown && kind != agent.KindCancelled { // an error within the tool
		return kind
	}
	if result.Reason == agent.ReasonTimeout {
		return agent.KindTimeout
	}
	return agent.KindTool
}

// message returns a sentence for the stop signal. For a tool it contains the text that the model was shown, which hooks
// have reviewed, and not the error itself.
func (f failure) message(inARow int) string {
	what := "the step failed"
	if f.tool != "" {
		what = fmt.Sprintf("tool %q failed", f.tool)
	}
	if inARow > 1 {
		what = fmt.Sprintf("%d steps in a row failed, at last %s", inARow, what)
	}
	return what + ": " + cutText(f.text)
}

// cutText shortens a text for a message.
func cutText(text string) string {
	const most = 300
	runes := 0
	for i := range text {
		if runes++; runes > most {
			return text[:i] + "…"
		}
	}
	return text
}
