// Package ratelimit contains a hook that limits how often a tool may be called in a period
// of time.
//
//	searches := ratelimit.Hook("few-searches",
//		ratelimit.Limit{Calls: 10, Per: time.Minute},
//		hooks.ToolNamed("web_search"))
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(searches)).
//		Build().Get()
//
// # Counting
//
// Each matching tool's calls are counted separately, and for each run separately unless Limit.Shared is set. A tool
// starts with Limit.Calls available calls. Each allowed call uses one. Used calls become available again one by one,
// evenly over Limit.Per. In the example, after a minute without calls, ten calls can follow immediately, and then one
// every six seconds. A period of length Per never has more than twice Limit.Calls calls.
//
// The hook runs after the other hooks (PriorityAfterwork), so that calls that a guard denies, and calls with invalid
// arguments, do not count. Calls that a person rejects later do count. The hook may run again for a call, because
// another hook or a person has changed its arguments. Such a call counts once.
//
// # Beyond the limit
//
// A call beyond the limit is denied, and the model is told how long it would have to wait. With Limit.Wait the call is
// delayed instead if its turn comes within that time. The hook runs for a step's calls one after the other, so that
// each call waits for the earlier calls. A run that is cancelled while it waits gives its turn back, unless another run
// waits behind it.
//
// # Concurrency
//
// One hook can serve any number of runs at the same time.
package ratelimit
