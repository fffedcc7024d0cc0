// Package capability puts agents together from parts. A Capability brings several
// things at once (tools, hooks, limits, middleware) and installs them in a Plan; a
// Plan becomes an agent.
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
// What is given first is outermost. Where capabilities can commute they do: tools,
// hooks, limits and middleware each have their fixed place, whatever the order of
// the capabilities that bring them. A capability that must stand behind others
// says so with Requires or After. Plan.String prints the composed stack.
//
// What an agent can have only one of has a name (guards, approval, compaction,
// durability, error-policy, subagents, telemetry, tool-options), and giving it twice
// is an error. Everything else adds up.
// A builder adds telemetry by itself, outside of all others, unless it is given.
//
// # Writing one
//
// A capability is one method, Install, which returns the plan with its part added.
// Func makes one of a plain func. Everything that is wrong with a plan is told at
// once, when the agent is built.
//
// # Concurrency
//
// Plans are immutable values. One capability may be given to any number of
// builders, and its Install called for several of them at once; what belongs to one
// agent, a counter or a connection, is made in Install.
package capability
