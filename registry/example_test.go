package registry_test

import (
	"context"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/registry"
)

// An agent is data; what its names stand for is said once, in Go.
func Example() {
	type limits struct {
		Longest int `key:"longest,required,positive"`
	}
	short := func(_ context.Context, m *registry.Making, s limits) ([]hooks.Hook, error) {
		return []hooks.Hook{hooks.On(hooks.AtInputSubmitted, m.Name, func(_ context.Context, c hooks.InputContext) hooks.Result {
			if len(c.Text()) > s.Longest {
				return c.Deny(fmt.Sprintf("more than %d letters", s.Longest))
			}
			return c.Allow()
		})}, nil
	}
	took := hooks.Observe(hooks.AtExecutionEnd, "log", func(_ context.Context, c hooks.EndContext) error {
		fmt.Println("log:", c.Status())
		return nil
	})
	reg := registry.Registry{
		Drivers: map[string]registry.DriverMaker{"local/": func(context.Context, *registry.Making, string) (agent.Driver, error) {
			return agenttest.Script(agenttest.Say("Hello!")).EachRun(), nil
		}},
		Hooks: map[string]registry.Maker[[]hooks.Hook]{"short": registry.With(short), "log": registry.UseHooks(took)},
	}

	_, err := reg.Parse("greeter.yaml", []byte("model: local/tiny\npreHooks: [shrot: {longest: 9}]\n"))
	fmt.Println(err)

	file, err := reg.Parse("greeter.yaml", []byte("model: local/tiny\npreHooks: [short: {longest: 9}]\npostHooks: [log]\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	built, err := reg.BuildFile(ctx, file)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer built.Close()
	greeter := built.Agent().MustGet()
	for _, text := range []string{"Hi", "A very good morning to you"} {
		s := greeter.Run(ctx, agent.NewState(), agent.UserText(text)).MustGet()
		fmt.Println(s.Status(), s.Answer())
	}
	// Output:
	// greeter.yaml:2:12: unknown hook "shrot" (did you mean "short"?); known: "log", "short"
	//      2 | preHooks: [shrot: {longest: 9}]
	//        |            ^^^^^
	// log: done
	// done Hello!
	// log: denied
	// denied
}
