package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

type city struct {
	City string `json:"city"`
}

// weather returns an MCP server in this process, so that the examples need nothing else.
func weather() *httptest.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "forecast", Description: "Tells the weather of tomorrow."},
		func(ctx context.Context, r *sdk.CallToolRequest, in city) (*sdk.CallToolResult, any, error) {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "looking at the sky",
			})
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "Rain in " + in.City + "."}}}, nil, nil
		})
	sdk.AddTool(server, &sdk.Tool{Name: "make.rain"},
		func(context.Context, *sdk.CallToolRequest, city) (*sdk.CallToolResult, any, error) {
			return nil, nil, fmt.Errorf("no clouds left")
		})
	return httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
}

func ExampleConnect() {
	server := weather()
	defer server.Close()
	client, err := mcp.Connect(context.Background(), mcp.Server{Name: "weather", URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	noRain := hooks.On(hooks.AtPreToolUse, "no-rain", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Deny("we have enough of it")
	}, hooks.ToolNamed("mcp__weather__make_rain"))
	model := agenttest.Script(
		agenttest.Call("mcp__weather__forecast", `{"city":"Bergen"}`).Call("mcp__weather__make_rain", `{"city":"Cairo"}`),
		agenttest.Say("Take an umbrella."),
	)
	a, err := builder.New().WithDriver(model).
		With(capability.UseTools(client.Tools()...), capability.UseHooks(noRain)).Build().Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	final, err := a.Run(context.Background(), agent.NewState(), agent.UserText("Do I need an umbrella?")).Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(agenttest.Transcript(final))
	// Output:
	// user: Do I need an umbrella?
	// assistant calls mcp__weather__forecast {"city":"Bergen"}
	// assistant calls mcp__weather__make_rain {"city":"Cairo"}
	// tool mcp__weather__forecast (executed): Rain in Bergen.
	// tool mcp__weather__make_rain (not_executed): tool "mcp__weather__make_rain": denied by no-rain: we have enough of it
	// assistant: Take an umbrella.
}

func ExampleServer() {
	// A name that no tool has is a mistake, here and in Except: nothing would be allowed, or denied, that was meant to be.
	server := weather()
	defer server.Close()
	_, err := mcp.Connect(context.Background(), mcp.Server{Name: "weather", URL: server.URL, Only: []string{"forcast"}})
	fmt.Println(err)
	// Output:
	// listing the tools of mcp server "weather": unknown tool "forcast", which Only or Except names; available: ["forecast" "make.rain"]
}

func ExampleClient_Annotations() {
	server := weather()
	defer server.Close()
	client, err := mcp.Connect(context.Background(), mcp.Server{Name: "weather", URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	// Missing annotations mean the worst case.
	said, ok := client.Annotations("mcp__weather__forecast")
	fmt.Printf("%v %+v\n", ok, said)
	// Output:
	// true {Title: ReadOnly:false Destructive:true Idempotent:false OpenWorld:true}
}

func ExampleProgressReported() {
	server := weather()
	defer server.Close()
	client, err := mcp.Connect(context.Background(), mcp.Server{Name: "weather", URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	timeline := agent.ObserverFunc(func(_ context.Context, e agent.Event) {
		if p, ok := e.(mcp.ProgressReported); ok {
			fmt.Printf("%s: %v of %v, %s\n", p.Tool, p.Progress, p.Total, p.Message)
		}
	})
	model := agenttest.Script(agenttest.Call("mcp__weather__forecast", `{"city":"Bergen"}`), agenttest.Say("Rain."))
	a := builder.New().WithDriver(model).WithObserver(timeline).With(capability.UseTools(client.Tools()...)).Build().MustGet()
	fmt.Println(a.Run(context.Background(), agent.NewState(), agent.UserText("And tomorrow?")).MustGet().Answer())
	// Output:
	// forecast: 1 of 2, looking at the sky
	// Rain.
}
