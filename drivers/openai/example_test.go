package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/openai"
)

// service stands for an endpoint of one's own, as Ollama is one. It notes what it was
// asked.
func service(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model    string
		Messages []struct{ Role, Content string }
	}
	if json.NewDecoder(r.Body).Decode(&request) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	fmt.Println(r.URL.Path, request.Model, request.Messages)
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range []string{
		`{"model":"qwen3:8b","choices":[{"index":0,"delta":{"role":"assistant","content":"The answer"}}]}`,
		`{"model":"qwen3:8b","choices":[{"index":0,"delta":{"content":" is 42."},"finish_reason":"stop"}]}`,
		`{"model":"qwen3:8b","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":6,"total_tokens":26}}`,
		`[DONE]`,
	} {
		_, _ = io.WriteString(w, "data: "+data+"\n\n")
	}
}

func Example() {
	server := httptest.NewServer(http.HandlerFunc(service))
	defer server.Close()

	driver, err := openai.New(openai.Config{
		Model: "qwen3:8b", BaseURL: server.URL + "/v1",
		Prices:   new(drivers.NewPrices("2026-11-21", map[string]drivers.Price{"qwen3:8b": {Output: 1}})),
		Features: func(f *agent.Features) { f.Provider = "ollama" },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	a := agent.New(agent.Config{Driver: driver, Request: agent.Request{Instructions: "Be brief."}}).MustGet()
	var final agent.State
	for p, err := range a.Stream(context.Background(), agent.NewState(), agent.UserText("What is the answer?")) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if p.Delta != nil {
			fmt.Printf("%q\n", p.Delta.Text)
		}
		final = p.State
	}
	fmt.Println(final.Status(), final.Usage().Tokens(), "tokens, $", final.Usage().Cost.OrEmpty())
	// Output:
	// /v1/chat/completions qwen3:8b [{system Be brief.} {user What is the answer?}]
	// "The answer"
	// " is 42."
	// done 26 tokens, $ 6e-06
}

// A program may ask for a driver's features, instead of guessing by the model's name.
func ExampleDriver_Features() {
	driver, err := openai.New(openai.Config{
		Model: "qwen3:8b", BaseURL: "http://localhost:11434/v1",
		Features: func(f *agent.Features) { f.Provider, f.Images = "ollama", false },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	f := driver.Features()
	fmt.Println(driver, f.Endpoint)
	fmt.Println("tools:", f.Tools, "images:", f.Images, "priced:", f.Priced)

	image := agent.User(agent.Text("What is this?"), agent.ImageURL("https://example.com/cat.png"))
	fmt.Println(driver.Next(context.Background(), agent.NewState(image)).Error())
	// Output:
	// ollama/qwen3:8b http://localhost:11434/v1
	// tools: true images: false priced: false
	// asking ollama model "qwen3:8b": the request was not accepted: a message has an image: ollama/qwen3:8b does not accept images
}

// What the service has to say of a failure is in the error, and what may be done.
func ExampleNew_errors() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"Slow down.","code":"rate_limit_exceeded"}}`)
	}))
	defer server.Close()

	driver, err := openai.New(openai.Config{Model: "small", BaseURL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = driver.Next(context.Background(), agent.NewState(agent.UserText("hello"))).Error()
	fmt.Println(err)
	fmt.Println(agent.KindOf(err))
	// Output:
	// asking openai model "small": too many requests (429 rate_limit_exceeded): Slow down.; retry after 2s
	// rate_limit
}
