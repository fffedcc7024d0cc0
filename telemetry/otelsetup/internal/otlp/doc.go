// Package otlp sends spans, metrics and log records to a collector with OTLP in protobuf, over HTTP or gRPC,
// as configured by the standard environment variables. OpenTelemetry's own exporters depend on all of
// grpc-go, which uses html/template and so prevents the linker from dropping unused methods (docs/adr/0001).
//
// If the collector answers that it cannot accept a message now, or if the connection times out, the message
// is sent again with growing pauses, for up to a minute. All exporters are safe for concurrent use.
package otlp
