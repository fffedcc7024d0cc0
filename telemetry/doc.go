// Package telemetry lets agents be seen through OpenTelemetry: spans, metrics and log
// events by the semantic conventions for generative AI, and for hooks by ours. It
// uses the API of OpenTelemetry only, and log/slog for log events; where it all goes is up
// to the program, for instance with one call of package telemetry/otelsetup.
//
// An agent that is built with builder.New has it already, with the global providers and the
// handler of SetDefaultLogs.
// Capability UseTelemetry says more, or nothing at all:
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
//	└─ execute_tool bash                       a call: decided upon, run, let out
//	   ├─ hook PreToolUse no-sudo
//	   ├─ invoke_agent researcher              a run that the tool started
//	   └─ hook PostToolUse redact
//
// A hook's span stands under the span of what it decides upon: a call, a turn, else
// the run. Whatever a tool or a driver starts with its context stands under theirs.
// A call's span says what became of the call, who decided so and why; it lasts from
// the decision to the answer, so of several calls of a step each includes the waiting
// for those before it; grapnel.tool.duration is the tool's own time.
//
// Only what failed has the status Error. Denials, stops and rewrites are decisions,
// and in attributes.
//
// # Log events
//
// A log event is a record for a slog.Handler: its message is the name of the event, its
// attributes have the names of the conventions, and the context has the span that it is part
// of. A handler is asked with Enabled, for each run and each event, and is called on the
// goroutine of the run: one that is slow should queue.
//
// # What is not told
//
// Without being asked, no content goes anywhere: no messages, arguments, results, and
// no sentences of decisions and errors, which may quote them. What is asked for with
// Content is what hooks left: messages as the model was shown them, replies behind
// PostInference, arguments after rewriting, results behind PostToolUse.
//
// # Cost
//
// Where the span of a run does not record, nothing below it is made; with no provider
// and no handler at all a step costs a few nanoseconds and no allocation. Metrics and log events do
// not depend on whether the span was sampled.
//
// # Concurrency
//
// A Telemetry may serve any number of agents and runs at once, and starts no
// goroutine.
package telemetry
