package hooks

import (
	"cmp"
	"context"
	"strings"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/errguard"
)

// hookedDriver wraps a driver with the hooks at PreInference and PostInference, so that the
// hooks work with every driver, streaming or not.
type hookedDriver struct {
	inner agent.Driver
	hooks *Compiled
}

var (
	_ agent.Streamer  = hookedDriver{}
	_ agent.Describer = hookedDriver{}
)

// WrapDriver wraps a driver with the hooks.
func (c *Compiled) WrapDriver(inner agent.Driver) agent.Driver {
	if pointsOf(c).pre.empty() && pointsOf(c).post.empty() {
		return inner
	}
	return hookedDriver{inner, c}
}

func (d hookedDriver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.turn(ctx, s, func(s agent.State) mo.Result[agent.Step] { return d.inner.Next(ctx, s) })
}

// Features returns the wrapped driver's Features.
func (d hookedDriver) Features() agent.Features { return agent.FeaturesOf(d.inner) }

// Stream streams the reply. If a control may still replace it, Stream emits only the final
// reply, in one piece.
func (d hookedDriver) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	if len(pointsOf(d.hooks).post.controls) == 0 {
		return d.turn(ctx, s, func(s agent.State) mo.Result[agent.Step] { return agent.Stream(ctx, d.inner, s, emit) })
	}
	result := d.Next(ctx, s)
	if step, err := result.Get(); err == nil {
		agent.EmitWhole(step, emit)
	}
	return result
}

// turn makes one model call, with the hooks before and after it.
func (d hookedDriver) turn(ctx context.Context, s agent.State, ask func(agent.State) mo.Result[agent.Step]) mo.Result[agent.Step] {
	shown, prior, stop, err := d.before(ctx, s)
	if err != nil {
		return mo.Err[agent.Step](err)
	}
	if stop != nil {
		return mo.Ok(agent.Step{Prior: prior, Stop: stop})
	}
	result, caught := d.try(shown, ask)
	if pointsOf(d.hooks).post.empty() {
		return begunWith(prior, result)
	}
	reply, err := result.Get()
	err = errguard.Check(err)
	if caught != nil {
		err = caught
	}
	result = mo.TupleToResult(d.after(ctx, shown, reply, err))
	if caught != nil {
		panic(result.Error())
	}
	return begunWith(prior, result)
}

// try asks the model. It recovers a panic if hooks may filter its value.
func (d hookedDriver) try(s agent.State, ask func(agent.State) mo.Result[agent.Step]) (result mo.Result[agent.Step], caught *PanicError) {
	if len(pointsOf(d.hooks).post.controls) > 0 {
		defer func() { caught = caughtPanic(recover()) }()
	}
	return ask(s), nil
}

// begunWith returns a reply with the effects of the hooks before the model call.
func begunWith(prior agent.Effects, result mo.Result[agent.Step]) mo.Result[agent.Step] {
	if reply, err := result.Get(); err == nil && prior.Len() > 0 {
		reply.Prior = prior.Add(reply.Prior)
		return mo.Ok(reply)
	}
	return result
}

// before calls the controls at PreInference. The model is shown their messages in this call,
// and the transcript keeps them if the model answers.
func (d hookedDriver) before(ctx context.Context, s agent.State) (shown agent.State, prior agent.Effects, stop *agent.Signal, err error) {
	if pointsOf(d.hooks).pre.empty() {
		return s, prior, nil, nil
	}
	var last *Outcome
	payload := func(frozen *Outcome) InferenceContext {
		p := &inferencePayload{base: base{state: s, point: PreInference, frozen: frozen, step: s.RunStepCount()}}
		return InferenceContext{p.common(), p}
	}
	for _, e := range pointsOf(d.hooks).pre.controls {
		o, err := e.consult(ctx, payload(nil))
		if err != nil {
			return s, prior, nil, err
		}
		if o == nil {
			continue
		}
		if o.request != nil {
			s = s.WithRequest(*o.request)
		}
		if o.view != nil {
			s = s.WithView(o.view...)
		}
		if o.effects.Len() > 0 {
			tellConflicts(ctx, s, PreInference, prior, o.effects)
			more := spelledOut(o.effects)
			prior = prior.Add(more)
			s = s.Apply(more)
		}
		if o.decision != Allow || last == nil {
			last = o
		}
		if o.decision == StopRun {
			stop = signalOf(o)
			break
		}
	}
	if !pointsOf(d.hooks).pre.hasObservers() {
		return s, prior, stop, nil
	}
	return s, prior, stop, pointsOf(d.hooks).pre.announce(ctx, d.hooks.pool, payload(last))
}

