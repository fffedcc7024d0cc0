package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
)

// searching is a model that never has enough, and pays a cent for each turn.
var searching = agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
	return agent.Step{
		Message:      agent.Assistant("", agent.ToolCall{Name: "search"}),
		FinishReason: agent.FinishToolCalls,
		Usage:        agent.Usage{InputTokens: 900, OutputTokens: 100, Cost: mo.Some(0.01)},
	}, nil
})

// end runs the agent and prints how that ends.
func end(config agent.Config) {
	final, err := agent.New(config).MustGet().Run(context.Background(), agent.NewState(), agent.UserText("find it")).Get()
	if broken, ok := errors.AsType[*agent.RunError](err); ok {
		final = broken.State
	}
	signal := final.StopSignal()
	fmt.Printf("%s after %d steps: %s: %s\n", final.Status(), final.RunStepCount(), signal.Reason, signal.Message)
}

func ExampleAll() {
	end(agent.Config{
		Driver: searching,
		Criterion: continuation.All(
			agent.Base,
			continuation.Steps(20),
			continuation.Tokens(1_000_000),
			continuation.Cost(0.03),
			continuation.Time(time.Hour),
		),
	})
	// Output: stopped after 3 steps: cost_limit: $0.03 of at most $0.03 spent
}

func ExampleSteps() {
	end(agent.Config{Driver: searching, Criterion: continuation.All(agent.Base, continuation.Steps(20))})
	// Output: stopped after 20 steps: steps_limit: 20 of at most 20 steps taken
}

func ExampleTokens() {
	end(agent.Config{Driver: searching, Criterion: continuation.All(agent.Base, continuation.Tokens(2500))})
	// Output: stopped after 3 steps: token_limit: 3000 of at most 2500 tokens used
}

// A limit that cannot be checked stops the run and says what is missing.
func ExampleCost() {
	unpriced := agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{Name: "search"}), Model: "big-1"}, nil
	})
	end(agent.Config{Driver: unpriced, Criterion: continuation.All(agent.Base, continuation.Cost(1))})
	// Output: stopped after 1 steps: cost_limit: the cost of the run is unknown, so the limit of $1 cannot be enforced: the reply of model "big-1" in step 0 came without a cost; have the driver set Usage.Cost, or remove the cost limit
}

// A limit that has passed already lets no step happen.
func ExampleTime() {
	a := agent.New(agent.Config{
		Driver:    searching,
		Criterion: continuation.All(agent.Base, continuation.Time(-time.Second)),
	}).MustGet()
	final := a.Run(context.Background(), agent.NewState()).MustGet()
	fmt.Println(final.Status(), final.RunStepCount(), final.StopSignal().Reason)
	// Output: stopped 0 time_limit
}

func ExampleFinishReason() {
	end(agent.Config{
		Driver:    searching,
		Criterion: continuation.All(agent.Base, continuation.FinishReason(agent.FinishToolCalls)),
	})
	// Output: done after 1 steps: finish_reason: the model ended its turn for "tool_calls"
}

// The model is to decide, and nothing else.
func ExampleToolCallPresence() {
	end(agent.Config{
		Driver: agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			if s.RunStepCount() < 2 {
				return agent.Step{Message: agent.Assistant("", agent.ToolCall{Name: "search"})}, nil
			}
			return agent.Step{Message: agent.Assistant("found it")}, nil
		}),
		Criterion: continuation.All(continuation.ToolCallPresence(), continuation.ErrorPolicy{}),
	})
	// Output: done after 3 steps: completed:
}

func ExampleStopWhen() {
	manyMessages := func(s agent.State) bool { return s.MessageCount() > 6 }
	end(agent.Config{
		Driver:    searching,
		Criterion: continuation.All(agent.Base, continuation.StopWhen("the transcript is long", manyMessages)),
	})
	// Output: stopped after 3 steps: stop_requested: the condition "the transcript is long" is met
}

// A user's wish to cancel is read from wherever it is kept.
func ExampleUntilCancelled() {
	wishes := map[agent.SessionID]bool{"ses_1": true}
	end(agent.Config{
		Driver: searching,
		Criterion: continuation.All(agent.Base, continuation.UntilCancelled(
			func(_ context.Context, s agent.State) (bool, error) {
				return wishes["ses_1"] && s.RunStepCount() > 1, nil
			},
		)),
	})
	// Output: stopped after 2 steps: user_requested: the user wants the run to end
}

// A busy model is asked again, twice at most; anything else ends the run.
func ExampleErrorPolicy() {
	busy := agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		return agent.Step{}, rateLimitError{}
	})
	policy := continuation.ErrorPolicy{RateLimit: continuation.Retry, MaxRetries: 2}
	end(agent.Config{Driver: busy, Criterion: continuation.All(agent.Base, policy)})
	// Output: failed after 3 steps: error: 3 steps in a row failed, at last the step failed: asking the model: too many requests
}

type rateLimitError struct{}

func (rateLimitError) Error() string              { return "too many requests" }
func (rateLimitError) ErrorKind() agent.ErrorKind { return agent.KindRateLimit }
