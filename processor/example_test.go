package processor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/processor"
)

// hello is a model that answers at once.
var hello = agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
	fmt.Println("    step")
	return agent.Step{
		Message: agent.Assistant("hello"), Usage: agent.Usage{InputTokens: 12, OutputTokens: 3, Cost: mo.Some(0.002)},
	}, nil
})

// start runs an agent.
func start(config agent.Config) (agent.State, error) {
	return agent.New(config).MustGet().Run(context.Background(), agent.NewState(), agent.UserText("hi")).Get()
}

// The first is the outermost.
func ExampleChain() {
	around := func(name string) agent.Processor {
		return processor.Func(func(ctx context.Context, s agent.State, next processor.NextFunc) (agent.State, error) {
			fmt.Println(name, "before")
			defer fmt.Println(name, "after")
			return next(ctx, s)
		})
	}
	_, err := start(agent.Config{Driver: hello, AroundStep: []agent.Processor{processor.Chain(around("a"), around("  b"))}})
	fmt.Println(err)
	// Output:
	// a before
	//   b before
	//     step
	//   b after
	// a after
	// <nil>
}

func ExampleFunc() {
	timed := processor.Func(func(ctx context.Context, s agent.State, next processor.NextFunc) (agent.State, error) {
		began := time.Now()
		s, err := next(ctx, s)
		fmt.Println("took less than a minute:", time.Since(began) < time.Minute)
		return s, err
	})
	_, err := start(agent.Config{Driver: hello, AroundStep: []agent.Processor{timed}})
	fmt.Println(err)
	// Output:
	//     step
	// took less than a minute: true
	// <nil>
}

var user = agent.RunKey[string]("user")

func ExampleBefore() {
	whoAsks := processor.Before(func(_ context.Context, s agent.State) (agent.State, error) {
		return user.In(s, "ada"), nil
	})
	final, err := start(agent.Config{Driver: hello, AroundRun: []agent.Processor{whoAsks}})
	fmt.Println(user.Or(final, "none"), err)
	// Output:
	//     step
	// ada <nil>
}

// What was done before an After failed is in the run's error.
func ExampleAfter() {
	archive := processor.After(func(_ context.Context, s agent.State) (agent.State, error) {
		return s, errors.New("the archive is full")
	})
	_, err := start(agent.Config{Driver: hello, AroundRun: []agent.Processor{archive}})
	failed, _ := errors.AsType[*agent.RunError](err)
	fmt.Println(failed.Err)
	fmt.Println(failed.State.Status(), failed.State.Answer())
	// Output:
	//     step
	// the archive is full
	// failed hello
}

func ExampleWhen() {
	first := func(s agent.State) bool { return s.RunStepCount() == 0 }
	greet := processor.Before(func(_ context.Context, s agent.State) (agent.State, error) {
		fmt.Println("before the first step")
		return s, nil
	})
	_, err := start(agent.Config{Driver: hello, AroundStep: []agent.Processor{processor.When(first, greet)}})
	fmt.Println(err)
	// Output:
	// before the first step
	//     step
	// <nil>
}

func ExampleRetry() {
	attempt := 0
	busy := agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		if attempt++; attempt < 3 {
			return agent.Step{}, fmt.Errorf("attempt %d: too many requests", attempt)
		}
		return agent.Step{Message: agent.Assistant("here I am")}, nil
	})
	told := agent.ObserverFunc(func(_ context.Context, e agent.Event) {
		if e, ok := e.(processor.Retrying); ok {
			fmt.Println(e.Err, "- again in", e.Wait)
		}
	})
	final, err := start(agent.Config{
		Driver:     busy,
		AroundStep: []agent.Processor{processor.Retry{Attempts: 5, Delay: time.Millisecond}},
		Observer:   told,
	})
	fmt.Println(final.Answer(), err)
	// Output:
	// asking the model: attempt 1: too many requests - again in 1ms
	// asking the model: attempt 2: too many requests - again in 2ms
	// here I am <nil>
}

// A model that never answers does not keep the run.
func ExampleDeadline() {
	hanging := agent.DriverFunc(func(ctx context.Context, _ agent.State) (agent.Step, error) {
		<-ctx.Done()
		return agent.Step{}, ctx.Err()
	})
	final, err := start(agent.Config{
		Driver:    hanging,
		AroundRun: []agent.Processor{processor.Deadline(10 * time.Millisecond)},
	})
	signal := final.StopSignal()
	fmt.Println(final.Status(), signal.Reason, signal.Message, err)
	// Output: stopped time_limit the time limit of 10ms has passed <nil>
}

// A meter over many runs, for each agent.
func ExampleUsage() {
	var mu sync.Mutex
	tokens := map[string]int64{}
	meter := processor.Usage(func(_ context.Context, s agent.State, used agent.Usage) {
		mu.Lock()
		defer mu.Unlock()
		tokens[s.Run().Agent] += used.Tokens()
	})
	a := agent.New(agent.Config{Name: "greeter", Driver: hello, AroundStep: []agent.Processor{meter}}).MustGet()
	for range 2 {
		if err := a.Run(context.Background(), agent.NewState(), agent.UserText("hi")).Error(); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(tokens)
	// Output:
	//     step
	//     step
	// map[greeter:30]
}
