// Command mcp gives an agent the tools of a Model Context Protocol server and guards one of them with a hook. The server
// is this program again, started with the argument "server" (server.go). The model is a script.
//
//	go run ./examples/mcp
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

func main() {
	ctx := context.Background()
	if slices.Contains(os.Args[1:], "server") {
		if err := serveNotes(ctx); err != nil {
			log.Fatal(err)
		}
		return
	}
	program, err := os.Executable()
	if err == nil {
		err = useServer(ctx, os.Stdout, program)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// onlyDrafts guards one of the server's tools. Hooks see servers' tools like any others.
var onlyDrafts = hooks.OnCall("only-drafts", "mcp__notes__delete_note", func(_ context.Context, c hooks.ToolContext, in Note) hooks.Result {
	if in.Name != "draft" {
		return c.Deny("only the draft may be deleted")
	}
	return c.Allow()
})

// useServer starts the program as a server and runs an agent with its tools.
func useServer(ctx context.Context, out io.Writer, program string) error {
	notes, err := mcp.Connect(ctx, mcp.Server{Name: "notes", Command: []string{program, "server"}})
	if err != nil {
		return err
	}
	defer notes.Close() // ends the server

	for _, tool := range notes.Tools() {
		fmt.Fprintf(out, "%s: %s\n", tool.Spec().Name, tool.Spec().Description)
	}
	a, err := builder.New().
		WithDriver(agenttest.Script(
			agenttest.Call("mcp__notes__list_notes", `{}`),
			agenttest.Call("mcp__notes__delete_note", `{"name":"draft"}`).Call("mcp__notes__delete_note", `{"name":"recipes"}`),
			agenttest.Say("The draft is deleted. I may not delete your recipes."),
		)).
		With(capability.UseTools(notes.Tools()...), capability.UseHooks(onlyDrafts)).
		Build().Get()
	if err != nil {
		return err
	}
	final, err := a.Run(ctx, agent.NewState(), agent.UserText("Tidy up my notes.")).Get()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s", agenttest.Transcript(final))
	return nil
}
