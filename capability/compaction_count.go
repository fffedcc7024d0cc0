package capability

import (
	"context"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
)

// compactKnown caches data about the messages that the model is shown in a run.
type compactKnown struct {
	mu sync.Mutex
	// latest is the newest view. The state has it only after its step is recorded.
	latest CompactedView
	// owed is the usage of summaries that no recorded step includes yet.
	owed *agent.Usage

	number int             // number of the view to which head, seen and tokens belong
	fitted bool            // whether this view was used
	head   []agent.Message // the messages that replace the older ones
	seen   int             // how many of the state's messages were measured
	last   agent.Message   // the last measured message
	tokens int64           // measured tokens in the shown messages
	// ratio is the service's number of tokens for each estimated token in the last reply. It is zero before the first
	// reply.
	ratio float64
}

// estimateTokens estimates one token for four bytes of text and arguments, four tokens for the message, and 1500 for an
// image or a file.
func estimateTokens(m agent.Message) int64 {
	bytes, lumps := 0, int64(0)
	for _, part := range m.Content().Parts() {
		bytes += len(part.Text) + len(part.Opaque)
		if part.Kind == agent.PartImage || part.Kind == agent.PartFile {
			lumps++
		}
	}
	for _, call := range m.Calls() {
		bytes += len(call.Name) + len(call.Arguments)
	}
	const each, lump, bytesOfToken = 4, 1500, 4
	return each + int64(bytes/bytesOfToken) + lumps*lump
}

// measure returns a message's unscaled number of tokens.
func (c *compactor) measure(m agent.Message) int64 {
	if c.Count != nil {
		return c.Count(m)
	}
	return estimateTokens(m)
}

func (c *compactor) measureAll(messages []agent.Message) (tokens int64) {
	for _, m := range messages {
		tokens += c.measure(m)
	}
	return tokens
}

// around estimates the number of tokens that are sent in addition to the messages.
func (c *compactor) around(s agent.State) int64 {
	if c.Count != nil {
		return 0
	}
	r := s.Request()
	bytes := len(r.Instructions)
	for _, tool := range r.Tools.All() {
		bytes += len(tool.Name) + len(tool.Description) + len(tool.Parameters)
	}
	return int64(bytes / 4)
}

// look measures the messages in s that the view shows, if the view belongs to these messages. Each message is measured
// once.
func (c *compactor) look(s agent.State, v CompactedView, fits bool, known *compactKnown) {
	n := s.MessageCount()
	stale := known.seen > n || known.seen > 0 && s.Message(known.seen-1) != known.last
	if stale || known.seen == 0 || known.number != v.Number || known.fitted != fits {
		known.number, known.fitted, known.seen, known.tokens, known.head = v.Number, fits, 0, 0, nil
		if fits {
			known.head, known.seen = v.headOf(s), v.From
			known.tokens = c.measureAll(known.head)
		}
	}
	for _, m := range s.MessagesFrom(known.seen) {
		known.tokens += c.measure(m)
	}
	if known.seen = n; n > 0 {
		known.last = s.Message(n - 1)
	}
}

// scaleTokens converts measured tokens to the service's count.
func (c *compactor) scaleTokens(tokens int64, known *compactKnown) int64 {
	if known.ratio == 0 || c.Count != nil {
		return tokens
	}
	return int64(float64(tokens) * known.ratio)
}

// calibrate sets the ratio from the input tokens that a reply reports. An estimate is off by a factor of less than
// four. A larger factor has another cause and is ignored.
func (c *compactor) calibrate(s agent.State, measured, counted int64) {
	if c.Count != nil || counted <= 0 || measured <= 0 {
		return
	}
	known := c.known.Get(s)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.ratio = min(max(float64(counted)/float64(measured), 0.25), 4)
}

// countTokens returns the driver's count of the tokens that it would send, or the given estimate if the driver does not
// count.
func (c *compactor) countTokens(ctx context.Context, s agent.State, messages []agent.Message, estimate int64) int64 {
	if c.counter == nil {
		return estimate
	}
	if messages != nil {
		s = s.WithView(messages...)
	}
	if n, err := c.counter.CountTokens(ctx, s); err == nil && n > 0 {
		return n
	}
	return estimate
}
