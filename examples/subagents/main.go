// Command subagents shows an agent that delegates work to another. The first agent's hook also applies to the second,
// so delegation cannot bypass it. The models are scripts, and the web is a map.
//
//	go run ./examples/subagents
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

func main() {
	if err := runEditor(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

type Fetch struct {
	Host string `json:"host"`
}

var web = map[string]string{"docs.example.com": "Grapnels have four hooks.", "intranet.example.com": "The price will fall on Monday."}

var fetch = toolexec.Func("fetch", "Reads the page of a host.", func(_ context.Context, in Fetch) (string, error) {
	return web[in.Host], nil
})

// onlyDocs returns a hook that lets agents read the documentation and nothing else.
func onlyDocs(out io.Writer) hooks.Hook {
	return hooks.OnCall("only-docs", "fetch", func(_ context.Context, c hooks.ToolContext, in Fetch) hooks.Result {
		fmt.Fprintf(out, "only-docs: the %s, at depth %d, wants to read %s\n", c.Run().Agent, c.Run().Depth, in.Host)
		if in.Host != "docs.example.com" {
			return c.Deny("read docs.example.com only")
		}
		return c.Allow()
	})
}

func runEditor(ctx context.Context, out io.Writer) error {
	// The researcher has a tool and no hook of its own.
	researcher := builder.New().WithName("researcher").
		WithDriver(agenttest.Script(
			agenttest.Call("fetch", `{"host":"docs.example.com"}`).Call("fetch", `{"host":"intranet.example.com"}`),
			agenttest.Say("Grapnels have four hooks. I may not read the intranet."),
		)).
		With(capability.UseTools(fetch), capability.UseGuards{Steps: 5})

	// The editor has the hook. It cannot fetch: it gives work to the researcher with the tool task.
	editor, err := builder.New().WithName("editor").
		WithDriver(agenttest.Script(
			agenttest.Call("task", `{"agent":"researcher","instruction":"Find out what grapnels have and what they will cost."}`),
			agenttest.Say("Grapnels have four hooks; what they will cost is not public."),
		)).
		With(
			capability.UseSubagents{Agents: []capability.Subagent{{Agent: researcher, Description: "reads pages"}}},
			capability.UseHooks(onlyDocs(out)),
		).
		Build().Get()
	if err != nil {
		return err
	}
	final, err := editor.Run(ctx, agent.NewState(), agent.UserText("Write a line about grapnels.")).Get()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s", agenttest.Transcript(final))
	return nil
}
