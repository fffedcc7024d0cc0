package adkguard_test

import (
	"context"
	"fmt"

	adk "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	adkguard "github.com/grapnel-go/grapnel/adapters/adk"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/hooks"
)

func ExampleAdapter_NewAgent() {
	type payment struct {
		To string `json:"to"`
	}
	pay, err := functiontool.New(functiontool.Config{Name: "pay", Description: "pays a person"},
		func(_ adk.Context, p payment) (string, error) { return "paid " + p.To, nil })
	if err != nil {
		panic(err)
	}
	model := newModel([]agent.ToolCall{{ID: "call-1", Name: "pay", Arguments: `{"to":"Bob"}`}})
	config := llmagent.Config{Name: "desk", Description: "a desk", Model: model, Tools: []tool.Tool{pay}}

	g, err := guard.New(guard.Config{Name: "desk", Hooks: []hooks.Hook{hooks.AlwaysDeny("closed", "the till is closed")}})
	if err != nil {
		panic(err)
	}
	guarded := adkguard.New(g)
	desk, err := guarded.NewAgent(config)
	if err != nil {
		panic(err)
	}
	r, err := runner.New(runner.Config{
		AppName: "desks", Agent: desk, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: guarded.PluginConfig(),
	})
	if err != nil {
		panic(err)
	}
	input := genai.NewContentFromText("Pay Bob.", genai.RoleUser)
	for e, err := range r.Run(context.Background(), "carla", "conversation-7", input, adk.RunConfig{}) {
		if err != nil {
			panic(err)
		}
		if answer := e.Content.Parts[0].FunctionResponse; answer != nil {
			fmt.Println(answer.Response["error"])
		}
	}
	// Output: tool "pay": denied by closed: the till is closed
}
