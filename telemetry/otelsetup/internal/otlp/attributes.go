package otlp

import (
	"strings"
	"time"

	"github.com/samber/lo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
)

func pairs(list []attribute.KeyValue) []*common.KeyValue {
	return lo.Map(list, func(kv attribute.KeyValue, _ int) *common.KeyValue {
		return &common.KeyValue{Key: valid(string(kv.Key)), Value: anyValue(kv.Value)}
	})
}

func anyValue(v attribute.Value) *common.AnyValue {
	switch v.Type() {
	case attribute.EMPTY:
		return &common.AnyValue{}
	case attribute.BOOL:
		return boolValue(v.AsBool())
	case attribute.INT64:
		return intValue(v.AsInt64())
	case attribute.FLOAT64:
		return floatValue(v.AsFloat64())
	case attribute.STRING:
		return stringValue(v.AsString())
	case attribute.BYTESLICE:
		return &common.AnyValue{Value: &common.AnyValue_BytesValue{BytesValue: v.AsByteSlice()}}
	case attribute.BOOLSLICE:
		return list(v.AsBoolSlice(), boolValue)
	case attribute.INT64SLICE:
		return list(v.AsInt64Slice(), intValue)
	case attribute.FLOAT64SLICE:
		return list(v.AsFloat64Slice(), floatValue)
	case attribute.STRINGSLICE:
		return list(v.AsStringSlice(), stringValue)
	case attribute.SLICE:
		return list(v.AsSlice(), anyValue)
	case attribute.MAP:
		return &common.AnyValue{Value: &common.AnyValue_KvlistValue{KvlistValue: &common.KeyValueList{Values: pairs(v.AsMap())}}}
	}
	return stringValue(v.String())
}

func boolValue(b bool) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: b}}
}

func intValue(n int64) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}
}

func floatValue(f float64) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: f}}
}

func stringValue(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: valid(s)}}
}

// valid replaces bytes that are not UTF-8, because one such byte would prevent the encoding of the whole message.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func list[T any](values []T, value func(T) *common.AnyValue) *common.AnyValue {
	out := lo.Map(values, func(v T, _ int) *common.AnyValue { return value(v) })
	return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: out}}}
}

func scopeOf(s instrumentation.Scope) *common.InstrumentationScope {
	return &common.InstrumentationScope{Name: s.Name, Version: s.Version, Attributes: pairs(s.Attributes.ToSlice())}
}

func resourceOf(r *resource.Resource) *resources.Resource {
	return &resources.Resource{Attributes: pairs(r.Attributes())}
}

// unixNanoseconds returns the time since 1970, or zero for earlier times.
func unixNanoseconds(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }
