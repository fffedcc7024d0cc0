package otlp

import (
	"context"
	"fmt"
	"strings"

	"github.com/samber/lo"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// Metrics returns a metrics exporter.
func Metrics(context.Context) (sdkmetric.Exporter, error) {
	of := signal{"METRICS", "v1/metrics", "metrics.v1.MetricsService"}
	s, err := newSender(of)
	if err != nil {
		return nil, err
	}
	e := metricExporter{sender: s, temporality: sdkmetric.DefaultTemporalitySelector, aggregation: sdkmetric.DefaultAggregationSelector}
	switch value, variable := of.get("TEMPORALITY_PREFERENCE"); strings.ToLower(value) {
	case "", "cumulative":
	case "delta":
		e.temporality = sdkmetric.DeltaTemporalitySelector
	case "lowmemory":
		e.temporality = sdkmetric.LowMemoryTemporalitySelector
	default:
		warn(variable, fmt.Errorf("unknown temporality %q: using cumulative; others are delta and lowmemory", value))
	}
	switch value, variable := of.get("DEFAULT_HISTOGRAM_AGGREGATION"); strings.ToLower(value) {
	case "", "explicit_bucket_histogram":
	case "base2_exponential_bucket_histogram":
		e.aggregation = func(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
			if kind == sdkmetric.InstrumentKindHistogram {
				return sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}
			}
			return sdkmetric.DefaultAggregationSelector(kind)
		}
	default:
		warn(variable, fmt.Errorf("unknown aggregation %q: using explicit_bucket_histogram; the other one is base2_exponential_bucket_histogram", value))
	}
	return e, nil
}

type metricExporter struct {
	*sender

	temporality sdkmetric.TemporalitySelector
	aggregation sdkmetric.AggregationSelector
}

func (e metricExporter) Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	return e.temporality(kind)
}

func (e metricExporter) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return e.aggregation(kind)
}

func (e metricExporter) ForceFlush(context.Context) error { return nil }

func (e metricExporter) Shutdown(context.Context) error {
	e.close()
	return nil
}

func (e metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	out := &metrics.ResourceMetrics{Resource: resourceOf(m.Resource), SchemaUrl: m.Resource.SchemaURL()}
	for _, scope := range m.ScopeMetrics {
		of := &metrics.ScopeMetrics{Scope: scopeOf(scope.Scope), SchemaUrl: scope.Scope.SchemaURL}
		for _, one := range scope.Metrics {
			metric := &metrics.Metric{Name: one.Name, Description: one.Description, Unit: one.Unit}
			if !addData(metric, one.Data) {
				return fmt.Errorf("metric %q: cannot send %T", one.Name, one.Data)
			}
			of.Metrics = append(of.Metrics, metric)
		}
		out.ScopeMetrics = append(out.ScopeMetrics, of)
	}
	return e.send(ctx, &metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{out}})
}

// addData adds a metric's data, and reports whether its kind is known.
func addData(to *metrics.Metric, data metricdata.Aggregation) bool {
	switch d := data.(type) {
	case metricdata.Gauge[int64]:
		to.Data = &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: numberPoints(d.DataPoints)}}
	case metricdata.Gauge[float64]:
		to.Data = &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: numberPoints(d.DataPoints)}}
	case metricdata.Sum[int64]:
		to.Data = sumData(d)
	case metricdata.Sum[float64]:
		to.Data = sumData(d)
	case metricdata.Histogram[int64]:
		to.Data = histogramData(d)
	case metricdata.Histogram[float64]:
		to.Data = histogramData(d)
	case metricdata.ExponentialHistogram[int64]:
		to.Data = exponentialData(d)
	case metricdata.ExponentialHistogram[float64]:
		to.Data = exponentialData(d)
	default: // a Summary, which only bridges create
		return false
	}
	return true
}

func temporalityOf(t metricdata.Temporality) metrics.AggregationTemporality {
	if t == metricdata.DeltaTemporality {
		return metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	}
	return metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
}

