// Package budget contains hooks that limit a run's usage: US dollars, tokens and tool calls. A run at its limit is
// stopped, or its tool calls are denied.
//
//	limits := budget.Limits{Cost: 0.50, ToolCalls: 40}
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(budget.Hooks(limits)...)).
//		Build().Get()
//
// # Responses
//
// A run that has reached its cost or token limit is stopped before the next model call. The last reply's tools do not
// run, because that reply's cost already counts. Its status is then agent.StatusStopped. One reply can exceed the
// limit, because its cost is known only afterwards. Sub-agents have the starting agent's hooks. Their usage and tool
// calls count for that agent's run, and they are stopped with it (agent.Spending). Sub-agents that run in parallel can
// each exceed the limit by one reply. When a run resumes from a stored state, its cost and tokens include earlier
// sub-agents. Its count of tool calls does not.
//
// Tool calls beyond their limit are denied, and the message tells the model to finish. Limits.Deny does the same for
// cost and tokens: the run can continue to an answer, and only tool calls are denied. Calls that an earlier hook denies
// do not count. Hooks with the same priority (hooks.PriorityAfterwork, as in packages judge, loops and ratelimit) run
// in the order in which they were added. Calls that a hook answers, or that a person rejects later, count.
//
// If cost is limited and a reply's cost is unknown, the budget counts as used up. The same is true if cost or tokens
// are limited and a reply has no usage or a negative usage.
//
// capability.UseGuards limits cost and tokens, too, and counts them the same way. Unlike this package, it does not
// limit tool calls, and it lets the last reply's calls run. It makes parallel sub-agents wait for one another when
// little of the budget remains.
//
// # Concurrency
//
// One set of hooks can serve any number of runs at the same time. Each run has the whole
// budget, unless a run with the same hooks started it.
package budget
