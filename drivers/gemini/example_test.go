package gemini_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/gemini"
)

// A driver before a server that speaks the protocol; without BaseURL it asks
// Google, with the key in GEMINI_API_KEY.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{
			"candidates": [{"content": {"role": "model", "parts": [{"text": "Ahoy."}]}, "finishReason": "STOP"}],
			"usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 2, "thoughtsTokenCount": 10},
			"modelVersion": "gemini-3.8-flash"
		}`)
	}))
	defer server.Close()

	driver, err := gemini.New(gemini.Config{Model: "gemini-3.8-flash", BaseURL: server.URL, HTTPClient: server.Client()})
	if err != nil {
		fmt.Println(err)
		return
	}
	a := agent.New(agent.Config{Driver: driver, Request: agent.Request{Instructions: "Speak like a sailor."}}).MustGet()
	final, err := a.Run(context.Background(), agent.NewState(), agent.UserText("hello")).Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	usage := final.RunUsage()
	fmt.Println(final.Answer(), usage.InputTokens, "tokens in,", usage.OutputTokens, "out,", usage.ReasoningTokens, "of them thoughts")

	// Output:
	// POST /v1beta/models/gemini-3.8-flash:generateContent
	// Ahoy. 4 tokens in, 12 out, 10 of them thoughts
}

// Vertex AI is asked with a token, which the program gets from Google's libraries. BaseURL is only set for the server that
// stands in for it here.
func ExampleConfig_vertex() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL.Path)
		fmt.Println(r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"candidates": [{"content": {"role": "model", "parts": [{"text": "Ahoy."}]}, "finishReason": "STOP"}]}`)
	}))
	defer server.Close()

	driver, err := gemini.New(gemini.Config{
		Model: "gemini-3.8-flash", BaseURL: server.URL,
		Vertex: &drivers.Vertex{
			Project: "my-project", Location: "europe-west4",
			Token: func(context.Context) (string, error) { return "ya29.token", nil },
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	step, err := driver.Next(context.Background(), agent.NewState(agent.UserText("hello"))).Get()
	fmt.Println(step.Message.Text(), err)
	// Output:
	// /v1/projects/my-project/locations/europe-west4/publishers/google/models/gemini-3.8-flash:generateContent
	// Bearer ya29.token
	// Ahoy. <nil>
}
