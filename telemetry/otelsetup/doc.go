// Package otelsetup sends telemetry to where the standard environment variables of
// OpenTelemetry say, with one call at the start of a program:
//
//	shutdown, err := otelsetup.Start(ctx, otelsetup.Config{Service: "helper"})
//	if err != nil {
//		return err
//	}
//	defer shutdown(context.Background())
//
// It is for programs; libraries use the API of OpenTelemetry and leave this to them.
//
// # Variables
//
//   - OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER, OTEL_LOGS_EXPORTER: otlp, console,
//     none, or several with commas between. Empty means otlp where an endpoint is set,
//     and otherwise none, so that a program sends nothing unless it is told to.
//   - OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT, _COMPRESSION, _CERTIFICATE …,
//     and the same for one signal, such as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT.
//   - OTEL_EXPORTER_OTLP_PROTOCOL, and for one signal: http/protobuf, which is the default, or
//     grpc. For grpc an endpoint may be a target such as collector:4317, with TLS unless
//     OTEL_EXPORTER_OTLP_INSECURE is true.
//   - OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES: who sends. Each process has a
//     service.instance.id of its own, unless they give one.
//   - OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG: what is sampled; empty means all.
//   - OTEL_BSP_…, OTEL_METRIC_EXPORT_INTERVAL …: batches of spans and metrics, as the SDK has them.
//   - OTEL_BLRP_MAX_QUEUE_SIZE (2048 log events), OTEL_BLRP_MAX_EXPORT_BATCH_SIZE (512),
//     OTEL_BLRP_SCHEDULE_DELAY (1000 milliseconds), OTEL_BLRP_EXPORT_TIMEOUT (30000): batches of
//     log events. Those that find the queue full are dropped and counted: agents never wait.
//   - OTEL_PROPAGATORS: tracecontext, baggage, none; empty means the first two.
//   - OTEL_SDK_DISABLED: true switches all of it off.
//
// What they ask for and is not there, is an error that says so. What goes wrong later,
// dropped events included, is told to the error handler of OpenTelemetry: otel.SetErrorHandler.
//
// # Concurrency
//
// Start is called once. Exporters work on goroutines of their own until shutdown.
package otelsetup
