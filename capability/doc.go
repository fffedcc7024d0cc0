// Package capability builds agents from parts. A Capability adds several things at
// once (tools, hooks, limits, middleware) to a Plan; a Plan becomes an agent.
//
//	a, err := builder.New().
//		WithDriver(driver).
//		With(
//			capability.UseTools(tools...),
//			capability.UseHooks(noPush, noWipe),
//			capability.UseGuards{Steps: 20, Cost: 0.50},
//		).
//		Build().Get()
//
// # Order
//
// Of two capabilities that wrap the same thing, the one given first is the outer
// one. Otherwise the order of capabilities matters as little as possible: tools,
// hooks, limits and middleware each have their fixed place, whatever the order of
// the capabilities that add them. A capability that must come after others declares
// it with Requires or After. Plan.String prints the composed stack.
//
// Capabilities that an agent can have only once have a name (guards, approval,
// compaction, durability, error-policy, subagents, telemetry, tool-options), and
// giving one twice is an error. The others may be given several times and add up. A
// builder adds telemetry by itself, outside of all others, unless it is given.
//
// # Writing one
//
// A capability is one method, Install, which returns the plan with its part added.
// Func makes one from a plain func. When the agent is built, all errors in the plan
// are reported at once.
//
// # Concurrency
//
// Plans are immutable values. One capability may be given to any number of builders,
// and its Install called for several of them at once; create the data of one agent,
// such as a counter or a connection, in Install.
package capability
