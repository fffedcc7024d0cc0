// Command familiar-hooks shows hooks as other agent systems have them, written with Grapnel. They are hooks before and
// after a run (prepost.go), mocks and controls for tool calls (runtime.go), and hooks as a capability in an agent
// builder (usehooks.go). The models are scripts.
//
//	go run ./examples/familiar-hooks
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "familiar-hooks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	for _, example := range []struct {
		title string
		play  func(context.Context, io.Writer) error
	}{
		{"Pre- and post-hooks: one that decides, two in the background", prePost},
		{"A tool call mocked before it runs, and seen after", runtimeHooks},
		{"Hooks as a capability: a base directory, metadata, telemetry", useHooks},
	} {
		fmt.Fprintf(out, "## %s\n\n", example.title)
		if err := example.play(ctx, out); err != nil {
			return fmt.Errorf("%s: %w", example.title, err)
		}
		fmt.Fprintln(out)
	}
	return nil
}

// newAgent returns an agent with a scripted model.
func newAgent(name string, model agent.Driver, tools []toolexec.Tool, list ...hooks.Hook) (*agent.Agent, error) {
	return builder.New().WithName(name).WithDriver(model).With(capability.UseTools(tools...), capability.UseHooks(list...)).Build().Get()
}

// delayTurn returns a turn that the model begins after d.
func delayTurn(d time.Duration, turn agenttest.Turn) agenttest.Turn {
	return agenttest.Play(func(ctx context.Context, s agent.State) (agent.Step, error) {
		select {
		case <-time.After(d):
			return agenttest.Script().Then(turn).Next(ctx, s).Get()
		case <-ctx.Done():
			return agent.Step{}, context.Cause(ctx)
		}
	})
}

// roundTime returns d in steps of 50 milliseconds, so that the output is the same on each machine.
func roundTime(d time.Duration) time.Duration { return d.Round(50 * time.Millisecond) }
