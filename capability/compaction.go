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

// What a UseCompaction that says nothing means.
const (
	defaultCompactTokens  = 100_000
	defaultCompactKeep    = 20
	defaultSummaryTokens  = 2_000
	defaultSummaryTimeout = 2 * time.Minute
)

// UseCompaction puts the older part of a long conversation in other words for the
// model: in its place the model is shown a summary. The transcript stays as it is,
// whole: only what the model is shown changes, and only when there is a compaction,
// so that what a provider has cached of the prompt is of use in between.
//
// What is shown afterwards is, in this order: the system messages of the older part
// and the newest message of the user, if it is there, both word for word; the summary,
// as a message of role user with the source "compaction"; and the newer part as it is.
// A call and its answers are on the same side, and what the model has not seen yet is
// never summarised. The next compaction summarises the summary and what came since.
//
// A summary that fails, or that a hook at PreCompact denies, leaves everything as it
// was, and the run goes on; another try comes when there is a quarter more. The hooks
// at CompactFailed and the CompactionFailed event say why.
//
// The zero UseCompaction begins at three quarters of what the driver says that its
// model reads, or at 100,000 tokens, and asks the agent's own model.
type UseCompaction struct {
	// Tokens is how much the model is shown before there is a compaction. Zero sets no
	// limit, unless Messages is zero, too.
	Tokens int64
	// Messages is how many messages the model is shown before there is one. Zero sets
	// no limit.
	Messages int
	// Keep is how many messages at the end stay as they are, at most. Zero means 20,
	// or half of Messages where that is less.
	Keep int
	// KeepTokens is how many tokens at the end stay, at most. Zero means a quarter of
	// Tokens, and no limit where Tokens has none. The last reply and the answers to its
	// calls stay, however long.
	KeepTokens int64

	// Driver asks the model that writes the summary. Nil means the agent's own, with
	// what stands further in, such as a fallback.
	Driver agent.Driver
	// Model is the model that is asked. Empty means the default of Driver, or what the
	// agent's model calls ask where that is the agent's own.
	Model string
	// Instructions are what that model is told to do. Empty means those of this package.
	Instructions string
	// SummaryTokens is how long the summary may be; more is cut off. Zero means 2,000.
	SummaryTokens int
	// Summarize writes the summary in the place of a model. It is given what is no
	// longer to be shown, in order, an earlier summary included, and must be safe for
	// concurrent use. An error or a panic is a summary that fails.
	Summarize func(ctx context.Context, s agent.State, messages []agent.Message) (string, error)
	// Timeout is how long a summary may take. Zero means two minutes.
	Timeout time.Duration

	// Count says how many tokens a message has, in the place of all other counting. It
	// must be safe for concurrent use and say the same each time. Nil means the counting
	// of the driver, if it is a TokenCounter, and an estimate otherwise.
	Count func(agent.Message) int64
	// NoRescue leaves a model call failed that failed because the messages were too long
	// for the model. Otherwise there is one compaction, and the call is made again,
	// unless pieces of a reply were told already.
	NoRescue bool
}

// TokenCounter is a Driver that can tell how many tokens it would send for a state:
// messages, instructions and tools. It may ask its service. It must be safe for
// concurrent use.
type TokenCounter interface {
	agent.Driver
	CountTokens(ctx context.Context, s agent.State) mo.Result[int64]
}

// Name returns "compaction": an agent has one.
func (UseCompaction) Name() string { return compactionName }

const compactionName = "compaction"

// Install puts the compaction around the driver, inside of the hooks: what they took
// out at PreInference is in no summary.
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
		u.Tokens = cmp.Or(agent.FeaturesOf(inner).OrEmpty().ContextTokens/4*3, defaultCompactTokens)
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
			say("%s: %d is less than zero: give a number, or zero for the default", limit.name, limit.value)
		}
	}
	if u.Messages > 0 && u.Messages < 4 {
		say("the limit of messages is %d: a call, its answer, the user's message and a summary are four already", u.Messages)
	}
	if u.Messages > 0 && u.Keep >= u.Messages {
		say("the limit of messages is %d and the newest %d are kept: keep fewer, or there is nothing to summarise", u.Messages, u.Keep)
	}
	if u.Tokens > 0 && u.KeepTokens >= u.Tokens {
		say("the limit of tokens is %d and the newest %d are kept: keep fewer, or there is nothing to summarise", u.Tokens, u.KeepTokens)
	}
	if u.Summarize != nil && (u.Driver != nil || u.Model != "" || u.Instructions != "") {
		say("who writes the summary is not clear: give either Summarize or a Driver, Model and Instructions")
	}
	return errors.Join(wrong...)
}