func numberPoints[N int64 | float64](points []metricdata.DataPoint[N]) []*metrics.NumberDataPoint {
	return lo.Map(points, func(p metricdata.DataPoint[N], _ int) *metrics.NumberDataPoint {
		out := &metrics.NumberDataPoint{
			Attributes: pairs(p.Attributes.ToSlice()), StartTimeUnixNano: unixNanoseconds(p.StartTime), TimeUnixNano: unixNanoseconds(p.Time),
			Exemplars: exemplarsOf(p.Exemplars),
		}
		switch v := any(p.Value).(type) {
		case int64:
			out.Value = &metrics.NumberDataPoint_AsInt{AsInt: v}
		case float64:
			out.Value = &metrics.NumberDataPoint_AsDouble{AsDouble: v}
		}
		return out
	})
}

func sumData[N int64 | float64](d metricdata.Sum[N]) *metrics.Metric_Sum {
	return &metrics.Metric_Sum{Sum: &metrics.Sum{
		AggregationTemporality: temporalityOf(d.Temporality), IsMonotonic: d.IsMonotonic, DataPoints: numberPoints(d.DataPoints),
	}}
}

func histogramData[N int64 | float64](d metricdata.Histogram[N]) *metrics.Metric_Histogram {
	points := lo.Map(d.DataPoints, func(p metricdata.HistogramDataPoint[N], _ int) *metrics.HistogramDataPoint {
		return &metrics.HistogramDataPoint{
			Attributes: pairs(p.Attributes.ToSlice()), StartTimeUnixNano: unixNanoseconds(p.StartTime), TimeUnixNano: unixNanoseconds(p.Time),
			Count: p.Count, Sum: new(float64(p.Sum)), Min: extremeValue(p.Min), Max: extremeValue(p.Max),
			BucketCounts: p.BucketCounts, ExplicitBounds: p.Bounds, Exemplars: exemplarsOf(p.Exemplars),
		}
	})
	return &metrics.Metric_Histogram{Histogram: &metrics.Histogram{AggregationTemporality: temporalityOf(d.Temporality), DataPoints: points}}
}

func exponentialData[N int64 | float64](d metricdata.ExponentialHistogram[N]) *metrics.Metric_ExponentialHistogram {
	buckets := func(b metricdata.ExponentialBucket) *metrics.ExponentialHistogramDataPoint_Buckets {
		return &metrics.ExponentialHistogramDataPoint_Buckets{Offset: b.Offset, BucketCounts: b.Counts}
	}
	points := lo.Map(d.DataPoints, func(p metricdata.ExponentialHistogramDataPoint[N], _ int) *metrics.ExponentialHistogramDataPoint {
		return &metrics.ExponentialHistogramDataPoint{
			Attributes: pairs(p.Attributes.ToSlice()), StartTimeUnixNano: unixNanoseconds(p.StartTime), TimeUnixNano: unixNanoseconds(p.Time),
			Count: p.Count, Sum: new(float64(p.Sum)), Min: extremeValue(p.Min), Max: extremeValue(p.Max),
			Scale: p.Scale, ZeroCount: p.ZeroCount, ZeroThreshold: p.ZeroThreshold,
			Positive: buckets(p.PositiveBucket), Negative: buckets(p.NegativeBucket), Exemplars: exemplarsOf(p.Exemplars),
		}
	})
	return &metrics.Metric_ExponentialHistogram{ExponentialHistogram: &metrics.ExponentialHistogram{
		AggregationTemporality: temporalityOf(d.Temporality), DataPoints: points,
	}}
}

// extremeValue returns a minimum or maximum, or nil if it is unknown.
func extremeValue[N int64 | float64](e metricdata.Extrema[N]) *float64 {
	v, ok := e.Value()
	if !ok {
		return nil
	}
	return new(float64(v))
}

func exemplarsOf[N int64 | float64](list []metricdata.Exemplar[N]) []*metrics.Exemplar {
	return lo.Map(list, func(e metricdata.Exemplar[N], _ int) *metrics.Exemplar {
		out := &metrics.Exemplar{
			FilteredAttributes: pairs(e.FilteredAttributes), TimeUnixNano: unixNanoseconds(e.Time), SpanId: e.SpanID, TraceId: e.TraceID,
		}
		switch v := any(e.Value).(type) {
		case int64:
			out.Value = &metrics.Exemplar_AsInt{AsInt: v}
		case float64:
			out.Value = &metrics.Exemplar_AsDouble{AsDouble: v}
		}
		return out
	})
}
