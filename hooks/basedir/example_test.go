package basedir_test

import (
	"context"
	"fmt"
	"os"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks/basedir"
	"github.com/grapnel-go/grapnel/toolexec"
)

func Example() {
	dir, err := os.MkdirTemp("", "project")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	guard, err := basedir.Guard(dir, basedir.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}

	move := toolexec.Func("move", "Moves a file.", func(_ context.Context, in struct {
		Source      string `json:"source"`
		Destination string `json:"destination"`
	},
	) (string, error) {
		return "moved " + in.Source + " to " + in.Destination, nil
	})
	model := agenttest.Script(
		agenttest.Call("move", `{"source": "draft.txt", "destination": "done/final.txt"}`),
		agenttest.Call("move", `{"source": "done/final.txt", "destination": "~root/.ssh/authorized_keys"}`),
		agenttest.Say("I could only move it inside of the project."),
	)
	a := builder.New().WithDriver(model).With(capability.UseTools(move), capability.UseHooks(guard)).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("Publish the draft.")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println(m.Text())
		}
	}
	// Output:
	// moved draft.txt to done/final.txt
	// tool "move": denied by base-dir: argument "destination": the path "~root/.ssh/authorized_keys" may be in a home directory; begin it with ./ if it is not
}
