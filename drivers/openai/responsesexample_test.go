package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers/openai"
)

// reasoningService stands for a service with a model that reasons before it calls a tool. It prints the types of the
// items that it is sent.
func reasoningService(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Store bool
		Input []struct{ Type, Role string }
	}
	if json.NewDecoder(r.Body).Decode(&request) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	fmt.Print(r.URL.Path, " store: ", request.Store, " input:")
	for _, item := range request.Input {
		fmt.Print(" ", item.Type+item.Role)
	}
	fmt.Println()
	output := `{"type":"reasoning","id":"rs_1","encrypted_content":"gAAAAABp","summary":[{"type":"summary_text","text":"I look it up."}]},
		{"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":"{}","status":"completed"}`
	if len(request.Input) > 1 {
		output = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It is 42.","annotations":[]}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"id":"resp_1","object":"response","status":"completed","model":"gpt-5.1","output":[`+output+`]}`)
}

// What the model thought goes back with the call that it led to.
func ExampleNewResponses() {
	server := httptest.NewServer(http.HandlerFunc(reasoningService))
	defer server.Close()

	driver, err := openai.NewResponses(openai.Config{Model: "gpt-5.1", BaseURL: server.URL + "/v1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	tools := agenttest.Tools{"look": func(context.Context, agent.ToolCall) (string, error) { return "42", nil }}
	a := agent.New(agent.Config{
		Driver: driver, Executor: tools.Executor(),
		Request: agent.Request{
			Tools:   tools.Specs(),
			Options: agent.Options{}.With("reasoning", map[string]any{"effort": "low", "summary": "auto"}),
		},
	}).MustGet()
	final, err := a.Run(context.Background(), agent.NewState(), agent.UserText("What is the answer?")).Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, part := range final.Message(1).Content().Parts() {
		if part.Kind == agent.PartReasoning && part.Text != "" {
			fmt.Println("thought:", part.Text)
		}
	}
	fmt.Println(final.Answer())
	// Output:
	// /v1/responses store: false input: user
	// /v1/responses store: false input: user reasoning function_call function_call_output
	// thought: I look it up.
	// It is 42.
}

// A deployment at Azure is asked with a key or, as here, with a token. BaseURL is the resource's address,
// https://RESOURCE.openai.azure.com; a server stands in for it.
func ExampleConfig_azure() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL)
		fmt.Println(r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model":"gpt-4o","choices":[{"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()

	driver, err := openai.New(openai.Config{
		Model: "my-deployment", BaseURL: server.URL, APIVersion: "2024-10-21",
		Token: func(context.Context) (string, error) { return "eyJ0.token", nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	step, err := driver.Next(context.Background(), agent.NewState(agent.UserText("hello"))).Get()
	fmt.Println(step.Message.Text(), err)
	// Output:
	// /openai/deployments/my-deployment/chat/completions?api-version=2024-10-21
	// Bearer eyJ0.token
	// Hello. <nil>
}
