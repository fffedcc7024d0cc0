// Package otlp sends spans, metrics and log records to a collector with OTLP in protobuf, over HTTP or gRPC, as the
// standard environment variables say. The exporters of OpenTelemetry itself bring the whole of grpc-go along, and with
// it a page of html/template that keeps the linker from dropping methods that nothing calls (docs/adr/0022).
//
// A message is sent again for a minute, with growing pauses, where the collector answers that it cannot take it now, or
// the connection timed out. All exporters are safe for concurrent use.
package otlp
