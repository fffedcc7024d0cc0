package hookstest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/policy/bash"
	"github.com/grapnel-go/grapnel/toolexec"
)

// noPush is a hook that is worth testing.
var noPush = hooks.On(hooks.AtPreToolUse, "no-push",
	hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
		line := bash.Analyse(command, bash.Options{})
		if !line.Clear() {
			return c.Deny("the line may run more than it shows: write plain commands")
		}
		for git := range line.CommandsNamed("git") {
			switch git.Sub {
			case "status", "diff", "log", "add", "commit":
			default:
				return c.Deny("nothing is pushed: git may status, diff, log, add and commit")
			}
		}
		return c.Allow()
	}), hooks.ToolNamed("bash"))

// Fire is Moment.Fire inside of a test.
func ExampleMoment_Fire() {
	fire := func(at hookstest.Moment) hookstest.Fired {
		return at.Fire(context.Background(), hooks.NewSet(noPush)).MustGet()
	}
	fmt.Println(fire(hookstest.ToolCall("bash", `{"command":"git status"}`)))
	fmt.Println(fire(hookstest.ToolCall("bash", `{"command":"git push"}`)))
	fmt.Println(fire(hookstest.ToolCall("read_file", `{"path":"a.txt"}`)))

	denied := fire(hookstest.ToolCall("bash", `{"cmd":"git push"}`))
	fmt.Println(denied.Decision, denied.Ran())
	fmt.Println(denied.Text()) // what the model is told
	// Output:
	// allow by no-push
	// deny by no-push: nothing is pushed: git may status, diff, log, add and commit
	// pass (no hook was called)
	// deny false
	// tool "bash": denied by no-push: argument "command" is missing: it must be a text
}

// A rewrite is seen in the effective call; real tools check it against their schema.
func ExampleMoment_WithExecutor() {
	box, err := toolexec.NewToolbox(toolexec.Func("bash", "Runs a command.", func(_ context.Context, in struct {
		Command string `json:"command"`
	},
	) (string, error) {
		return "ran " + in.Command, nil
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	call := hookstest.ToolCall("bash", `{"command":"ls"}`).WithExecutor(toolexec.NewExecutor(box, toolexec.Options{}))
	for _, arguments := range []map[string]any{{"command": "ls -l"}, {"cmd": "ls -l"}} {
		tidy := hooks.On(hooks.AtPreToolUse, "tidy", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			return c.Rewrite(arguments)
		})
		fired := call.Fire(context.Background(), hooks.NewSet(tidy)).MustGet()
		fmt.Println(fired.Decision, fired.Call.Arguments, fired.Ran())
	}
	// Output:
	// rewrite {"command":"ls -l"} true
	// deny {"command":"ls"} false
}

// A hook that guards results sees a tool's answers, and the results of calls that did not run.
func ExampleMoment_WithResult() {
	redact := hooks.On(hooks.AtPostToolUse, "redact", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		if c.Status() == agent.ToolNotExecuted {
			return c.Pass()
		}
		return c.Replace(strings.ReplaceAll(c.Text(), "hunter2", "***"))
	})
	fire := func(at hookstest.Moment) hookstest.Fired {
		return at.Fire(context.Background(), hooks.NewSet(redact)).MustGet()
	}
	answer := hookstest.ToolResult("read_file", `{"path":".env"}`, "PASSWORD=hunter2")
	fmt.Println(fire(answer).Text())
	fmt.Println(fire(answer.WithResult(agent.ToolResult{
		Content: agent.TextContent("denied by hunter2"), Status: agent.ToolNotExecuted, Reason: agent.ReasonDenied,
	})).Text())
	// Output:
	// PASSWORD=***
	// denied by hunter2
}

// A moment may be anywhere: in the third step of a sub-agent's run, in a stage of a
// pipeline, with metadata.
func ExampleMoment_WithRun() {
	budget := agent.RunKey[int]("budget")
	spent := hooks.On(hooks.AtStepStart, "spent", func(_ context.Context, c hooks.StepContext) hooks.Result {
		if c.StepIndex() >= budget.Or(c.State(), 10) {
			return c.Stop("the budget of " + c.Run().Agent + " is spent")
		}
		return c.Allow()
	}, hooks.AtDepth(1, -1))

	moment := hookstest.StepStart().
		WithRun(agent.Run{Agent: "coder", Depth: 2}).
		WithEffects(budget.Set(3))
	for steps := range 4 {
		fired := moment.AfterSteps(make([]agent.Step, steps)...).Fire(context.Background(), hooks.NewSet(spent)).MustGet()
		fmt.Println(fired)
	}
	// Output:
	// allow by spent
	// allow by spent
	// allow by spent
	// stop by spent: the budget of coder is spent
}

// Failure policies and time limits apply. "Could not decide" is told apart from "said
// no".
func ExampleFired() {
	ask := hooks.On(hooks.AtInputSubmitted, "classifier", func(_ context.Context, c hooks.InputContext) hooks.Result {
		return c.Fail(errors.New("connection refused"))
	})
	for _, hook := range []hooks.Hook{ask, ask.WithFailure(hooks.Open), ask.WithFailure(hooks.Abort)} {
		fired := hookstest.Input("hello").Fire(context.Background(), hooks.NewSet(hook)).MustGet()
		fmt.Println(fired)
		fmt.Println(fired.State.Status(), "–", fired.Policy, "–", fired.Err)
	}
	// Output:
	// deny by classifier: the hook could not decide: connection refused
	// denied – closed – connection refused
	// pass (failed open: connection refused)
	// done – open – connection refused
	// pass (failed abort: connection refused)
	// failed – abort – connection refused
}
