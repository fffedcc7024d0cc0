// Package kit is capabilities that are ready to use: what people look for in an
// agent framework and would otherwise write again and again.
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
// Each is a struct on the public seams of package capability, of a page or two, to
// be read and to be copied where it does not quite fit. What is missing or makes no
// sense in its fields is told when the agent is built. An agent has one of each.
//
// # Order
//
// ModelRetry and ReplyRetry stand around the step, so that each of their attempts goes through all
// that is around the driver; ModelFallback is the driver, so that one attempt asks
// all its models. ToolSelection and ContextEditing are between the two, in the order
// in which they are given, and inside of the hooks. TodoList and ToolCallLimit are
// around the executor and outside of the hooks: they go by what the hooks decided.
//
// # State
//
// What must outlive a run is in the session's metadata and goes through JSON with
// it: the list of things to do, and how far results have been dropped. Everything
// else belongs to a run and is gone with it.
//
// # Concurrency
//
// A capability of this package may be given to any number of builders, and an agent
// that has it serves any number of runs at once.
package kit
