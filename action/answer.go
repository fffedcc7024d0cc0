package action

import (
	"strings"
)

// answer makes an Answer of what was said. Where it guards something, all that is said must be a decision, and whole; at
// points that can only stop a run, what looks like a decision must be one, and other text is output; where nothing is
// asked, text is text.
func (r *Request) answer(kind, output string, truncated bool) (*Answer, error) {
	a := &Answer{Output: output, Truncated: truncated}
	if !r.Decides || !r.strict && !claims(output) {
		return a, nil
	}
	if truncated {
		return nil, failf(kind, FaultTooMuch, "it said more than the %d bytes that are kept, so that it cannot be read as a decision", len(output))
	}
	d, err := ParseDecision([]byte(output))
	if err != nil {
		return nil, failf(kind, FaultOutput, "%w; it said: %s", err, excerpt(output))
	}
	a.Decision = d
	return a, nil
}

// claims reports whether a text wants to be a decision: an object that speaks of one.
func claims(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "{") && strings.Contains(text, `"decision"`)
}

// excerpt is the beginning of a text, for an error.
func excerpt(text string) string {
	const most = 200
	text = strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
	if len(text) > most {
		return quote(beginning(text, most)) + " …"
	}
	return quote(text)
}

// kept is the answer of somebody whose whole output is there: what is too long is cut.
func (r *Request) kept(kind, output string) (*Answer, error) {
	short := beginning(output, DefaultMaxBytes)
	return r.answer(kind, short, len(short) < len(output))
}
