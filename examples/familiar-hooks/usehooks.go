package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/basedir"
	"github.com/grapnel-go/grapnel/toolexec"
)

// outputs is the list of bash's answers in a run, in the state's metadata.
var outputs = agent.RunKey[[]string]("outputs")

// useHooks keeps bash inside a directory, copies bash's answers into the run's metadata, and prints how long each step
// took.
func useHooks(ctx context.Context, out io.Writer) error {
	base, err := os.MkdirTemp("", "familiar-hooks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	bash := toolexec.Func("bash", "Runs a command in a directory.", func(_ context.Context, in struct {
		Command string `json:"command"`
		Dir     string `json:"dir"`
	},
	) (string, error) {
		return fmt.Sprintf("%s: done in %s", in.Command, in.Dir), nil
	})
	inside, err := basedir.Guard(base, basedir.Options{Fields: []string{"dir"}})
	if err != nil {
		return err
	}
	copies := hooks.On(hooks.AtPostToolUse, "copy-output", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		if c.Denied() {
			return c.Pass()
		}
		return c.Allow(outputs.Set(append(slices.Clip(outputs.Or(c.State(), nil)), c.Text())))
	}, hooks.ToolNamed("bash"))
	telemetry := hooks.Observe(hooks.AtStepEnd, "step-duration", func(_ context.Context, c hooks.StepEndContext) error {
		_, err := fmt.Fprintf(out, "telemetry: step %d (%s) took %v\n", c.StepIndex(), c.Kind(), roundTime(c.Duration()))
		return err
	})

	model := agenttest.Script(
		delayTurn(100*time.Millisecond, agenttest.Call("bash", `{"command":"ls","dir":"src"}`)),
		delayTurn(300*time.Millisecond, agenttest.Call("bash", `{"command":"rm -rf .","dir":"../etc"}`)),
		delayTurn(100*time.Millisecond, agenttest.Call("bash", `{"command":"go test","dir":"."}`)),
		agenttest.Say("The tests pass."),
	)
	a, err := newAgent("builder", model, []toolexec.Tool{bash}, inside.Matching(hooks.ToolNamed("bash")), copies, telemetry)
	if err != nil {
		return err
	}
	final, err := a.Run(ctx, agent.NewState(), agent.UserText("Test it.")).Get()
	if err != nil {
		return err
	}
	for _, step := range final.Steps() {
		for _, r := range step.Results() {
			if r.Denied() {
				fmt.Fprintf(out, "denied by %s: %s\n", r.DecidedBy, r.Original().Arguments)
			}
		}
	}
	fmt.Fprintf(out, "metadata: %q\n", outputs.Or(final, nil))
	return nil
}
