// Package einoguard lets package guard decide on the tool calls of an eino agent.
//
//	err := einoguard.Install(g, config) // the last handler
//	a, err := adk.NewChatModelAgent(ctx, config)
//
// An agent with another config, such as deep.Config, gets the Handlers of an empty ChatModelAgentConfig in which the guard
// was installed. The executor in package planexecute takes no handlers, so that it cannot be guarded.
//
// Install adds a handler that seals the agent's tools: all kinds of tools, and those that eino adds itself. A sealed tool
// asks the guard and then runs, with exactly the arguments that were judged. A denial, a mock and a rejection are the
// tool's answer. Streamed answers are read to their end, filtered, and then shown as one chunk. A tool that another handler
// adds after the guard does not run. One that it puts in the place of a sealed tool is not seen, so that the guard
// must be last.
//
// # Asking a person
//
// When guard.Config.Approver parks a call, the run is interrupted with a *Question. Resume it with an agent.Approval for
// the interrupt's ID, by Runner.ResumeWithParams. The calls' ledger is in the checkpoint, so that another process
// with the same guard.Config.Key can resume. Tools can interrupt the run, too, in the same call.
//
// # Sessions
//
// One run of an agent, with its resumptions, is a session. Rules that count calls count that run's. Answers from
// earlier runs in the transcript are strangers' text. An agent that a tool starts, as adk.NewAgentTool does, has a child session and needs the
// same guard. An agent to which another one transfers has a session of its own. The session ends when the run
// succeeds, and otherwise when the context of the run ends: cancel it.
//
// # The user's words
//
// These are the messages with the user's role in a run's first model call. Not among them are messages that eino has
// rewritten for another agent, messages with a value in Extra, and a child's input. Messages that handlers add later are
// strangers' text. A handler of your own that adds one to the first call must set Extra, as eino's handlers do.
//
// # Limits
//
// An UnknownToolsHandler is not a tool, and not guarded. Neither are agents with AgenticMessage. A handler before the guard, a
// ToolArgumentsHandler and ToolCallMiddlewares run before the guard judges, and can change what it has filtered.
package einoguard
