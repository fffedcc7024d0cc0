// Package budget holds hooks that end a run, or its tool calls, when it has used
// what it may: US dollars, tokens, tool calls.
//
//	limits := budget.Limits{Cost: 0.50, ToolCalls: 40}
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(budget.Hooks(limits)...)).
//		Build().Get()
//
// # What happens
//
// A run that has reached its cost or tokens is stopped before the next model call,
// and before the tools run which the last reply asked for: what that reply cost
// counts already. Its status is then agent.StatusStopped. One reply may take a run
// beyond its limit, since what it costs is known when it is there. Sub-agents have the hooks
// of the agent that starts them: what they use, and the calls that they make, count for
// that agent's run, and they are stopped with it (agent.Spending). Where several of them run
// side by side, each may take one reply too many. In a run that goes on from a stored state,
// tool calls that sub-agents have made before are not counted; cost and tokens are.
//
// Tool calls beyond their number are denied, and the model is told to finish with what
// it has. With Limits.Deny that is so for cost and tokens, too: the run may go on to an
// answer, and only calls are refused. Calls that hooks deny which are asked before do
// not count; hooks of the same priority (hooks.PriorityAfterwork, as in packages judge,
// loops and ratelimit) are asked before when they are added before. A call that a hook
// answers, or that a person says no to later, counts.
//
// Where a cost is limited and a reply came without one, the budget is taken to
// be used up. So it is where cost or tokens are limited and a reply came without any
// usage, or with one that is less than nothing.
//
// capability.UseGuards limits cost and tokens, too, and counts the same: it knows no tool
// calls, lets the calls of the last reply run, and makes sub-agents that run side by side wait
// for one another where little is left.
//
// # Concurrency
//
// One set of hooks serves any number of runs at once. Each run that another run with the same
// hooks did not start has the whole budget.
package budget
