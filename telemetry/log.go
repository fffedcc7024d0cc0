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

// defaultLogs holds the handler from SetDefaultLogs.
var defaultLogs atomic.Pointer[slog.Handler]

// SetDefaultLogs sets the handler for the log events of every Telemetry whose Config has no Logs, for runs that begin
// later. Nil, the initial value, disables log events. It is safe for concurrent use.
func SetDefaultLogs(h slog.Handler) {
	if h == nil {
		defaultLogs.Store(nil)
		return
	}
	defaultLogs.Store(&h)
}

// logHandler returns the handler for a run's log events, or nil if the handler accepts no level.
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

// logged is a log event that is being built.
type logged struct {
	*attributes

	run   *run
	name  string
	level slog.Level
}

// log begins a log event for the span in ctx. It returns nil if the handler does not accept the level.
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

// emit sends the event with the span in ctx. Call it once.
func (e *logged) emit(ctx context.Context) {
	record := slog.NewRecord(time.Now(), e.level, e.name, 0)
	var room [24]slog.Attr // the most that an event has, copied by the record
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

// slogValue converts a value to log/slog.
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

// reason adds a text if Config.Reasons is set.
func (e *logged) reason(text string) {
	if e.run.t.reasons {
		e.text(semconv.KeyReason, text)
	}
}

// eventOf returns the name and level of the log event for a hook's decision. The name is empty if the decision changes
// nothing.
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
