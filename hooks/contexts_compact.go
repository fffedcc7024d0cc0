package hooks

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
)

// Compaction is what is known of a compaction: part of the transcript is about to be, or
// was, put in other words for the model. The transcript itself stays as it is.
type Compaction struct {
	// ID names the compaction.
	ID string
	// Messages and Tokens are what the model would be shown without it. Tokens are as
	// the driver counts them, or an estimate.
	Messages int
	Tokens   int64
	// MessagesAfter is what the model is shown in place of them, and Summary what it is
	// told of what is gone. Set once it was done.
	MessagesAfter int
	Summary       string
	// Err is why it failed; nil unless it did.
	Err error
}

// compactView is what the points of compaction have in common.
type compactView struct {
	contextView
	about Compaction
}

// Compaction returns what is known of it.
func (c compactView) Compaction() Compaction { return c.about }

// PreCompactContext is the context of AtPreCompact.
type PreCompactContext struct{ compactView }

// Allow lets it happen.
func (c PreCompactContext) Allow() Result { return c.allowWith(nil) }

// Deny lets the model see the messages as they are.
func (c PreCompactContext) Deny(reason string) Result {
	return c.newAnswer(Outcome{decision: Deny, reason: reason}, nil)
}

// PostCompactContext is the context of AtPostCompact.
type PostCompactContext struct{ compactView }

// CompactFailedContext is the context of AtCompactFailed.
type CompactFailedContext struct{ compactView }

// Err returns why it failed.
func (c CompactFailedContext) Err() error { return c.about.Err }

// current is the hooks of a run, for middleware that has points of its own.
var current = agent.NewScratch[struct{ hooks *Compiled }](nil)

// Of returns the hooks that stand around the run of s; nil when there are none. Its methods
// that fire a point do nothing on nil.
func Of(s agent.State) *Compiled { return current.Get(s).hooks }

// PreCompact asks the hooks at PreCompact whether a compaction may be done. It is not to
// be done when one says no, or cannot decide: denied names it and says why. The error is
// of a hook whose failure aborts the run, or of ctx.
func (c *Compiled) PreCompact(ctx context.Context, s agent.State, about Compaction) (denied error, err error) {
	if c == nil || c.preCompact.empty() {
		return nil, nil
	}
	var last *Outcome
	view := func(frozen *Outcome) PreCompactContext {
		return PreCompactContext{compactView{contextView{state: s, info: preCompact, frozen: frozen}, about}}
	}
	for _, e := range c.preCompact.controls {
		o, err := e.consult(ctx, view(nil))
		if err != nil {
			return nil, err
		}
		if o == nil {
			continue
		}
		last = o
		if o.decision == Deny {
			denied = &DeniedError{Tool: "compaction", Hook: o.hook, Reason: o.reason, Failed: o.failed}
			break
		}
	}
	return denied, c.preCompact.announce(ctx, c.pool, view(last))
}

// PostCompact tells the hooks at PostCompact. Nothing that they do changes the compaction.
func (c *Compiled) PostCompact(ctx context.Context, s agent.State, about Compaction) {
	if c != nil && !c.postCompact.empty() {
		_ = c.postCompact.announce(ctx, c.pool, PostCompactContext{compactView{contextView{state: s, info: postCompact}, about}})
	}
}

// CompactFailed tells the hooks at CompactFailed; about.Err says why. Nothing that they do
// changes the run.
func (c *Compiled) CompactFailed(ctx context.Context, s agent.State, about Compaction) {
	if c != nil && !c.compactFailed.empty() {
		_ = c.compactFailed.announce(ctx, c.pool, CompactFailedContext{compactView{contextView{state: s, info: compactFailed}, about}})
	}
}

// The points of compaction.
var (
	preCompact, _    = infoOf(PreCompact)
	postCompact, _   = infoOf(PostCompact)
	compactFailed, _ = infoOf(CompactFailed)
)
