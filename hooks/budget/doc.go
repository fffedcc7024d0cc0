// Package budget holds hooks that limit what a run may use: US dollars, tokens and tool calls.
// A run at its limit is stopped, or its tool calls are denied.
//
//	limits := budget.Limits{Cost: 0.50, ToolCalls: 40}
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(budget.Hooks(limits)...)).
//		Build().Get()
//
// # What happens
//
// A run that has reached its limit for cost or tokens is stopped before the next model call, or before the tools run
// that the last reply called: the cost of that reply already counts.
// Its status is then agent.StatusStopped. One reply may exceed the limit, since its cost is
// known only afterwards. Sub-agents have the hooks of the agent that starts them: their usage
// and tool calls count for that agent's run, and they are stopped with it (agent.Spending).
// Sub-agents that run in parallel may each exceed the limit by one reply. When a run resumes
// from a stored state, its cost and tokens include earlier sub-agents; its count of tool calls
// does not.
//
// Tool calls beyond their limit are denied, and the model is told to finish with what it has.
// Limits.Deny does the same for cost and tokens: the run may continue to an answer, and only
// tool calls are denied. Calls that an earlier hook denies do not count; of hooks with the
// same priority (hooks.PriorityAfterwork, as in packages judge, loops and ratelimit) those
// added first run first. A call that a hook answers, or that a person rejects later, counts.
//
// If cost is limited and a reply has no known cost, the budget counts as used up; likewise if
// cost or tokens are limited and a reply has no usage or a negative one.
//
// capability.UseGuards limits cost and tokens, too, and counts them the same way. Unlike this
// package, it does not limit tool calls, lets the calls of the last reply run, and makes
// parallel sub-agents wait for one another when little of the budget remains.
//
// # Concurrency
//
// One set of hooks serves any number of runs at once. Each run has the whole budget, unless a
// run with the same hooks started it.
package budget
