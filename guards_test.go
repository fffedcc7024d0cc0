package grapnel_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/policy/bash"
	"github.com/grapnel-go/grapnel/toolexec"
)

var noSudo = hooks.On(hooks.AtPreToolUse, "no-sudo",
	hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
		line := bash.Analyse(command, bash.Options{})
		if !line.Clear() {
			return c.Deny("the line may run more than it shows: write plain commands")
		}
		for root := range line.CommandsNamed("sudo", "su", "doas", "pkexec") {
			return c.Deny("this agent must not use " + root.Name)
		}
		return c.Allow()
	}), hooks.ToolNamed("bash"))

func Example() {
	driver := agenttest.Script(
		agenttest.Call("bash", `{"command":"s\\udo\u0020rm -rf /"}`).Call("bash", `{"cmd":"sudo rm -rf /"}`).Call("bash", `{"command":"ls"}`),
		agenttest.Say("I may not do that."),
	)
	tools := []toolexec.Tool{toolexec.Func("bash", "Runs a line.", func(_ context.Context, in struct {
		Command string `json:"command"`
	},
	) (string, error) {
		return "ran " + in.Command, nil
	})}
	a, err := builder.New().
		WithDriver(driver).
		With(
			capability.UseTools(tools...),
			capability.UseHooks(noSudo),
			capability.UseGuards{Steps: 20},
		).
		Build().Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("clean up")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println(m.Text())
		}
	}
	// Output:
	// tool "bash": denied by no-sudo: this agent must not use sudo
	// tool "bash": denied by no-sudo: argument "command" is missing: it must be a text
	// ran ls
}

// The first example of the module must also stop other spellings of sudo.
func TestFirstExampleHolds(t *testing.T) {
	t.Parallel()
	evasion.ShowsCode(t, "doc.go", "guards_test.go", "noSudo")
	evasion.Guard{
		Hooks: []hooks.Hook{noSudo}, Tool: "bash", Argument: "command",
		Allowed: []string{"ls -l", "echo sudo", "go test ./...", "grep -r 'sudo rm' ."}, Commands: []string{"sudo rm -rf /", "su root", "doas ls", "pkexec ls"},
	}.Hold(t)
}
