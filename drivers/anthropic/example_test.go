package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
)

// A run with a tool. The service is a small server here, which answers as the real
// one does: first with a call, then with an answer.
func Example() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, reason := `{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Bern"}}`, "tool_use"
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "tool_result") {
			content, reason = `{"type":"text","text":"Take an umbrella."}`, "end_turn"
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[%s],`+
			`"stop_reason":%q,"usage":{"input_tokens":500,"output_tokens":20}}`, content, reason)
	}))
	defer service.Close()

	driver, err := anthropic.New(anthropic.Config{
		Model:      "claude-haiku-4-5",
		BaseURL:    service.URL, // leave it away, and set ANTHROPIC_API_KEY, to ask Claude
		HTTPClient: service.Client(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	tools := agenttest.Tools{"weather": func(context.Context, agent.ToolCall) (string, error) { return "rain", nil }}
	a, err := agent.New(agent.Config{
		Driver: driver, Executor: tools.Executor(),
		Request: agent.Request{Instructions: "Be brief.", Tools: tools.Specs()},
	}).Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	final, err := a.Run(context.Background(), agent.NewState(), agent.UserText("How is Bern?")).Get()
	fmt.Println(final.Answer(), err)
	fmt.Println(final.RunStepCount(), "steps,", final.RunUsage().Tokens(), "tokens")
	// Output:
	// Take an umbrella. <nil>
	// 2 steps, 1040 tokens
}

// What an agent asks for besides what all services know.
func ExampleConfig() {
	driver, err := anthropic.New(anthropic.Config{Model: "claude-opus-5-5", APIKey: "sk-ant-…", Cache: anthropic.CacheShort})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := agent.Request{
		Instructions: "You are thorough.",
		Options: agent.Options{}.
			With("thinking", map[string]any{"type": "adaptive"}).
			With("output_config", map[string]any{"effort": "high"}),
	}
	fmt.Println(driver, driver.Features().ContextTokens)
	for name := range request.Options.All() {
		fmt.Println(name)
	}
	// Output:
	// anthropic/claude-opus-5-5 1000000
	// output_config
	// thinking
}
