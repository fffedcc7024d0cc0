// Package capability builds agents from parts. A Capability adds parts that belong together (tools, hooks, limits,
// middleware) to a Plan. A Plan becomes an agent.
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
// When two capabilities wrap the same thing, the one given first is the outer one. Otherwise the order of capabilities
// matters as little as possible. Tools, hooks, limits and middleware each have a fixed place, regardless of the order
// in which capabilities add them. A capability that must come after others declares this with Requires or After.
// Plan.String prints the composed stack.
//
// Capabilities that an agent can have only once have a name (guards, approval, compaction, durability, error-policy,
// subagents, telemetry, tool-options), and giving one twice is an error. The others can be given several times, and
// their parts add up. A builder adds telemetry automatically, outside all others, unless the program adds it.
//
// # Writing one
//
// A capability is one method, Install, which returns the plan with its part added. Func makes a capability from a func.
// Building the agent reports all errors in the plan together.
//
// # Concurrency
//
// Plans are immutable values. One capability can be given to any number of builders, and its Install can be called for
// several of them at the same time. Create an agent's own data, such as a counter or a connection, in Install.
package capability
