package telemetry

import (
	"context"
	"time"

	"github.com/samber/lo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/semconv"
)

// metrics contains the instruments, and a cache of attribute sets.
type metrics struct {
	operation, firstChunk, agent, tool, hook, approval metric.Float64Histogram

	tokens    metric.Int64Histogram
	decisions metric.Int64Counter
	errors    metric.Int64Counter

	records cache[labels, []metric.RecordOption]
	adds    cache[labels, []metric.AddOption]
}

// labels distinguish an instrument's measurements. Empty labels are omitted.
type labels struct {
	operation, provider, model, responded, server string

	port                   int
	token                  string
	agent, tool            string
	hook, point, mode      string
	kind                   string // the hook's kind: control or observer
	outcome, decision      string
	failMode, failure, end string
}

// attributes converts the labels to attributes of the conventions.
func (l labels) attributes() attribute.Set {
	list := []attribute.KeyValue{
		semconv.KeyOperation.String(l.operation), semconv.KeyProvider.String(l.provider), semconv.KeyRequestModel.String(l.model),
		semconv.KeyResponseModel.String(l.responded), semconv.KeyServerAddress.String(l.server), semconv.KeyTokenType.String(l.token),
		semconv.KeyAgentName.String(l.agent), semconv.KeyToolName.String(l.tool), semconv.KeyHook.String(l.hook),
		semconv.KeyPoint.String(l.point), semconv.KeyHookMode.String(l.mode),
		semconv.KeyHookType.String(l.kind),
		semconv.KeyHookOutcome.String(l.outcome), semconv.KeyDecision.String(l.decision), semconv.KeyFailMode.String(l.failMode),
		semconv.KeyErrorType.String(l.failure), semconv.KeyStatus.String(l.end),
	}
	list = lo.FilterMap(list, func(kv attribute.KeyValue, _ int) (attribute.KeyValue, bool) {
		return kv.Key.String(valid(kv.Value.AsString())), kv.Value.AsString() != ""
	})
	if l.server != "" {
		list = append(list, semconv.KeyServerPort.Int(l.port))
	}
	if l.tool != "" {
		list = append(list, semconv.KeyToolType.String("function"))
	}
	return attribute.NewSet(list...)
}

func newMetrics(m metric.Meter) metrics {
	seconds := func(name, text string, buckets []float64) metric.Float64Histogram {
		h, _ := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text), // it fails only for invalid names
			metric.WithExplicitBucketBoundaries(buckets...))
		return h
	}
	tokens, _ := m.Int64Histogram(semconv.MetricTokenUsage, metric.WithUnit("{token}"),
		metric.WithDescription("Number of input and output tokens used."), metric.WithExplicitBucketBoundaries(tokenBuckets...))
	decisions, _ := m.Int64Counter(semconv.MetricHookDecisions, metric.WithUnit("{decision}"), metric.WithDescription("Decisions of control hooks."))
	errs, _ := m.Int64Counter(semconv.MetricHookErrors, metric.WithUnit("{error}"), metric.WithDescription("Hooks that could not decide."))
	return metrics{
		operation:  seconds(semconv.MetricOperationDuration, "GenAI operation duration.", secondBuckets),
		firstChunk: seconds(semconv.MetricFirstChunk, "Time to receive the first chunk.", secondBuckets),
		agent:      seconds(semconv.MetricAgentDuration, "The end-to-end duration of a single agent invocation.", agentBuckets),
		tool:       seconds(semconv.MetricToolDuration, "The duration of a single tool execution.", secondBuckets),
		hook:       seconds(semconv.MetricHookDuration, "The duration of a single call of a hook.", hookBuckets),
		approval:   seconds(semconv.MetricApprovalWait, "How long a person's answer took.", approvalBuckets),
		tokens:     tokens, decisions: decisions, errors: errs,
	}
}

// enabled reports whether a meter records measurements.
func (m *metrics) enabled(ctx context.Context) bool {
	return m.operation.Enabled(ctx) || m.tokens.Enabled(ctx) || m.agent.Enabled(ctx) || m.tool.Enabled(ctx) ||
		m.hook.Enabled(ctx) || m.decisions.Enabled(ctx) || m.errors.Enabled(ctx) || m.firstChunk.Enabled(ctx) ||
		m.approval.Enabled(ctx)
}

func (m *metrics) seconds(ctx context.Context, h metric.Float64Histogram, took time.Duration, l labels) {
	if h.Enabled(ctx) {
		h.Record(ctx, took.Seconds(), m.recordOptions(l)...)
	}
}

func (m *metrics) used(ctx context.Context, u agent.Usage, l labels) {
	if !m.tokens.Enabled(ctx) {
		return
	}
	if l.token = "input"; u.InputTokens > 0 {
		m.tokens.Record(ctx, u.InputTokens, m.recordOptions(l)...)
	}
	if l.token = "output"; u.OutputTokens > 0 {
		m.tokens.Record(ctx, u.OutputTokens, m.recordOptions(l)...)
	}
}

func (m *metrics) count(ctx context.Context, c metric.Int64Counter, l labels) {
	if c.Enabled(ctx) {
		c.Add(ctx, 1, m.adds.of(l, func(l labels) []metric.AddOption {
			return []metric.AddOption{metric.WithAttributeSet(l.attributes())}
		})...)
	}
}

func (m *metrics) recordOptions(l labels) []metric.RecordOption {
	return m.records.of(l, func(l labels) []metric.RecordOption {
		return []metric.RecordOption{metric.WithAttributeSet(l.attributes())}
	})
}
