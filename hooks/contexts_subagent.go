package hooks

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Subagent is what is known of the run of a sub-agent, by the run that starts it.
type Subagent struct {
	// Agent is the name of the sub-agent, and Instruction what it is told to do.
	Agent       string
	Instruction string
	// CallID is the id of the tool call that starts it.
	CallID string
	// Run is the run of the sub-agent: its ids, its session and its depth. Started is zero until it has begun.
	Run agent.Run
	// Result is what it answered; Status how its run ended. Set once it has.
	Result string
	Status agent.Status
	// Took is how long that took.
	Took time.Duration
	// Err is why it failed; nil unless it did.
	Err error
}

// subagentView is what the points of a sub-agent have in common.
type subagentView struct {
	contextView
	about Subagent
	held  *heldEvents // nil where no filter applies
}

// Subagent returns what is known of it.
func (c subagentView) Subagent() Subagent { return c.about }

// where returns no index: sub-agents are started by parallel calls, whose hooks must not
// share a context.
func (c subagentView) where() (agent.State, int) { return c.state, -1 }

// PreSubagentContext is the context of AtPreSubagent.
type PreSubagentContext struct{ subagentView }

// Allow lets it happen.
func (c PreSubagentContext) Allow() Result { return c.allowWith(nil) }

// Deny keeps the sub-agent from running: its call fails, and the model is told why.
func (c PreSubagentContext) Deny(reason string) Result {
	return c.newAnswer(Outcome{decision: Deny, reason: reason}, nil)
}

// Rewrite gives the sub-agent another instruction.
func (c PreSubagentContext) Rewrite(instruction string) Result {
	return c.newAnswer(Outcome{decision: Rewrite, arguments: instruction}, nil)
}

// PostSubagentContext is the context of AtPostSubagent.
type PostSubagentContext struct{ subagentView }

// Allow lets the answer stand.
func (c PostSubagentContext) Allow() Result { return c.allowWith(nil) }

// Replace puts another text in the place of what the sub-agent answered.
func (c PostSubagentContext) Replace(text string) Result {
	content := agent.TextContent(text)
	return c.newAnswer(Outcome{decision: Replace, content: &content}, nil)
}

// Filter applies f to every text that leaves the point: the answer, or the error of a
// sub-agent that gave none. Of a text that is JSON, f also gets each string as it reads.
// It must leave alone what it has no business with, and may be called again for what it
// returned; should it panic, the answer is withheld.
func (c PostSubagentContext) Filter(f func(text string) string) Result {
	return c.newAnswer(filterOutcome(f), nil)
}

// FilterOrWithhold works like Filter with a func that can also say that a text must not leave at
// all: then the answer is withheld, and the error is the reason that is told.
func (c PostSubagentContext) FilterOrWithhold(f func(text string) (string, error)) Result {
	return c.newAnswer(Outcome{decision: Filter, filter: f, invalid: missingFilter(f == nil)}, nil)
}

// Tell tells the observer of the run of something about a hook, when all controls were
// asked, and as their filters leave it.
func (c PostSubagentContext) Tell(ctx context.Context, e Event) {
	if e.Shadow && e.Decision == Filter {
		e = e.withFilter(e.Outcome.wouldChange(func(l filters) { l.filterEach(c.about.Result); _ = l.filterError(c.about.Err) }))
	}
	c.held.holdOrSend(ctx, c.state, e)
}

// Withhold keeps the answer from the model, which is told why.
func (c PostSubagentContext) Withhold(reason string) Result {
	return c.newAnswer(Outcome{decision: Withhold, reason: reason}, nil)
}

// SubagentFailedContext is the context of AtSubagentFailed.
type SubagentFailedContext struct{ subagentView }

// Err returns why it failed.
func (c SubagentFailedContext) Err() error { return c.about.Err }

// The points of a sub-agent.
var (
	preSubagent, _    = infoOf(PreSubagent)
	postSubagent, _   = infoOf(PostSubagent)
	subagentFailed, _ = infoOf(SubagentFailed)
)

