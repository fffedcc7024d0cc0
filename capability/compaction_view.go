package capability

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// CompactedView records the last compaction in the session's metadata, under the name "compaction". It describes the
// messages that replace the first From messages for the model. The zero view means that there was no compaction.
type CompactedView struct {
	// ID names the compaction. It is empty before the first one.
	ID string `json:"id,omitempty"`
	// From is the index of the first message that is shown unchanged.
	From int `json:"from,omitempty"`
	// Kept are the indices of earlier messages that are shown unchanged.
	Kept []int `json:"kept,omitempty"`
	// Summary replaces the other messages.
	Summary string `json:"summary,omitempty"`
	// Anchor identifies the messages that the summary replaces.
	Anchor string `json:"anchor,omitempty"`

	// Number counts the attempts in the session, including failed ones.
	Number int `json:"number"`
	// Tokens and Messages are the size of the view at the last attempt.
	Tokens   int64 `json:"tokens"`
	Messages int   `json:"messages"`
	// NextTokens and NextMessages are the size at which the next attempt is made.
	NextTokens   int64 `json:"next_tokens"`
	NextMessages int   `json:"next_messages"`
}

var compactedKey = agent.SessionKey[CompactedView](compactionName)

// CompactedIn returns the record of the last compaction in s, or the zero CompactedView when there was none.
func CompactedIn(s agent.State) CompactedView {
	v, _ := compactedKey.From(s)
	return lo.Ternary(v.From > 0, v, CompactedView{})
}

// summaryMessage returns the message with a summary for the model.
func summaryMessage(summary string) agent.Message {
	const intro = "Here is a summary of the earlier part of this conversation, which is no longer shown. " +
		"It is a record of what was said and done, not a new request: go on from where it ends.\n\n"
	return agent.UserText(intro + "<summary>\n" + summary + "\n</summary>").WithSource(compactionName)
}

// anchorOf returns a hash that identifies a list of messages whose first n a summary replaces. For a tool's answer the
// hash includes only the call ID, because the content can be edited later.
func anchorOf(s agent.State, n int) string {
	const enough = 4096
	h := fnv.New64a()
	for _, i := range []int{0, n - 1} {
		m := s.Message(i)
		fmt.Fprintf(h, "%s %q %q\n", m.Role(), m.CallID(), m.Tool())
		if m.Role() != agent.RoleTool {
			text := m.Text()
			fmt.Fprintf(h, "%d %s\n", len(text), text[:min(len(text), enough)])
		}
		for _, c := range m.Calls() {
			fmt.Fprintf(h, "%q %q\n", c.ID, c.Name)
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// fits reports whether the view belongs to the messages in s. It does not if hooks have replaced the transcript.
func (v CompactedView) fits(s agent.State) bool {
	return v.From > 0 && v.From <= s.MessageCount() && anchorOf(s, v.From) == v.Anchor
}

// shownList is the list of the state's messages that the model is shown. The head replaces the state's messages before
// from.
type shownList struct {
	messages []agent.Message
	kept     []int // the state's index of each head message except the last
	head     int
	from     int
}

// headOf returns the messages that replace the messages before v.From.
func (v CompactedView) headOf(s agent.State) []agent.Message {
	head := make([]agent.Message, 0, len(v.Kept)+1)
	for _, i := range v.Kept {
		head = append(head, s.Message(i))
	}
	return append(head, summaryMessage(v.Summary))
}

// list returns the messages in s that the model is shown, after the given head.
func (v CompactedView) list(s agent.State, head []agent.Message) shownList {
	l := shownList{slices.Grow(slices.Clone(head), s.MessageCount()-v.From), v.Kept, len(head), v.From}
	for _, m := range s.MessagesFrom(v.From) {
		l.messages = append(l.messages, m)
	}
	return l
}

// at returns the state's index of message i. Ok is false for a summary.
func (l shownList) at(i int) (index int, ok bool) {
	switch {
	case i >= l.head:
		return l.from + i - l.head, true
	case i < len(l.kept):
		return l.kept[i], true
	}
	return 0, false
}

// part is a list cut in two.
type part struct {
	cut     int             // index of the first message that is shown unchanged
	kept    []int           // unchanged messages before it, by their index in the state
	summary []agent.Message // the other messages, to be summarised
	fresh   int             // how many of them are not a summary
}

// cut returns the best position to cut the list. Ok is false when a cut would not save anything. After the cut there
// are at most keep messages and keepTokens tokens, but at least the last reply and everything after it.
func (l shownList) cut(keep int, keepTokens int64, count func(agent.Message) int64) (p part, ok bool) {
	must := 0
	for i, m := range slices.Backward(l.messages) {
		if m.Role() == agent.RoleAssistant {
			must = i
			break
		}
	}
	open := map[string]int{} // calls before message i whose answers are at or after i
	var tokens int64
	for i, m := range slices.Backward(l.messages) {
		tokens += count(m)
		if p.cut > 0 && (i < l.head || len(l.messages)-i > keep || keepTokens > 0 && tokens > keepTokens) {
			break
		}
		if m.Role() == agent.RoleTool {
			open[m.CallID()]++
		}
		for _, c := range m.Calls() {
			if open[c.ID]--; open[c.ID] <= 0 {
				delete(open, c.ID)
			}
		}
		if i <= must && len(open) == 0 {
			p.cut = i
		}
	}
	return l.parted(p)
}

// parted sets the fields of p that describe the messages before the cut.
func (l shownList) parted(p part) (_ part, ok bool) {
	user := -1
	for i, m := range slices.Backward(l.messages) {
		if m.Role() == agent.RoleUser && m.Source() == "" {
			user = i
			break
		}
	}
	for i, m := range l.messages[:p.cut] {
		index, original := l.at(i)
		switch {
		case original && (i == user || m.Role() == agent.RoleSystem):
			p.kept = append(p.kept, index)
			continue
		case original:
			p.fresh++
		}
		p.summary = append(p.summary, m)
	}
	return p, p.fresh > 0
}
