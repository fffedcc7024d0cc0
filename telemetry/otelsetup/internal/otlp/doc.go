// Package otlp sends spans, metrics and log records to a collector with OTLP in protobuf, over HTTP or gRPC,
// as configured by the standard environment variables. The exporters of OpenTelemetry itself depend on the
// whole of grpc-go, and with it on a page of html/template that prevents the linker from dropping unused
// methods (docs/adr/0022).
//
// For a minute, a message is sent again with growing pauses if the collector answers that it cannot accept it
// now, or if the connection times out. All exporters are safe for concurrent use.
package otlp
