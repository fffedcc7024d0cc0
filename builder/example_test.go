package builder_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// A builder prints the layers of its agent, outermost first.
func ExampleAgentBuilder_String() {
	fmt.Print(builder.New().
		WithName("helper").
		WithDriver(agenttest.Script()).
		With(capability.UseTools(toolexec.Func("read", "Reads a file.", func(context.Context, struct {
			Path string `json:"path"`
		}) (string, error) {
			return "", nil
		})), capability.UseHooks(insideBase), capability.UseGuards{Steps: 10}))
	// Output:
	// agent "helper"
	//   run            telemetry ▸ HookProcessor ▸ steps
	//   step           HookProcessor ▸ infer, prepare, execute, record
	//   driver         telemetry ▸ gauge ▸ agenttest.Driver
	//   executor       telemetry ▸ HookedToolExecutor ▸ read
	//   judge          Base, Steps(10)
	//   PreToolUse     asks base-dir
}

// insideBase denies paths that lead out of the folder.
var insideBase = hooks.On(hooks.AtPreToolUse, "base-dir",
	hooks.RequireText("path", func(_ context.Context, c hooks.ToolContext, path string) hooks.Result {
		if !filepath.IsLocal(path) {
			return c.Deny("outside of the base directory")
		}
		return c.Allow()
	}), hooks.ToolNamed("read"))

// An agent that can read files only in its folder.
func Example() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("buy milk"), 0o600)

	type file struct {
		Path string `json:"path"`
	}
	root, err := os.OpenRoot(dir) // a link does not lead out of it
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()
	read := toolexec.Func("read", "Reads a file.", func(_ context.Context, in file) (string, error) {
		text, err := root.ReadFile(in.Path)
		return string(text), err
	})

	model := agenttest.Script( // in the place of a real one
		agenttest.Call("read", `{"path":"../../etc/passwd"}`),
		agenttest.Call("read", `{"path":"notes.txt"}`),
		agenttest.Say("You need milk."),
	)
	a, err := builder.New().
		WithName("helper").
		WithDriver(model).
		WithInstructions("You are a careful assistant.").
		With(capability.UseTools(read), capability.UseHooks(insideBase), capability.UseGuards{Steps: 10}).
		Build().Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	final, err := a.Run(context.Background(), agent.NewState(), agent.UserText("what do I need?")).Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(agenttest.Transcript(final))
	// Output:
	// user: what do I need?
	// assistant calls read {"path":"../../etc/passwd"}
	// tool read (not_executed): tool "read": denied by base-dir: outside of the base directory
	// assistant calls read {"path":"notes.txt"}
	// tool read (executed): buy milk
	// assistant: You need milk.
}

// Build reports everything that is wrong in one error.
func ExampleAgentBuilder_Build() {
	audit := hooks.Observe(hooks.AtStepEnd, "audit", func(context.Context, hooks.StepEndContext) error { return nil })
	_, err := builder.New().
		WithName("helper").
		With(
			capability.UseHooks(audit, audit),
			capability.UseGuards{Steps: -2},
			capability.UseApproval(nil),
		).
		Build().Get()
	fmt.Println(err)
	// Output:
	// building agent "helper":
	// capability "guards": the limit of steps is -2: it must not be less than -1, which means none, and zero means 100
	// hook "audit" is declared twice: names must be unique
	// the approver is nil: omit it if no person can be asked
	// no driver: set one with WithDriver
}

// A builder is a value: keep the common parts of several agents in one builder, and extend it.
func ExampleAgentBuilder_With() {
	common := builder.New().WithDriver(agenttest.Script().Then(agenttest.Say("Hello!"))).With(capability.UseGuards{Steps: 10})
	loud := common.With(capability.UseHooks(hooks.On(hooks.AtPostInference, "loud", func(_ context.Context, c hooks.ReplyContext) hooks.Result {
		return c.ReplaceText(strings.ToUpper(c.Text()))
	})))
	for _, b := range []builder.AgentBuilder{common, loud} {
		a := b.Build().MustGet()
		fmt.Println(a.Run(context.Background(), agent.NewState(), agent.UserText("hi")).MustGet().Answer())
	}
	// Output:
	// Hello!
	// HELLO!
}

// The answer is a Go value. An answer that does not have its form is sent back to the model.
func ExampleRunAs() {
	type city struct {
		Name   string `json:"name"`
		People int    `json:"people" jsonschema:"in thousands"`
	}
	a := builder.New().WithDriver(agenttest.Script(
		agenttest.Say("Bergen has 294 thousand people."),
		agenttest.Say("```json\n{\"name\": \"Bergen\", \"people\": 294}\n```"),
	)).Build().MustGet()

	answer, err := builder.RunAs[city](context.Background(), a, agent.NewState(), agent.UserText("a city, please")).Get()
	if failed, ok := errors.AsType[*agent.RunError](err); ok {
		fmt.Println("no answer:", failed.State.Status())
		return
	}
	fmt.Printf("%+v after %d steps\n", answer.Value, answer.State.RunStepCount())
	// Output: {Name:Bergen People:294} after 2 steps
}