// PreSubagent asks the hooks at PreSubagent, of the run that starts a sub-agent. The
// instruction is what they left of it. It is not to run when denied is set. The error is
// of a hook whose failure aborts the run, or of ctx.
func (c *Compiled) PreSubagent(ctx context.Context, s agent.State, about Subagent) (instruction string, denied error, err error) {
	instruction = about.Instruction
	if c == nil || c.preSubagent.empty() {
		return instruction, nil, nil
	}
	d := deliberation[judgedText]{now: judgedText(instruction)}
	view := func(frozen *Outcome) PreSubagentContext {
		about.Instruction = string(d.now)
		return PreSubagentContext{subagentView{contextView{state: s, info: preSubagent, frozen: frozen}, about, nil}}
	}
	if err := deliberate(ctx, &d, PreSubagent, c.preSubagent.controls, func(int) PreSubagentContext { return view(nil) }); err != nil {
		return string(d.now), nil, err
	}
	if o := d.final; o != nil {
		denied = &DeniedError{Tool: about.Agent, Hook: o.hook, Reason: o.reason, Failed: o.failed}
	}
	return string(d.now), denied, c.preSubagent.announce(ctx, c.pool, view(d.observedOutcome()))
}

// judgedText is an instruction as the controls judge it.
type judgedText string

func (t judgedText) same(other judgedText) bool { return t == other }

func (judgedText) applyRewrite(o *Outcome, _ bool) (now, judged judgedText) {
	now = judgedText(o.arguments)
	return now, now
}

// PostSubagent asks the hooks at PostSubagent what the model is told of the answer, or, of a
// sub-agent that gave none, of about.Err. It returns what they left of both; of an answer
// that was withheld it is the reason, and withheld is set. Observers are told of answers only.
func (c *Compiled) PostSubagent(ctx context.Context, s agent.State, about Subagent) (left Subagent, withheld error, err error) {
	if c == nil || c.postSubagent.empty() {
		return about, nil, nil
	}
	var last *Outcome
	var given filters
	var held heldEvents
	view := func(frozen *Outcome, held *heldEvents) PostSubagentContext {
		return PostSubagentContext{subagentView{contextView{state: s, info: postSubagent, frozen: frozen}, about, held}}
	}
	var aborted error
	for _, e := range c.postSubagent.controls {
		o, err := e.consult(ctx, view(nil, &held))
		switch {
		case err != nil && ctx.Err() != nil:
			return Subagent{}, nil, err
		case err != nil:
			aborted = cmp.Or(aborted, err)
			continue
		case o == nil:
			continue
		}
		o = given.outcome(o)
		switch o.decision {
		case Filter:
			x := &filter{hook: o.hook, f: o.filter}
			given = append(given, x)
			about.Result, about.Err = x.filterText(about.Result), filters{x}.filterError(about.Err)
			if o = o.withFilter(x.changed); o.plain() && x.failed == nil {
				continue
			}
		case Replace:
			about.Result = o.content.Text()
			if about.Err != nil {
				about.Err = standingFor(about.Err, fmt.Sprintf("agent %q failed; what it said was replaced by %s", about.Agent, o.hook))
			}
		}
		if broken := given.firstFailure(); broken != nil {
			o = broken.failure(postSubagent)
		}
		if o.decision == Withhold {
			withheld = &DeniedError{Tool: about.Agent, Hook: o.hook, Reason: o.reason, Failed: o.failed}
			about.Result = "result withheld by " + o.hook + ": " + orNoReason(o.reason)
			if about.Err != nil {
				about.Err = standingFor(about.Err, about.Result)
			}
		}
		if last == nil || o.decision != Allow {
			last = o
		}
	}
	held.release(given)
	if aborted != nil {
		return Subagent{}, nil, given.abort(aborted)
	}
	if about.Err != nil {
		return about, withheld, nil
	}
	return about, withheld, c.postSubagent.announce(ctx, c.pool, view(given.filterOutcome(last), nil))
}

// SubagentFailed tells the hooks at SubagentFailed; about.Err says why.
func (c *Compiled) SubagentFailed(ctx context.Context, s agent.State, about Subagent) {
	if c != nil && !c.subagentFailed.empty() {
		_ = c.subagentFailed.announce(ctx, c.pool, SubagentFailedContext{subagentView{contextView{state: s, info: subagentFailed}, about, nil}})
	}
}
