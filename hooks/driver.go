package hooks

import (
	"context"
	"strings"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// hookedDriver wraps a driver with the hooks at PreInference and PostInference, so
// that every driver has them, streaming or not.
type hookedDriver struct {
	inner agent.Driver
	hooks *Compiled
}

var (
	_ agent.Streamer  = hookedDriver{}
	_ agent.Describer = hookedDriver{}
)

// WrapDriver puts the hooks around a driver.
func (c *Compiled) WrapDriver(inner agent.Driver) agent.Driver {
	if c.pre.empty() && c.post.empty() {
		return inner
	}
	return hookedDriver{inner, c}
}

func (d hookedDriver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.turn(ctx, s, func(s agent.State) mo.Result[agent.Step] { return d.inner.Next(ctx, s) })
}

// Features is what the wrapped driver says of itself.
func (d hookedDriver) Features() agent.Features { return agent.FeaturesOf(d.inner).OrEmpty() }

// Stream streams, unless a control may still replace the reply: then what it
// leaves is told at once.
func (d hookedDriver) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	if len(d.hooks.post.controls) == 0 {
		return d.turn(ctx, s, func(s agent.State) mo.Result[agent.Step] { return agent.Stream(ctx, d.inner, s, emit) })
	}
	result := d.Next(ctx, s)
	if step, err := result.Get(); err == nil {
		agent.EmitWhole(step, emit)
	}
	return result
}

// turn is one model call between its hooks.
func (d hookedDriver) turn(ctx context.Context, s agent.State, ask func(agent.State) mo.Result[agent.Step]) mo.Result[agent.Step] {
	shown, prior, stop, err := d.before(ctx, s)
	if err != nil {
		return mo.Err[agent.Step](err)
	}
	if stop != nil {
		return mo.Ok(agent.Step{Prior: prior, Stop: stop})
	}
	result := ask(shown)
	reply, err := result.Get()
	if err != nil {
		return result
	}
	reply.Prior = prior.Plus(reply.Prior)
	return mo.TupleToResult(d.after(ctx, shown, reply))
}

// before folds the controls at PreInference. What they add is shown to the model
// in this call, and kept when it answers.
func (d hookedDriver) before(ctx context.Context, s agent.State) (shown agent.State, prior agent.Effects, stop *agent.Signal, err error) {
	if d.hooks.pre.empty() {
		return s, prior, nil, nil
	}
	var last *Outcome
	payload := func(frozen *Outcome) InferenceContext {
		p := &inferencePayload{base: base{state: s, point: PreInference, frozen: frozen, step: s.RunStepCount()}}
		return InferenceContext{p.common(), p}
	}
	for _, e := range d.hooks.pre.controls {
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
			prior = prior.Plus(more)
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
	return s, prior, stop, d.hooks.pre.announce(ctx, d.hooks.pool, payload(last))
}

// spelledOut is a hook's effects with its context as the message that it becomes,
// so that the transcript gets the messages that the model was shown, and not those
// of all hooks in one.
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

// after folds the controls at PostInference.
func (d hookedDriver) after(ctx context.Context, s agent.State, reply agent.Step) (agent.Step, error) {
	if d.hooks.post.empty() {
		return reply, nil
	}
	var last *Outcome
	payload := func(frozen *Outcome) ReplyContext {
		kind := agent.StepFinalResponse
		if reply.Message.CallCount() > 0 {
			kind = agent.StepToolExecution
		}
		p := &inferencePayload{base: base{state: s, point: PostInference, frozen: frozen, step: s.RunStepCount(), kind: kind}, reply: reply}
		return ReplyContext{p.common(), p}
	}
	for _, e := range d.hooks.post.controls {
		o, err := e.consult(ctx, payload(nil))
		if err != nil {
			return reply, err
		}
		if o == nil {
			continue
		}
		switch o.decision {
		case Replace:
			reply = replaced(reply, *o.reply)
		case Withhold:
			reply = withheldReply(reply, o)
		}
		if o.effects.Len() > 0 {
			tellConflicts(ctx, s, PostInference, reply.Effects, o.effects)
			reply.Effects = reply.Effects.Plus(o.effects)
			s = s.Apply(o.effects)
		}
		if o.decision != Allow || last == nil {
			last = o
		}
		if o.decision == Withhold {
			break
		}
	}
	return reply, d.hooks.post.announce(ctx, d.hooks.pool, payload(last))
}

// replaced is the new reply with what middleware further in wants besides: that
// is not the model's, and no hook's to drop.
func replaced(reply, by agent.Step) agent.Step {
	by.Prior, by.Effects = reply.Prior, reply.Effects
	if by.Stop == nil {
		by.Stop = reply.Stop
	}
	return by
}

// withheldReply stands for a reply that its guard could not judge: nothing of it
// is shown, kept or done, and the run ends.
func withheldReply(reply agent.Step, o *Outcome) agent.Step {
	reply.Message = agent.Assistant("").WithContent(agent.TextContent("reply withheld by " + o.hook + ": " + orNoReason(o.reason)))
	reply.Stop = signalOf(o)
	return reply
}
