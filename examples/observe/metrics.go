package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// writeMetrics writes the metrics of the reader with their labels: counters with their value, histograms with the sum
// and the number of their measurements.
func writeMetrics(ctx context.Context, out io.Writer, reader sdkmetric.Reader) error {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		return err
	}
	var lines []string
	add := func(name string, value any, labels attribute.Set) {
		lines = append(lines, fmt.Sprintf("%s = %v {%s}", name, value, labels.Encoded(attribute.DefaultEncoder())))
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
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	return nil
}
