// Package grapnel is a framework for agents: programs in which a language model
// asks for tools, sees what they answered and goes on until it is done. Its
// centre is a hook system that may watch, steer or stop such a program at every
// moment that matters.
//
//	var noSudo = hooks.On(hooks.AtPreToolUse, "no-sudo",
//		hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
//			line := bash.Analyse(command, bash.Options{})
//			if !line.Clear() {
//				return c.Deny("the line may run more than it shows: write plain commands")
//			}
//			for root := range line.CommandsNamed("sudo", "su", "doas", "pkexec") {
//				return c.Deny("this agent is no administrator: leave out " + root.Name)
//			}
//			return c.Allow()
//		}), hooks.ToolNamed("bash"))
//
//	a, err := builder.New().
//		WithDriver(driver).
//		With(
//			capability.UseTools(tools...),
//			capability.UseHooks(noSudo),
//			capability.UseGuards{Steps: 20},
//		).
//		Build().Get()
//
// The hook reads the line as bash would, with package policy/bash: a search for "sudo " in the text of the
// arguments misses s\udo. RequireText denies calls that have no command.
//
// This package holds no code, only the plan of the house. Start with package
// builder to use the framework, with package agent to understand it.
//
// # The house
//
// From the ground up; a package imports those below it, never those above or
// beside it, and a test keeps it so:
//
//   - agent has the nouns (State, Message, ToolCall, Step, Session), the four
//     seams (Driver, Executor, Processor, Criterion) and the loop that joins them.
//   - processor wraps a run or a step, toolexec describes and runs tools,
//     continuation judges after a step whether to go on, hooks asks and tells
//     hooks at their points. None of the four knows another.
//   - durable keeps runs in a store while they run, so that they survive their
//     process and wait for people without holding one: durable/sqlite and
//     durable/postgres are stores, durable/durabletest the tests for others.
//     durable/temporal delivers ready runs through a Temporal server.
//   - telemetry lets runs be seen through OpenTelemetry: spans, metrics, log events.
//   - capability brings several of these at once, under one name: UseTools,
//     UseHooks, UseGuards and others; capability/kit has such as are ready to use.
//   - builder makes an agent of a driver and capabilities, or says everything
//     that is wrong with them.
//   - registry makes them of names: an agent's definition is data, in YAML or JSON.
//
// Models are asked by drivers/openai, drivers/anthropic and drivers/gemini, each
// on the official SDK of its vendor; drivers/replay plays recorded transcripts,
// and drivers has what they share: errors and prices. toolexec/shell,
// toolexec/files and toolexec/mcp are tools that do something. Hooks ready to use
// are hooks/basedir, hooks/redact, hooks/pii, hooks/ratelimit, hooks/budget, hooks/loops,
// hooks/judge, hooks/audit and hooks/verify; hooks/mock answers in the place of tools;
// hooks/moment fires one point for them, without a run of one's own.
// telemetry/otelsetup sends telemetry to where the OTEL_ variables say.
//
// action is what hooks do that are declared and not programmed: run a command, ask a
// web service, a tool, an agent, a pipeline, a model or a person.
//
// policy makes hooks of rules that stand in files, and follows the files while they
// change. policy/bash says what running a line of bash may do, for hooks and policies to
// judge; it stands on nothing of ours. policy/condition is the language in which policies
// say when they apply. policy/provenance says who brought a value into a run, so that
// policies can tell what the user wants from what a web page wants. policy/library has
// policies that are ready to use. policy/recorded reads what agents did before, in whatever
// form it was written down, and policy/backtest tells what hooks would have done to it.
//
// policy/policytest tries policies out: it fires events at their rules, runs the cases that
// stand beside them, and says why each decision is what it is.
//
// Questions about tool calls that no person is there to answer are answered later: durable/approval
// has the page, the JSON endpoint and the notifiers for that.
//
// Beside it stand agent/agenttest and hooks/hookstest, for tests of your own
// drivers, tools and hooks. The command in cmd/grapnel runs agents without a line
// of Go, and the programs under examples show it all at work.
//
// # The words
//
// A session is a conversation of runs; a run is one execution of an agent, and
// takes steps; a step is one model turn and the tool calls it asked for. A driver
// asks the model, an executor runs a call, a processor wraps, a criterion judges,
// a hook is told at a point, a capability brings several of these. The words mean
// the same everywhere.
package grapnel
