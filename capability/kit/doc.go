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
// # What there is
//
//	TodoList        the model writes its plan down, and programs read it with Todos
//	FileMemory      notes in files, which outlive the session
//	ModelFallback   another model is asked when one fails
//	ModelRetry      a model call that failed is made again
//	ReplyRetry      the model is asked again for a final reply that is empty or cut
//	ToolSelection   the model is told of the tools that it needs for this call
//	ContextEditing  the model is no longer shown what tools answered long ago
//	ToolCallLimit   so many calls and no more
//	Log             what happens is written to log/slog
//
// Each is a struct that uses only the public API of package capability, of a page or
// two, to be read and to be copied if it does not quite fit. Missing or invalid
// fields are errors when the agent is built. An agent can have one of each.
//
// # Order
//
// ModelRetry and ReplyRetry are around the step, so each of their attempts passes
// through all wrappers of the driver; ModelFallback is the driver, so one attempt
// asks all its models. ToolSelection and ContextEditing are between the two, in the
// order in which they are given, and inside of the hooks. TodoList and ToolCallLimit
// are around the executor and outside of the hooks: they see the hooks' decisions.
//
// # State
//
// Data that must outlive a run is in the session's metadata and in its JSON: the
// list of tasks, and how far results have been dropped. All other data belongs to a run
// and is dropped with it.
//
// # Concurrency
//
// A capability of this package may be given to any number of builders, and an agent
// that has it serves any number of runs at once.
package kit
