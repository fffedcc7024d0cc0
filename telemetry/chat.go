package telemetry

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/semconv"
)

// WrapDriver returns the outer wrapper around the driver, outside of the hooks: a span
// for each turn, from before the hooks see the request until they have let the
// reply out.
func (t *Telemetry) WrapDriver(inner agent.Driver) agent.Driver {
	return &outer{t, inner, targetOf(inner)}
}

// WrapModel returns the inner wrapper around the driver, inside of the hooks: it sees
// what the model is asked and what it answers, and measures that.
func (t *Telemetry) WrapModel(inner agent.Driver) agent.Driver {
	f, described := agent.FeaturesOf(inner).Get()
	_, streamer := inner.(agent.Streamer)
	return &asking{t, inner, targetOf(inner), lo.Ternary(described, f.Streaming, streamer)}
}

// turn is a turn of the model under way. The inner wrapper finds it in the run, so
// that no context has to carry it.
type turn struct {
	span  trace.Span
	model string // in its name
}

// turn returns the turn whose span is in ctx, or else the only one there is: middleware in
// between may have begun a span of its own.
func (r *run) turn(ctx context.Context) (turn, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.turns) == 1 {
		return r.turns[0], true
	}
	id := trace.SpanContextFromContext(ctx).SpanID()
	return lo.Find(r.turns, func(u turn) bool { return u.span.SpanContext().SpanID() == id })
}

type outer struct {
	t      *Telemetry
	inner  agent.Driver
	target target
}

var (
	_ agent.Streamer  = (*outer)(nil)
	_ agent.Describer = (*outer)(nil)
)

// WhenUnobserved returns the driver of runs without an observer.
func (d *outer) WhenUnobserved() agent.Driver { return d.inner }

// Features returns what the wrapped driver says of itself.
func (d *outer) Features() agent.Features { return agent.FeaturesOf(d.inner).OrEmpty() }

// Next asks the model, and records a span where the run is recorded.
func (d *outer) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	if r := d.t.of(s); r != nil && r.recording {
		return d.recordTurn(ctx, r, s)
	}
	return d.inner.Next(ctx, s)
}

func (d *outer) recordTurn(ctx context.Context, r *run, s agent.State) mo.Result[agent.Step] {
	ctx, span := d.begin(ctx, r, s)
	returned := false
	defer func() { r.over(span, returned) }()
	result := d.inner.Next(ctx, s)
	returned = true
	r.endTurn(ctx, span, result)
	return result
}

// Stream streams.
func (d *outer) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	r := d.t.of(s)
	if r == nil || !r.recording {
		return agent.Stream(ctx, d.inner, s, emit)
	}
	ctx, span := d.begin(ctx, r, s)
	returned := false
	defer func() { r.over(span, returned) }()
	result := agent.Stream(ctx, d.inner, s, emit)
	returned = true
	r.endTurn(ctx, span, result)
	return result
}

func (d *outer) begin(ctx context.Context, r *run, s agent.State) (context.Context, trace.Span) {
	to := d.target.withModel(s.Request().Model)
	begun := d.t.spans.chat(to)
	ctx, span := d.t.tracer.Start(ctx, begun.name, begun.options...) //nolint:spancheck // over ends it
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns = append(r.turns, turn{span, to.model})
	return ctx, span //nolint:spancheck // over ends it
}

// over ends the span of a turn.
func (r *run) over(span trace.Span, returned bool) {
	r.endSpan(span, returned)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.turns) == 1 {
		r.turns[0] = turn{}
		r.turns = r.turns[:0]
		return
	}
	id := span.SpanContext().SpanID()
	r.turns = slices.DeleteFunc(r.turns, func(u turn) bool { return u.span.SpanContext().SpanID() == id })
}

// endTurn says what came of the turn, hooks and all.
func (r *run) endTurn(ctx context.Context, span trace.Span, result mo.Result[agent.Step]) {
	reply, err := result.Get()
	failure := turnFailure(ctx, err)
	if failure == "" && !r.t.content {
		return
	}
	a := someAttributes()
	a.text(semconv.KeyErrorType, failure)
	if r.t.content && err == nil {
		a.text(semconv.KeyOutputMessages, outputOf(reply))
	}
	a.on(span)
	if failure != string(agent.KindCancelled) {
		r.markFailed(span, failure, textOf(err))
	}
}

