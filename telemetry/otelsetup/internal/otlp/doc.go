// Package otlp sends spans, metrics and log records to a collector with OTLP in protobuf, over HTTP or gRPC. The
// standard environment variables configure it. OpenTelemetry's own exporters depend on all of grpc-go, which uses
// html/template and so prevents the linker from dropping unused methods (docs/adr/0001).
//
// The message is sent again if the collector answers that it cannot accept it now, or if the connection times out.
// Retries have growing pauses and last up to a minute. All exporters are safe for concurrent use.
package otlp
