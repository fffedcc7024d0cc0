// Package otelsetup exports telemetry as OpenTelemetry's standard environment variables say, with one call at the start
// of a program:
//
//	shutdown, err := otelsetup.Start(ctx, otelsetup.Config{Service: "helper"})
//	if err != nil {
//		return err
//	}
//	defer shutdown(context.Background())
//
// It is for programs. Libraries should use only OpenTelemetry's API.
//
// # Variables
//
//   - OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER, OTEL_LOGS_EXPORTER: otlp, console, none, or several,
//     separated by commas. Empty means otlp if an endpoint is set, and otherwise none, so that a program
//     sends nothing by default.
//   - OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT, _COMPRESSION, _CERTIFICATE …, and the same for one
//     signal, such as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT.
//   - OTEL_EXPORTER_OTLP_PROTOCOL, also for one signal: http/protobuf, which is the default, or grpc. For
//     grpc an endpoint may be a target such as collector:4317, with TLS unless OTEL_EXPORTER_OTLP_INSECURE is
//     true.
//   - OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES: the resource. Each process has its own
//     service.instance.id, unless they set one.
//   - OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG: the sampler; empty means all spans.
//   - OTEL_BSP_…, OTEL_METRIC_EXPORT_INTERVAL …: batches of spans and metrics, as in the SDK.
//   - OTEL_BLRP_MAX_QUEUE_SIZE (2048 log events), OTEL_BLRP_MAX_EXPORT_BATCH_SIZE (512),
//     OTEL_BLRP_SCHEDULE_DELAY (1000 milliseconds), OTEL_BLRP_EXPORT_TIMEOUT (30000): batches of log events.
//     When the queue is full, events are dropped and counted: agents never wait.
//   - OTEL_PROPAGATORS: tracecontext, baggage, none; empty means the first two.
//   - OTEL_SDK_DISABLED: true disables everything.
//
// Start returns an error for unsupported values. Later errors, including dropped events, go to OpenTelemetry's error
// handler: otel.SetErrorHandler.
//
// # Concurrency
//
// Call Start once. Exporters run on their own goroutines until shutdown.
package otelsetup
