// Package builder is the starting point for most programs. An AgentBuilder builds an agent from a driver and
// capabilities, or reports all mistakes in one error.
//
//	a, err := builder.New().
//		WithName("helper").
//		WithDriver(driver).
//		WithInstructions("You are a careful assistant.").
//		With(capability.UseTools(tools...), capability.UseHooks(noPush)).
//		Build().Get()
//	if err != nil {
//		return err
//	}
//	final, err := a.Run(ctx, agent.NewState(), agent.UserText("what is in this folder?")).Get()
//
// A builder is an immutable value: keep one with the common parts of your agents, and extend it in several ways. RunAs
// runs an agent whose answer has a Go type.
package builder
