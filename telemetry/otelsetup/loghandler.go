package otelsetup

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/samber/lo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup/internal/otlp"
)

// logHandler queues log events for exporters. A record's message is its event's name.
type logHandler struct {
	to     []*logQueue // at least one
	bare   bool        // omits decision and error texts
	within []addition  // additions from WithAttrs and WithGroup, in order
}

// addition is a list of attributes, or a group for all later additions.
type addition struct {
	list  []attribute.KeyValue
	group string // empty: attributes
}

var _ slog.Handler = (*logHandler)(nil)

// Enabled reports whether the handler still exports events. It accepts all levels.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return !h.to[0].isClosed() }

// Handle queues an event with the span in ctx. It does not block.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	list := make([]attribute.KeyValue, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		list = appendAttr(list, a)
		return true
	})
	for _, w := range slices.Backward(h.within) {
		switch {
		case w.group == "":
			list = slices.Concat(w.list, list)
		case len(list) > 0:
			list = []attribute.KeyValue{attribute.Map(w.group, list...)}
		}
	}
	if h.bare {
		list = slices.DeleteFunc(list, func(kv attribute.KeyValue) bool { return kv.Key == semconv.KeyReason })
	}
	record := &otlp.LogRecord{
		Time: r.Time, Observed: time.Now(), Event: r.Message, Severity: severityOf(r.Level), SeverityText: r.Level.String(),
		Attributes: list, Span: trace.SpanContextFromContext(ctx),
	}
	for _, q := range h.to {
		q.add(record)
	}
	return nil
}

// WithAttrs returns a handler that adds the attributes to all events.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var list []attribute.KeyValue
	for _, a := range attrs {
		list = appendAttr(list, a)
	}
	return h.with(addition{list: list})
}

// WithGroup returns a handler that puts all later attributes into the group.
func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(addition{group: name})
}

func (h *logHandler) with(a addition) *logHandler {
	return &logHandler{to: h.to, bare: h.bare, within: append(slices.Clip(h.within), a)}
}

// severityOf returns OpenTelemetry's severity: 5 for Debug, 9 for Info, 13 for Warn, 17 for Error.
func severityOf(level slog.Level) int { return min(max(int(level)+9, 1), 24) }

// appendAttr appends an attribute as OpenTelemetry expects it. It omits empty attributes and empty groups, and adds the
// members of a group without a name directly.
func appendAttr(list []attribute.KeyValue, a slog.Attr) []attribute.KeyValue {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		if a.Key == "" && v.Equal(slog.Value{}) {
			return list
		}
		return append(list, attribute.KeyValue{Key: attribute.Key(a.Key), Value: valueOf(v)})
	}
	members := membersOf(v)
	switch {
	case a.Key == "":
		return append(list, members...)
	case len(members) == 0:
		return list
	}
	return append(list, attribute.Map(a.Key, members...))
}

func membersOf(group slog.Value) []attribute.KeyValue {
	var list []attribute.KeyValue
	for _, a := range group.Group() {
		list = appendAttr(list, a)
	}
	return list
}

// valueOf converts a value to OpenTelemetry, where times and durations are nanoseconds. Values of other kinds become
// text.
func valueOf(v slog.Value) attribute.Value {
	switch v.Kind() {
	case slog.KindString:
		return attribute.StringValue(v.String())
	case slog.KindInt64:
		return attribute.Int64Value(v.Int64())
	case slog.KindUint64:
		if n := v.Uint64(); n <= math.MaxInt64 {
			return attribute.Int64Value(int64(n))
		}
	case slog.KindFloat64:
		return attribute.Float64Value(v.Float64())
	case slog.KindBool:
		return attribute.BoolValue(v.Bool())
	case slog.KindDuration:
		return attribute.Int64Value(v.Duration().Nanoseconds())
	case slog.KindTime:
		return attribute.Int64Value(v.Time().UnixNano())
	case slog.KindAny:
		return anyValueOf(v.Any())
	}
	return attribute.StringValue(v.String())
}

func anyValueOf(v any) attribute.Value {
	switch v := v.(type) {
	case []string:
		return attribute.StringSliceValue(v)
	case []int:
		return attribute.IntSliceValue(v)
	case []int64:
		return attribute.Int64SliceValue(v)
	case []float64:
		return attribute.Float64SliceValue(v)
	case []bool:
		return attribute.BoolSliceValue(v)
	case []byte:
		return attribute.ByteSliceValue(v)
	case []any:
		return attribute.SliceValue(lo.Map(v, func(x any, _ int) attribute.Value { return valueOf(slog.AnyValue(x).Resolve()) })...)
	}
	return attribute.StringValue(fmt.Sprintf("%+v", v))
}
