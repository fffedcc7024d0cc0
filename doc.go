// Package grapnel is a framework for agents: programs in which a language model
// calls tools, receives their results and continues until it is done. Its core is
// a hook system that can observe, steer or stop a running agent at every point.
//
//	var noSudo = hooks.On(hooks.AtPreToolUse, "no-sudo",
//		hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
//			line := bash.Analyse(command, bash.Options{})
//			if !line.Clear() {
//				return c.Deny("the line may run more than it shows: write plain commands")
//			}
//			for root := range line.CommandsNamed("sudo", "su", "doas", "pkexec") {
//				return c.Deny("this agent must not use " + root.Name)
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
// arguments would miss s\udo. RequireText denies calls without a command.
//
// This package contains no code, only this overview. To use the framework, start with package builder; to
// understand it, start with package agent.
//
// # Packages
//
// From the lowest layer up. A package imports only packages of lower layers, which a test checks.
//
//   - agent defines the basic types (State, Message, ToolCall, Step, Session), the four main interfaces
//     (Driver, Executor, Processor, Criterion) and the loop.
//   - processor wraps a run or a step, toolexec describes and runs tools, continuation decides after a step
//     whether to continue, hooks calls hooks at their points. These four do not depend on each other.
//   - durable records runs in a store while they run, so that they survive their process and can wait for
//     people without a process: durable/memory, durable/sqlite and durable/postgres are stores, and durable/durabletest tests
//     other stores. Its workers execute jobs from a store: agents, and commands with durable/command.
//     durable/temporal delivers ready runs to them through a Temporal server.
//     durable/approval lets people answer what runs wait for: it has an inbox with pages and a JSON endpoint,
//     and notifiers. durable/waiver holds standing answers, and durable/gate watches for callbacks, files and
//     commands that runs wait for.
//   - telemetry reports runs to OpenTelemetry: spans, metrics, log events. telemetry/otelsetup sends them to
//     the exporters that the OTEL_ variables name.
//   - capability combines several of these under one name: UseTools, UseHooks, UseGuards and others;
//     capability/kit has more that are ready to use.
//   - builder builds an agent from a driver and capabilities, or reports everything that is wrong with them.
//   - registry builds agents from definitions in YAML or JSON.
//   - pipeline runs stages of agents and commands, with hooks between them, on the workers of package durable.
//   - coordinator has runs of agents and commands, with hooks around them; coordinator/api serves it over HTTP;
//     coordinator/web shows people what happens;
//     coordinator/client uses it, and lets workers on other machines execute the runs; coordinator/wire has what they
//     send each other.
//
// Models: drivers/openai, drivers/anthropic and drivers/gemini call model services; drivers/replay plays
// recorded transcripts, and drivers has the error type and prices of all of them.
//
// Tools: toolexec/shell, toolexec/files and toolexec/mcp.
//
// Hooks that are ready to use: hooks/basedir, hooks/redact, hooks/pii, hooks/ratelimit, hooks/budget,
// hooks/loops, hooks/judge, hooks/audit and hooks/verify. hooks/mock answers in place of tools. hooks/fire
// fires hooks at one point, without a run of your own. adapters/agenthooks connects
// agents and hooks with AGENT-HOOKS.
//
// Other frameworks: guard lets hooks and policies decide on tool calls in a loop outside of this module.
// guard/usedsql remembers used approvals in a database, and guard/guardtest checks an adapter.
// adapters/mcp guards MCP servers and clients, adapters/eino and adapters/adk agents of these frameworks.
//
// Policies:
//
//   - policy builds hooks from rules in files, and follows changes of the files.
//   - action implements the actions of rules: run a command, ask a web service, a tool, an agent, a pipeline,
//     a model or a person. action/local lets them use agents and tools of this process. action/claudehooks runs hooks
//     that were written for Claude Code.
//   - policy/bash determines what running a line of bash may do. It imports no other package of this module.
//   - policy/tools describes a tool's effects and the roles of its arguments, whatever their names are.
//   - policy/library has policies that are ready to use.
//   - policy/policytest runs the test cases of policies and explains decisions.
//   - policy/recorded reads recorded runs in several formats, and policy/backtest reports what hooks would
//     have done to them.
//
// Tests: agent/agenttest and hooks/hookstest help to test your own drivers, tools and hooks.
//
// The command in cmd/grapnel runs agents without any Go code, and cmd/grapnel-gate decides on other coding agents' calls.
// The programs under examples show how to use the packages.
//
// # Terms
//
// A session is a conversation of runs. A run is one execution of an agent, and takes steps. A step is one
// model turn and the tool calls that the model asked for. A driver asks the model, an executor runs a call, a
// processor wraps a run or a step, a criterion decides whether to continue, a hook is called at a point, and
// a capability installs several of these. The terms mean the same in all packages.
package grapnel