// turnFailure returns the class of the error that a turn ended with. A stop in the form
// of an error is none.
func turnFailure(ctx context.Context, err error) string {
	if err == nil {
		return ""
	}
	if _, stop := errors.AsType[*agent.SignalError](err); stop {
		return ""
	}
	return errorType(ctx, err, agent.KindModel)
}

// asking is the inner wrapper.
type asking struct {
	t       *Telemetry
	inner   agent.Driver
	target  target
	streams bool
}

var (
	_ agent.Streamer  = (*asking)(nil)
	_ agent.Describer = (*asking)(nil)
)

// WhenUnobserved returns the driver of runs without an observer.
func (d *asking) WhenUnobserved() agent.Driver { return d.inner }

// Features returns what the wrapped driver says of itself.
func (d *asking) Features() agent.Features { return agent.FeaturesOf(d.inner).OrEmpty() }

func (d *asking) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	if r := d.t.of(s); r != nil {
		return d.recordCall(ctx, r, s)
	}
	return d.inner.Next(ctx, s)
}

func (d *asking) recordCall(ctx context.Context, r *run, s agent.State) mo.Result[agent.Step] {
	began := time.Now()
	result := d.inner.Next(ctx, s)
	d.recordUsage(ctx, r, s, result, timing{took: time.Since(began)})
	return result
}

// Stream streams, and looks at the clock when the first piece comes.
func (d *asking) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	r := d.t.of(s)
	if r == nil {
		return agent.Stream(ctx, d.inner, s, emit)
	}
	var first time.Duration
	began := time.Now()
	result := agent.Stream(ctx, d.inner, s, func(delta agent.Delta) {
		if first == 0 && d.streams { // else it comes whole, at the end
			first = max(time.Since(began), 1)
		}
		emit(delta)
	})
	d.recordUsage(ctx, r, s, result, timing{time.Since(began), first, d.streams})
	return result
}

// timing is how long a model call took, and its first piece if there was one.
type timing struct {
	took, first time.Duration
	streamed    bool
}

// recordUsage records a model call: what was asked and what was answered, as figures.
func (d *asking) recordUsage(ctx context.Context, r *run, s agent.State, result mo.Result[agent.Step], t timing) {
	request := s.Request()
	to := d.target.withModel(request.Model)
	reply, err := result.Get()
	failure := turnFailure(ctx, err)
	m := &d.t.metrics
	l := labels{
		operation: semconv.OperationChat, provider: to.provider, model: to.model, responded: reply.Model, server: to.server, port: to.port, failure: failure,
	}
	m.seconds(ctx, m.operation, t.took, l)
	if err == nil {
		m.used(ctx, reply.Usage, l)
	}
	if t.first > 0 {
		m.seconds(ctx, m.firstChunk, t.first, l)
	}
	u, ok := r.turn(ctx)
	if !ok {
		return
	}
	a := someAttributes()
	a.text(semconv.KeyConversation, string(r.about.Session))
	a.add(semconv.KeyStep.Int(s.RunStepCount()))
	a.number(semconv.KeyMaxTokens, int64(request.MaxOutputTokens))
	if temperature, ok := request.Temperature.Get(); ok {
		a.add(semconv.KeyTemperature.Float64(temperature))
	}
	if request.Output != nil {
		a.text(semconv.KeyOutputType, "json")
	}
	a.text(semconv.KeyResponseModel, reply.Model)
	a.text(semconv.KeyResponseID, reply.ID)
	if reasons, ok := finishReasons[reply.FinishReason]; ok {
		a.add(reasons)
	} else if reply.FinishReason != "" {
		a.add(semconv.KeyFinishReasons.StringSlice([]string{valid(string(reply.FinishReason))}))
	}
	a.usage(reply.Usage)
	a.flag(semconv.KeyRequestStream, t.streamed)
	if t.first > 0 {
		a.add(semconv.KeyFirstChunk.Float64(t.first.Seconds()))
	}
	if d.t.content {
		a.text(semconv.KeyInstructions, instructions(request.Instructions))
		a.text(semconv.KeyInputMessages, inputMessages(s))
	}
	if to.model != u.model { // hooks chose another
		a.text(semconv.KeyRequestModel, to.model)
		u.span.SetName(valid(spanTitle(semconv.OperationChat, to.model)))
	}
	a.on(u.span)
}
