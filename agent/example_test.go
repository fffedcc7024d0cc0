package agent_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// An agent is a driver and, mostly, tools.
func Example() {
	ctx := context.Background()
	driver := agenttest.Script( // in the place of a model
		agenttest.Call("add", `{"a":1,"b":2}`),
		agenttest.Say("1 + 2 is 3."),
	)
	a, err := agent.New(agent.Config{Name: "clerk", Driver: driver, Executor: tools().Executor()}).Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	final, err := a.Run(ctx, agent.NewState(), agent.UserText("What is 1 + 2?")).Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(final.Status(), "after", final.RunStepCount(), "steps:", final.Answer())
	// Output:
	// done after 2 steps: 1 + 2 is 3.
}

// The first processor is the outermost, around a run and around a step.
func ExampleProcessor() {
	var log []string
	a := agent.New(agent.Config{
		Driver: agenttest.Script(agenttest.Play(func(context.Context, agent.State) (agent.Step, error) {
			log = append(log, "    the model is asked")
			return agent.Step{Message: agent.Assistant("hi")}, nil
		})),
		AroundRun:  []agent.Processor{around("run a", &log), around("run b", &log)},
		AroundStep: []agent.Processor{around("  step a", &log), around("  step b", &log)},
	}).MustGet()
	a.Run(context.Background(), agent.NewState(), agent.UserText("hello"))
	fmt.Println(strings.Join(log, "\n"))
	// Output:
	// run a begins
	// run b begins
	//   step a begins
	//   step b begins
	//     the model is asked
	//   step b ends
	//   step a ends
	// run b ends
	// run a ends
}

// Wrappers around the driver and the executor nest in the same way.
func ExampleConfig() {
	driver := func(name string) func(agent.Driver) agent.Driver {
		return func(inner agent.Driver) agent.Driver {
			return agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
				fmt.Println(name, "asks")
				return inner.Next(ctx, s).Get()
			})
		}
	}
	a := agent.New(agent.Config{
		Driver:     agenttest.Script(agenttest.Say("hi")),
		WrapDriver: []func(agent.Driver) agent.Driver{driver("outer"), driver("inner")},
	}).MustGet()
	fmt.Println(a.Run(context.Background(), agent.NewState(), agent.UserText("hello")).MustGet().Answer())
	// Output:
	// outer asks
	// inner asks
	// hi
}

// A processor that looks at a step after it was taken, and may stop the run.
func ExampleProcessorFunc() {
	curfew := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		s, err := next(ctx, s).Get()
		if err != nil {
			return mo.Err[agent.State](err)
		}
		if s.RunUsage().Tokens() > 100 {
			s = s.WithStop(agent.Signal{Reason: agent.StopTokenLimit, Message: "that was a lot", Source: "curfew"})
		}
		return mo.Ok(s)
	})
	a := agent.New(agent.Config{
		Driver:   agenttest.Script().Then(agenttest.Call("add", `{}`).WithTokens(40, 20)),
		Executor: tools().Executor(), AroundStep: []agent.Processor{curfew},
	}).MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("count")).MustGet()
	fmt.Println(final.Status(), final.StopSignal().Reason, "after", final.RunStepCount(), "steps")
	// Output:
	// stopped token_limit after 2 steps
}

// An observer receives every event when it happens.
func ExampleObserverFunc() {
	a := agent.New(agent.Config{
		Driver: agenttest.Script(agenttest.Call("add", `{"a":1,"b":2}`), agenttest.Say("three")), Executor: tools().Executor(),
		Observer: agent.ObserverFunc(func(_ context.Context, e agent.Event) {
			switch e := e.(type) {
			case agent.ToolCallStarted:
				fmt.Println("runs", e.Call.Name, e.Call.Arguments)
			case agent.ToolCallCompleted:
				fmt.Println("says", e.Result.Text())
			case agent.RunCompleted:
				fmt.Println("ends as", e.State.Status())
			}
		}),
	}).MustGet()
	a.Run(context.Background(), agent.NewState(), agent.UserText("1+2?"))
	// Output:
	// runs add {"a":1,"b":2}
	// says 3
	// ends as done
}
