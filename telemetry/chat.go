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

// WrapDriver returns the outer wrapper around the driver, outside the hooks. It records a span for each turn. The span
// begins before the hooks see the request and ends when they have released the reply.
func (t *Telemetry) WrapDriver(inner agent.Driver) agent.Driver {
	return &outer{t, inner, targetOf(inner)}
}

// WrapModel returns the inner wrapper around the driver, inside the hooks. It records and measures the model's actual
// requests and replies.
func (t *Telemetry) WrapModel(inner agent.Driver) agent.Driver {
	f := agent.FeaturesOf(inner)
	_, streamer := inner.(agent.Streamer)
	return &tracedDriver{t, inner, targetOf(inner), lo.Ternary(f != agent.Features{}, f.Streaming, streamer)}
}

// turn is a running model turn. The inner wrapper finds the turn in the run, so that it need not be in a context.
type turn struct {
	span  trace.Span
	model string // the model in the span name
}

// turn returns the turn whose span is in ctx. If ctx has another span, which middleware in between may have begun, it
// returns the only running turn.
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

// Features returns the wrapped driver's features.
func (d *outer) Features() agent.Features { return agent.FeaturesOf(d.inner) }

// Next calls the driver, and records a span if the run is recorded.
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

// Stream works like Next and streams.
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
	ctx, span := d.t.tracer.Start(ctx, begun.name, begun.options...) //nolint:spancheck // the span ends in over
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns = append(r.turns, turn{span, to.model})
	return ctx, span //nolint:spancheck // the span ends in over
}

// over ends a turn's span.
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

// endTurn records the turn's result, after all hooks.
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

// turnFailure returns the class of a turn's error. A stop that is returned as an error is not a failure.
func turnFailure(ctx context.Context, err error) string {
	if err == nil {
		return ""
	}
	if _, stop := errors.AsType[*agent.SignalError](err); stop {
		return ""
	}
	return errorType(ctx, err, agent.KindModel)
}

// tracedDriver is the inner wrapper.
type tracedDriver struct {
	t       *Telemetry
	inner   agent.Driver
	target  target
	streams bool
}

var (
	_ agent.Streamer  = (*tracedDriver)(nil)
	_ agent.Describer = (*tracedDriver)(nil)
)

// Features returns the wrapped driver's features.
func (d *tracedDriver) Features() agent.Features { return agent.FeaturesOf(d.inner) }

func (d *tracedDriver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	if r := d.t.of(s); r != nil {
		return d.recordCall(ctx, r, s)
	}
	return d.inner.Next(ctx, s)
}

func (d *tracedDriver) recordCall(ctx context.Context, r *run, s agent.State) mo.Result[agent.Step] {
	began := time.Now()
	result := d.inner.Next(ctx, s)
	d.recordUsage(ctx, r, s, result, timing{took: time.Since(began)})
	return result
}

// Stream works like Next, and measures when the first piece arrives.
func (d *tracedDriver) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	r := d.t.of(s)
	if r == nil {
		return agent.Stream(ctx, d.inner, s, emit)
	}
	var first time.Duration
	began := time.Now()
	result := agent.Stream(ctx, d.inner, s, func(delta agent.Delta) {
		if first == 0 && d.streams { // otherwise the reply arrives in one piece at the end
			first = max(time.Since(began), 1)
		}
		emit(delta)
	})
	d.recordUsage(ctx, r, s, result, timing{time.Since(began), first, d.streams})
	return result
}

// timing is the duration of a model call, and the time until its first piece, if it streamed.
type timing struct {
	took, first time.Duration
	streamed    bool
}

// recordUsage records a model call's request and reply as numbers.
func (d *tracedDriver) recordUsage(ctx context.Context, r *run, s agent.State, result mo.Result[agent.Step], t timing) {
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
	if to.model != u.model { // a hook changed the model
		a.text(semconv.KeyRequestModel, to.model)
		u.span.SetName(valid(spanTitle(semconv.OperationChat, to.model)))
	}
	a.on(u.span)
}
