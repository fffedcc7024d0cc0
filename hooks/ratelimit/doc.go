// Package ratelimit holds a hook that lets a tool be called only so often in a time.
//
//	searches := ratelimit.Hook("few-searches",
//		ratelimit.Limit{Calls: 10, Per: time.Minute},
//		hooks.ToolNamed("web_search"))
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(searches)).
//		Build().Get()
//
// # What is counted
//
// Each tool that the matchers match is counted by itself, in each run by itself
// unless Limit.Shared says otherwise. A tool begins with Limit.Calls calls in hand,
// spends one each time it is let through, and gets them back one by one, evenly over
// Limit.Per: after a quiet minute all ten may come at once, and from then on one each
// six seconds. So in no span of Per are there more than twice as many.
//
// The hook is asked after the others (PriorityAfterwork), so that what a guard denies
// is not counted, nor are arguments that the tool would not take. A call that a person
// says no to later has counted. A call that the hook is asked about again, because another
// hook or a person has changed its arguments, counts once.
//
// # What happens to a call too many
//
// It is denied, and the model is told how long it would have to wait. With Limit.Wait
// it is held back instead if it will be its turn by then. The calls of a step are
// asked about one after the other, so that each waits behind the ones before. A run that
// is cancelled while it waits gives its turn back, unless another run waits behind it.
//
// # Concurrency
//
// One hook serves any number of runs at once.
package ratelimit
