package hooks_test

import (
	"context"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/hooks"
)

// One run is stricter than the others of its agent.
func ExampleWithHooks() {
	a := builder.New().WithName("clerk").WithDriver(agenttest.Script(agenttest.Say("Done.")).EachRun()).Build().MustGet()
	quiet := hooks.On(hooks.AtInputSubmitted, "office-hours", func(_ context.Context, c hooks.InputContext) hooks.Result {
		return c.Deny("the office is closed")
	})
	ctx, input := context.Background(), agent.UserText("Pay the bill.")
	fmt.Println(a.RunWith(ctx, hooks.WithHooks(quiet), agent.NewState(), input).MustGet().Status())
	fmt.Println(a.Run(ctx, agent.NewState(), input).MustGet().Status())
	// Output:
	// denied
	// done
}