// spelledOut returns a hook's effects with added context converted to a message. The transcript then has the same
// messages that the model was shown, and not one message with all hooks' context.
func spelledOut(effects agent.Effects) agent.Effects {
	var out []agent.Effect
	var context []string
	source := ""
	for _, e := range effects.All() {
		if text, ok := e.Context(); ok {
			context, source = append(context, text), e.Source()
			continue
		}
		out = append(out, e)
	}
	if len(context) > 0 {
		out = append(out, agent.AddMessage(agent.UserText(strings.Join(context, "\n\n")).WithSource(source)))
	}
	return agent.EffectsOf(out...)
}

// answering is the state while one reply is reviewed.
type answering struct {
	state   agent.State
	reply   agent.Step
	err     error // of a failed model call, which has no reply
	last    *Outcome
	filters filters
	held    heldEvents
}

// context returns the context for a hook.
func (a *answering) context(frozen *Outcome, held *heldEvents) ReplyContext {
	kind := agent.StepFinalResponse
	switch {
	case a.err != nil:
		kind = agent.StepFailure
	case a.reply.Message.CallCount() > 0:
		kind = agent.StepToolExecution
	}
	s := a.state
	p := &inferencePayload{
		base:  base{state: s, point: PostInference, frozen: frozen, step: s.RunStepCount(), kind: kind},
		reply: a.reply, err: a.err, held: held,
	}
	return ReplyContext{p.common(), p}
}

// after asks the controls at PostInference in turn. Each sees the reply, or a failed model call's error, as changed by
// earlier controls. Then it calls the observers. If a control's failure aborts the run, the others are still asked,
// because its error must pass their filters.
func (d hookedDriver) after(ctx context.Context, s agent.State, reply agent.Step, failure error) (agent.Step, error) {
	a := answering{state: s, reply: reply, err: failure}
	var aborted error
	for _, e := range pointsOf(d.hooks).post.controls {
		o, err := e.consult(ctx, a.context(nil, &a.held))
		switch {
		case ctx.Err() != nil && err != nil: // do not report an error that the controls could not judge
			a.held = nil
			return agent.Step{}, err
		case err != nil:
			aborted = cmp.Or(aborted, err)
		case o != nil:
			a.fold(ctx, o)
		}
	}
	a.held.release(a.filters)
	if aborted != nil {
		return agent.Step{}, a.filters.abort(aborted)
	}
	if pointsOf(d.hooks).post.hasObservers() {
		if err := pointsOf(d.hooks).post.announce(ctx, d.hooks.pool, a.context(a.filters.filterOutcome(a.last), nil)); err != nil {
			return agent.Step{}, err
		}
	}
	return a.reply, a.err
}

// fold applies a control's answer. Earlier filters apply to its additions. Its own filter applies to everything. A
// failed call is still a failure afterwards.
func (a *answering) fold(ctx context.Context, o *Outcome) {
	o = a.filters.outcome(o)
	if o.effects.Len() > 0 {
		for _, ev := range conflicts(a.state, PostInference, a.reply.Effects, o.effects) {
			a.held.holdOrSend(ctx, a.state, ev)
		}
		a.reply.Effects = a.reply.Effects.Add(o.effects)
		a.state = a.state.Apply(o.effects)
	}
	switch {
	case o.decision == Filter:
		if o = a.applyFilter(o); o.plain() && a.filters.firstFailure() == nil {
			return
		}
	case o.decision == Withhold:
		a.withholdReply(o)
	case o.decision == Replace && a.err != nil:
		a.err = standingFor(a.err, "the model call failed; its text was replaced by "+o.hook)
	case o.decision == Replace:
		a.reply = replaceReply(a.reply, *o.reply)
	}
	if broken := a.filters.firstFailure(); broken != nil {
		info, _ := infoOf(PostInference)
		o = broken.failure(info)
		a.withholdReply(o)
	}
	if o.decision != Allow || a.last == nil {
		a.last = o
	}
}

// applyFilter applies a filter to all text that leaves the point.
func (a *answering) applyFilter(o *Outcome) *Outcome {
	x := &filter{hook: o.hook, f: o.filter}
	a.filters = append(a.filters, x)
	a.reply, a.err = filters{x}.filterReply(a.reply), filters{x}.filterError(a.err)
	return o.withFilter(x.changed)
}

// withholdReply replaces a reply that a guard withheld or could not judge with a note. It drops all effects from the
// reply and earlier hooks, and ends the run.
func (a *answering) withholdReply(o *Outcome) {
	text := "reply withheld by " + o.hook + ": " + orNoReason(o.reason)
	if a.err != nil {
		a.err = standingFor(a.err, text)
		return
	}
	a.reply.Message = agent.Assistant("").WithContent(agent.TextContent(text))
	a.reply.Prior, a.reply.Effects, a.reply.Stop = agent.Effects{}, o.effects, signalOf(o)
}

// replaceReply returns the new reply, but keeps effects from inner middleware, which are not part of the model's reply.
func replaceReply(reply, by agent.Step) agent.Step {
	by.Prior, by.Effects = reply.Prior, reply.Effects
	if by.Stop == nil {
		by.Stop = reply.Stop
	}
	return by
}
