// Package telemetry reports agents to OpenTelemetry: spans, metrics and log events, following the semantic
// conventions for generative AI, with additional ones for hooks. It uses only the API of OpenTelemetry, and
// log/slog for log events; the program decides where the data goes, for instance with one call of package
// telemetry/otelsetup.
//
// An agent that is built with builder.New has telemetry already, with the global providers and the handler of
// SetDefaultLogs. Capability UseTelemetry configures it or turns it off:
//
//	shutdown, err := otelsetup.Start(ctx, otelsetup.Config{})
//	// …
//	defer shutdown(context.Background())
//	a, err := builder.New().
//		WithName("helper").
//		WithDriver(driver).
//		With(capability.UseTelemetry{Content: true}).
//		Build().Get()
//
// # Spans
//
//	invoke_agent helper                        the run
//	├─ chat small                              a turn of the model, hooks included
//	│  └─ hook PostInference redact
//	└─ execute_tool bash                       a call: decision, execution, release of the result
//	   ├─ hook PreToolUse no-sudo
//	   ├─ invoke_agent researcher              a run that the tool started
//	   └─ hook PostToolUse redact
//
// A hook's span is below the span of the subject of its decision: a call, a turn, or the run. Spans that a
// tool or a driver starts with its context are below the span of the call or the turn. A call's span records
// the outcome of the call, with the hook or person that decided and the reason. It lasts from the decision to
// the answer, so with several calls in a step, each span includes the wait for earlier calls;
// grapnel.tool.duration is the tool's own time.
//
// Only failures have the status Error. Denials, stops and rewrites are decisions, which are recorded as
// attributes.
//
// # Log events
//
// A log event is a record for a slog.Handler: its message is the name of the event, its attributes have the
// names of the conventions, and the context has its span. Enabled is called for each run and each event, and
// Handle runs on the goroutine of the run: a slow handler should queue.
//
// # Content
//
// By default, telemetry contains no content: no messages, arguments or results, and no texts of decisions and
// errors, which may quote content. With Content, it contains the content after the hooks: messages that the
// model was shown, replies after PostInference, arguments after rewriting, results after PostToolUse.
//
// # Cost
//
// If the span of a run is not recorded, no spans below it are created; with no provider and no handler at
// all, a step costs a few nanoseconds and no allocation. Metrics and log events do not depend on whether the
// span was sampled.
//
// # Concurrency
//
// A Telemetry can serve any number of agents and runs at the same time, and starts no goroutine.
package telemetry
