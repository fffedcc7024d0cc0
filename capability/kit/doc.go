// Package kit contains ready-to-use capabilities that many agents need.
//
//	a, err := builder.New().
//		WithDriver(driver).
//		With(
//			kit.TodoList{},
//			kit.FileMemory{Root: "/var/lib/helper/notes"},
//			kit.ModelFallback{Drivers: []agent.Driver{other}},
//			kit.ModelRetry{Attempts: 4},
//			kit.ReplyRetry{},
//			kit.ToolSelection{Driver: small, Max: 8},
//			kit.ContextEditing{Tokens: 60_000},
//			kit.ToolCallLimit{Run: 40, PerTool: map[string]int{"search": 10}},
//		).
//		Build().Get()
//
// # Capabilities
//
//	TodoList        the model writes its plan down, and programs read it with Todos
//	FileMemory      notes in files, which outlive the session
//	ModelFallback   another model is asked when one fails
//	ModelRetry      a model call that failed is repeated
//	ReplyRetry      the model is asked again for a final reply that is empty or cut
//	ToolSelection   the model is shown only the tools that it needs for this call
//	ContextEditing  the model is no longer shown old tool results
//	ToolCallLimit   the number of tool calls is limited
//	Log             events are written to log/slog
//
// Each is a struct of a page or two that uses only package capability's public API: copy and change it if it does not
// fit. Missing or invalid fields are errors when the agent is built. An agent can have one of each.
//
// # Order
//
// ModelRetry and ReplyRetry are around the step, so each of their attempts passes through all driver wrappers.
// ModelFallback replaces the driver, so one attempt asks all its models. ToolSelection and ContextEditing are between
// the two, in their given order, and inside the hooks. TodoList and ToolCallLimit are around the
// executor and outside the hooks: they see the hooks' decisions.
//
// # State
//
// Data that must outlive a run is in the session's metadata and in its JSON: the to-do list, and the point up to which
// results are hidden. All other data belongs to a run and is dropped with it.
//
// # Concurrency
//
// A capability in this package can be given to any number of builders, and an agent that has it can serve any number of
// runs at the same time.
package kit
