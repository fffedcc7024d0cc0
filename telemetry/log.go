package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/semconv"
)

// defaultLogs holds what SetDefaultLogs sets.
var defaultLogs atomic.Pointer[slog.Handler]

// SetDefaultLogs sets the handler of the log events of all telemetry whose Config names
// none, for runs that begin after it. Until it is called, and after it is called with
// nil, those have no log events. It is safe for concurrent use.
func SetDefaultLogs(h slog.Handler) {
	if h == nil {
		defaultLogs.Store(nil)
		return
	}
	defaultLogs.Store(&h)
}

// logHandler returns the handler for the log events of a run with that context, or nil if
// none takes any of them.
func (t *Telemetry) logHandler(ctx context.Context) slog.Handler {
	h := t.logs
	if h == nil {
		p := defaultLogs.Load()
		if p == nil {
			return nil
		}
		h = *p
	}
	for _, level := range [...]slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if h.Enabled(ctx, level) {
			return h
		}
	}
	return nil
}

// logged is a log event in the making.
type logged struct {
	*attributes

	run   *run
	name  string
	level slog.Level
}

// log begins a log event of the span in ctx. It returns nil when the handler does not take
// such events.
func (r *run) log(ctx context.Context, level slog.Level, name string) *logged {
	if r.logs == nil || !r.logs.Enabled(ctx, level) {
		return nil
	}
	e := &logged{attributes: someAttributes(), run: r, name: name, level: level}
	e.text(semconv.KeyRun, string(r.about.ID))
	e.text(semconv.KeyConversation, string(r.about.Session))
	e.text(semconv.KeyAgentName, r.about.Agent)
	return e
}

// emit sends the event, as part of the span in ctx. It is called once.
func (e *logged) emit(ctx context.Context) {
	record := slog.NewRecord(time.Now(), e.level, e.name, 0)
	var room [24]slog.Attr // no event has more; the record copies them
	list := room[:0]
	for _, kv := range e.list {
		list = append(list, slog.Attr{Key: string(kv.Key), Value: slogValue(kv.Value)})
	}
	record.AddAttrs(list...)
	e.release()
	if err := e.run.logs.Handle(ctx, record); err != nil {
		otel.Handle(fmt.Errorf("log event %s: %w", e.name, err))
	}
}

// slogValue returns the value in the terms of log/slog.
func slogValue(v attribute.Value) slog.Value {
	switch v.Type() {
	case attribute.STRING:
		return slog.StringValue(v.AsString())
	case attribute.INT64:
		return slog.Int64Value(v.AsInt64())
	case attribute.FLOAT64:
		return slog.Float64Value(v.AsFloat64())
	case attribute.BOOL:
		return slog.BoolValue(v.AsBool())
	}
	return slog.AnyValue(v.AsInterface())
}

// reason adds a sentence, where sentences were asked for.
func (e *logged) reason(text string) {
	if e.run.t.reasons {
		e.text(semconv.KeyReason, text)
	}
}

// eventOf returns the log event of a hook's decision, and how much it matters; the name is
// empty for decisions that change nothing.
func eventOf(d hooks.Decision) (name string, level slog.Level) {
	switch d {
	case hooks.Deny:
		return semconv.EventDenied, slog.LevelWarn
	case hooks.Withhold:
		return semconv.EventWithheld, slog.LevelWarn
	case hooks.StopRun:
		return semconv.EventStopped, slog.LevelWarn
	case hooks.Rewrite:
		return semconv.EventRewritten, slog.LevelInfo
	case hooks.Replace:
		return semconv.EventReplaced, slog.LevelInfo
	case hooks.Mock:
		return semconv.EventMocked, slog.LevelInfo
	case hooks.Ask:
		return semconv.EventAsked, slog.LevelInfo
	case hooks.Continue:
		return semconv.EventContinued, slog.LevelInfo
	}
	return "", 0
}
