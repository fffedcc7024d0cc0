package hooks

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Subagent describes a sub-agent's run to the calling run's hooks.
type Subagent struct {
	// Agent is the sub-agent's name, and Instruction its task.
	Agent       string
	Instruction string
	// CallID is the ID of the tool call that starts the sub-agent.
	CallID string
	// Run is the sub-agent's run: its IDs, its session and its depth. Started is zero until the run has begun.
	Run agent.Run
	// Result is the sub-agent's answer, Status its run's final status. They are set once the run has ended.
	Result string
	Status agent.Status
	// Took is the run's duration.
	Took time.Duration
	// Err is the error of a failed run, otherwise nil.
	Err error
}

// subagentView is the common part of the contexts at a sub-agent's points.
type subagentView struct {
	contextView
	about Subagent
	held  *heldEvents // nil where no filter applies
}

// Subagent returns the description of the sub-agent's run.
func (c subagentView) Subagent() Subagent { return c.about }

// PreSubagentContext is the context of AtPreSubagent.
type PreSubagentContext struct{ subagentView }

// Allow allows the sub-agent to run.
func (c PreSubagentContext) Allow() Result { return c.allowWith(nil) }

// Deny prevents the sub-agent from running. Its call fails, and the model receives the reason.
func (c PreSubagentContext) Deny(reason string) Result {
	return c.newAnswer(Outcome{decision: Deny, reason: reason}, nil)
}

// Rewrite replaces the sub-agent's instruction.
func (c PreSubagentContext) Rewrite(instruction string) Result {
	return c.newAnswer(Outcome{decision: Rewrite, arguments: instruction}, nil)
}

// PostSubagentContext is the context of AtPostSubagent.
type PostSubagentContext struct{ subagentView }

// Allow leaves the answer unchanged.
func (c PostSubagentContext) Allow() Result { return c.allowWith(nil) }

// Replace replaces the sub-agent's answer with another text.
func (c PostSubagentContext) Replace(text string) Result {
	content := agent.TextContent(text)
	return c.newAnswer(Outcome{decision: Replace, content: &content}, nil)
}

// Filter applies f to every text that leaves the point: the answer or, if the sub-agent gave no answer, its error. For
// JSON text, f is also called with each decoded string. f must return other text unchanged, and may be called again for
// its own result. If f panics, the answer is withheld.
func (c PostSubagentContext) Filter(f func(text string) string) Result {
	return c.newAnswer(filterOutcome(f), nil)
}

// FilterOrWithhold works like Filter with a func that can also return an error, for text that must not leave the point.
// The answer is then withheld, and the model receives the error as the reason.
func (c PostSubagentContext) FilterOrWithhold(f func(text string) (string, error)) Result {
	return c.newAnswer(Outcome{decision: Filter, filter: f, invalid: missingFilter(f == nil)}, nil)
}

// Tell sends an event about a hook to the run's observer. The event is sent after all controls were asked, with their
// filters applied.
func (c PostSubagentContext) Tell(ctx context.Context, e Event) {
	if e.Shadow && e.Decision == Filter {
		e = e.withFilter(e.Outcome.wouldChange(func(l filters) { l.filterEach(c.about.Result); _ = l.filterError(c.about.Err) }))
	}
	c.held.holdOrSend(ctx, c.state, e)
}

// Withhold withholds the answer from the model, which receives the reason instead.
func (c PostSubagentContext) Withhold(reason string) Result {
	return c.newAnswer(Outcome{decision: Withhold, reason: reason}, nil)
}

// SubagentFailedContext is the context of AtSubagentFailed.
type SubagentFailedContext struct{ subagentView }

// Err returns the error of the sub-agent's run.
func (c SubagentFailedContext) Err() error { return c.about.Err }

// The points of a sub-agent.
var (
	preSubagent, _    = infoOf(PreSubagent)
	postSubagent, _   = infoOf(PostSubagent)
	subagentFailed, _ = infoOf(SubagentFailed)
)

// PreSubagent asks the hooks at PreSubagent, in the run that starts a sub-agent. instruction is the instruction as
// changed by the hooks. The sub-agent must not run if denied is set. err is set if a hook's failure aborts the run, or
// if ctx is done.
func (c *Compiled) PreSubagent(ctx context.Context, s agent.State, about Subagent) (instruction string, denied error, err error) {
	instruction = about.Instruction
	if c == nil || pointsOf(c).preSubagent.empty() {
		return instruction, nil, nil
	}
	d := deliberation[judgedText]{now: judgedText(instruction)}
	view := func(frozen *Outcome) PreSubagentContext {
		about.Instruction = string(d.now)
		return PreSubagentContext{subagentView{contextView{state: s, info: preSubagent, frozen: frozen}, about, nil}}
	}
	if err := deliberate(ctx, &d, PreSubagent, pointsOf(c).preSubagent.controls, func(int) PreSubagentContext { return view(nil) }); err != nil {
		return string(d.now), nil, err
	}
	if o := d.final; o != nil {
		denied = &DeniedError{Tool: about.Agent, Hook: o.hook, Reason: o.reason, Failed: o.failed}
	}
	return string(d.now), denied, pointsOf(c).preSubagent.announce(ctx, c.pool, view(d.observedOutcome()))
}

// judgedText is an instruction that the controls judge.
type judgedText string

func (t judgedText) same(other judgedText) bool { return t == other }

func (judgedText) applyRewrite(o *Outcome, _ bool) (now, judged judgedText) {
	now = judgedText(o.arguments)
	return now, now
}

// PostSubagent asks the hooks at PostSubagent about the answer, or about about.Err if the sub-agent gave no answer. It
// returns both as changed by the hooks. If the answer was withheld, the result is the reason, and withheld is set.
// Observers are called only if there is an answer.
func (c *Compiled) PostSubagent(ctx context.Context, s agent.State, about Subagent) (left Subagent, withheld error, err error) {
	if c == nil || pointsOf(c).postSubagent.empty() {
		return about, nil, nil
	}
	var last *Outcome
	var given filters
	var held heldEvents
	view := func(frozen *Outcome, held *heldEvents) PostSubagentContext {
		return PostSubagentContext{subagentView{contextView{state: s, info: postSubagent, frozen: frozen}, about, held}}
	}
	var aborted error
	for _, e := range pointsOf(c).postSubagent.controls {
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
				about.Err = standingFor(about.Err, fmt.Sprintf("agent %q failed; its text was replaced by %s", about.Agent, o.hook))
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
	return about, withheld, pointsOf(c).postSubagent.announce(ctx, c.pool, view(given.filterOutcome(last), nil))
}

// SubagentFailed calls the hooks at SubagentFailed. about.Err is the error.
func (c *Compiled) SubagentFailed(ctx context.Context, s agent.State, about Subagent) {
	if c != nil && !pointsOf(c).subagentFailed.empty() {
		_ = pointsOf(c).subagentFailed.announce(ctx, c.pool, SubagentFailedContext{subagentView{contextView{state: s, info: subagentFailed}, about, nil}})
	}
}
