// Package telemetry reports agents to OpenTelemetry. It emits spans, metrics and log events that follow the semantic
// conventions for generative AI, with additional ones for hooks. It uses only OpenTelemetry's API, and log/slog for log
// events. The program decides where the data goes, for instance with one call to package telemetry/otelsetup.
//
// Agents built with builder.New have telemetry already, with the global providers and the handler from SetDefaultLogs.
// Capability UseTelemetry configures it or turns it off:
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
//	├─ chat small                              a model turn, hooks included
//	│  └─ hook PostInference redact
//	└─ execute_tool bash                       a call: decision, execution, result
//	   ├─ hook PreToolUse no-sudo
//	   ├─ invoke_agent researcher              a run that the tool started
//	   └─ hook PostToolUse redact
//
// A hook's span is below the span for the subject of its decision: a call, a turn, or the run. Spans that a tool or a
// driver starts with its context are below the call's or turn's span. A call's span records the call's outcome, the
// hook or person that decided, and the reason. It lasts from the decision to the answer. With several calls in a step,
// each span therefore includes the wait for earlier calls. grapnel.tool.duration is the tool's own time.
//
// Only failures have the status Error. Denials, stops and rewrites are decisions, which are recorded as attributes.
//
// # Log events
//
// A log event is a record for a slog.Handler. Its message is the event's name, its attributes have the names in the
// conventions, and the context has its span. Enabled is called for each run and each event. Handle runs on the run's
// goroutine, so a slow handler should queue.
//
// # Content
//
// By default, telemetry contains no content: no messages, arguments or results. It omits decision and error texts,
// because they may quote content. With Content, it contains the content after the hooks: messages that the model was
// shown, replies after PostInference, arguments after rewriting, results after PostToolUse.
//
// # Cost
//
// If a run's span is not recorded, no spans below it are created. With no provider and no handler at all, a step costs
// a few nanoseconds and no allocation. Metrics and log events do not depend on whether the span was sampled.
//
// # Concurrency
//
// A Telemetry can serve any number of agents and runs at the same time, and starts no goroutine.
package telemetry
