package capability

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// The defaults of UseCompaction.
const (
	defaultCompactTokens  = 100_000
	defaultCompactKeep    = 20
	defaultSummaryTokens  = 2_000
	defaultSummaryTimeout = 2 * time.Minute
)

// UseCompaction shortens a long conversation for the model: it replaces the older part by a summary. The transcript
// does not change, only the messages that the model is shown. Between two compactions the shown messages keep their
// beginning, so that a provider's prompt cache stays useful.
//
// After a compaction the model is shown, in this order:
//
//   - the older part's system messages and, if it is in that part, the user's newest message, all unchanged
//   - the summary, as a message with role user and the source "compaction"
//   - the newer part, unchanged
//
// A call and its answers are never separated. Messages that the model has not seen yet are never summarized. The next
// compaction summarizes the summary and the messages after it.
//
// If a summary fails, or a hook at PreCompact denies it, nothing changes and the run continues. The next attempt is
// made when the shown messages have grown by a quarter. The hooks at CompactFailed and the CompactionFailed event
// receive the reason.
//
// The zero UseCompaction starts at three quarters of the context size that the driver reports, or at 100,000 tokens,
// and asks the agent's own model.
type UseCompaction struct {
	// Tokens is the number of shown tokens above which there is a compaction. Zero sets no limit, unless Messages is
	// zero, too.
	Tokens int64
	// Messages is the number of shown messages above which there is a compaction. Zero sets no limit.
	Messages int
	// Keep is the maximum number of messages at the end that stay unchanged. Zero means 20, or half of Messages if that
	// is less.
	Keep int
	// KeepTokens is the maximum number of tokens at the end that stay unchanged. Zero means a quarter of Tokens, and no
	// limit if Tokens has none. The last reply and the answers to its calls always stay.
	KeepTokens int64

	// Driver asks the model that writes the summary. Nil means the agent's own driver, with inner wrappers such as a
	// fallback.
	Driver agent.Driver
	// Model names the model. Empty means Driver's default or, with the agent's own driver, the agent's model.
	Model string
	// Instructions are the instructions for that model. Empty means this package's instructions.
	Instructions string
	// SummaryTokens limits the summary's length. The rest is cut off. Zero means 2,000.
	SummaryTokens int
	// Summarize writes the summary instead of a model. It receives the messages that will no longer be shown, in order,
	// including an earlier summary. It must be safe for concurrent use. After an error or a panic the compaction fails.
	Summarize func(ctx context.Context, s agent.State, messages []agent.Message) (string, error)
	// Timeout is how long a summary may take. Zero means two minutes.
	Timeout time.Duration

	// Count returns a message's number of tokens, and replaces all other counting. It must be safe for concurrent use
	// and deterministic. Nil means the driver's count if it is a TokenCounter, and an estimate otherwise.
	Count func(agent.Message) int64
	// NoRescue disables the compaction after a model call that failed because the messages were too long. If it is
	// false, the call is repeated after a compaction, unless pieces of a reply were already emitted.
	NoRescue bool
}

// A TokenCounter is a Driver that can count the tokens that it would send for a state: messages, instructions and
// tools. It can ask its service. It must be safe for concurrent use.
type TokenCounter interface {
	agent.Driver
	CountTokens(ctx context.Context, s agent.State) (int64, error)
}

// Name returns "compaction": an agent can have only one.
func (UseCompaction) Name() string { return compactionName }

const compactionName = "compaction"

// Install puts the compaction around the driver, inside the hooks, so that a summary omits the text that they removed
// at PreInference.
func (u UseCompaction) Install(p Plan) mo.Result[Plan] {
	if err := u.check(); err != nil {
		return mo.Err[Plan](err)
	}
	driver := p.Driver()
	return mo.Ok(p.withPoints(compactionPoints...).WrapDriver(Inside, u.Name(), func(inner agent.Driver) agent.Driver {
		c := &compactor{UseCompaction: u.withDefaults(inner), known: agent.NewScratch[compactKnown](nil)}
		c.ask = cmp.Or[agent.Driver](u.Driver, inner)
		for _, d := range []agent.Driver{inner, driver} {
			if counter, ok := d.(TokenCounter); ok && c.counter == nil && u.Count == nil {
				c.counter = counter
			}
		}
		return compacting{c, inner}
	}))
}

func (u UseCompaction) withDefaults(inner agent.Driver) UseCompaction {
	if u.Tokens == 0 && u.Messages == 0 {
		u.Tokens = cmp.Or(agent.FeaturesOf(inner).ContextTokens/4*3, defaultCompactTokens)
	}
	if u.Keep == 0 {
		u.Keep = defaultCompactKeep
		if u.Messages > 0 {
			u.Keep = min(u.Keep, u.Messages/2)
		}
	}
	u.KeepTokens = cmp.Or(u.KeepTokens, u.Tokens/4)
	u.SummaryTokens = cmp.Or(u.SummaryTokens, defaultSummaryTokens)
	u.Timeout = cmp.Or(u.Timeout, defaultSummaryTimeout)
	u.Instructions = cmp.Or(u.Instructions, summaryInstructions)
	return u
}

func (u UseCompaction) check() error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"the limit of tokens", u.Tokens}, {"the limit of messages", int64(u.Messages)}, {"the messages to keep", int64(u.Keep)},
		{"the tokens to keep", u.KeepTokens}, {"the tokens of a summary", int64(u.SummaryTokens)}, {"the timeout", int64(u.Timeout)},
	} {
		if limit.value < 0 {
			say("%s is %d: it must not be negative, and zero means the default", limit.name, limit.value)
		}
	}
	if u.Messages > 0 && u.Messages < 4 {
		say("the limit of messages is %d: it must be at least four, for a call, its answer, the user's message and a summary", u.Messages)
	}
	if u.Messages > 0 && u.Keep >= u.Messages {
		say("the limit of messages is %d and the newest %d are kept: keep fewer, otherwise there is nothing to summarise", u.Messages, u.Keep)
	}
	if u.Tokens > 0 && u.KeepTokens >= u.Tokens {
		say("the limit of tokens is %d and the newest %d are kept: keep fewer, otherwise there is nothing to summarise", u.Tokens, u.KeepTokens)
	}
	if u.Summarize != nil && (u.Driver != nil || u.Model != "" || u.Instructions != "") {
		say("set either Summarize, or Driver, Model and Instructions, but not both")
	}
	return errors.Join(wrong...)
}
