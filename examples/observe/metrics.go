package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// writeMetrics writes the reader's metrics with their labels: counters with their value, histograms with the sum and
// number of their measurements.
func writeMetrics(ctx context.Context, out io.Writer, reader sdkmetric.Reader) error {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		return err
	}
	lines := map[string]string{} // by name and attributes: their order does not depend on values
	add := func(name string, value any, labels attribute.Set) {
		set := labels.Encoded(attribute.DefaultEncoder())
		lines[name+" "+set] = fmt.Sprintf("%s = %v {%s}", name, value, set)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Value, p.Attributes)
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, fmt.Sprintf("%d in %d", p.Sum, p.Count), p.Attributes)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, fmt.Sprintf("%.6fs in %d", p.Sum, p.Count), p.Attributes)
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintln(out, lines[key])
	}
	return nil
}
