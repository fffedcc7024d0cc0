package action

import (
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/hooks"
)

// answer converts output to an Answer. At points that guard something, the whole output must be a complete decision. At
// points that can only stop a run, output that looks like a decision must be one; other text is output. Where no
// decision is needed, all text is output. Empty output and {} are invalid only where a coordinator's run waits for the
// decision.
func (r *Request) answer(kind, output string, truncated bool) (*Answer, error) {
	a := &Answer{Output: output, Truncated: truncated}
	if !r.Decides || !r.strict && !claims(output) {
		return a, nil
	}
	if d := refusal(r.Point, output); d != nil {
		a.Decision = d
		return a, nil
	}
	if truncated {
		return nil, newFault(kind, FaultTooMuch, "the output exceeds %d bytes, so it cannot be read as a decision", len(output))
	}
	d, err := blueprintDecision(r.Point, output)
	if d == nil && err == nil {
		d, err = ParseDecision([]byte(output))
	}
	if err != nil {
		return nil, newFault(kind, FaultAnswer, "%w; output: %s", err, excerpt(output))
	}
	if d == nil && decidesRun(r.Point) {
		return nil, missingDecision(kind, r.Point, output)
	}
	if d != nil && !slices.Contains(r.Decisions, d.Decision) {
		return nil, newFault(kind, FaultAnswer, "decision %s is not allowed at %s", d.Decision, r.Point)
	}
	a.Decision = d
	return a, nil
}

// claims reports whether text looks like a decision: an object with a decision's members.
func claims(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "{") && strings.Contains(text, `"decision"`)
}

// excerpt returns the beginning of a text for an error message.
func excerpt(text string) string {
	const most = 200
	text = strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
	if len(text) > most {
		return quote(truncateText(text, most)) + " …"
	}
	return quote(text)
}

// completeAnswer returns the answer from a person's or a process's complete output. It truncates output that is too
// long.
func (r *Request) completeAnswer(kind, output string) (*Answer, error) {
	short := truncateText(output, DefaultMaxBytes)
	return r.answer(kind, short, len(short) < len(output))
}

// verdict converts a person's approval or rejection to the first matching decision of the point. If the point has no
// decision that rejects, a rejection is an error.
func (r *Request) verdict(kind string, yes bool, reason, output string) (*Answer, error) {
	a := &Answer{Output: output}
	words := []hooks.Decision{hooks.Allow}
	switch {
	case !yes && r.ContinuationsLeft != nil && *r.ContinuationsLeft > 0:
		words = []hooks.Decision{hooks.Continue} // a rejection continues the run
	case !yes:
		words = []hooks.Decision{hooks.Deny, hooks.Withhold, hooks.StopRun}
	case kind == Gate{}.Type():
		words = []hooks.Decision{hooks.Approve, hooks.Allow} // the person who opens a gate need not be asked again
	}
	if r.Decides {
		for _, word := range words {
			if slices.Contains(r.Decisions, word) {
				a.Decision = &Decision{Decision: word, Reason: reason}
				return a, nil
			}
		}
	}
	if !yes {
		return nil, newFault(kind, FaultExit, "rejected, but %s allows no decision to express that: %s", r.Point, quote(reason))
	}
	return a, nil
}
