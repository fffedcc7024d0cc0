// Package desktest checks the agents of these examples with a scripted model.
package desktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/examples/frameworks/desk"
)

// model is a chat completions service. After a user's message it calls the tool, and after a result it ends.
type model struct {
	tool, arguments string

	mu   sync.Mutex
	read []string // tool results
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Parameters struct {
					Properties map[string]any `json:"properties"`
				} `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	message := map[string]any{"role": "assistant", "content": "Done."}
	reason := "stop"
	last := request.Messages[len(request.Messages)-1]
	if last.Role == "tool" {
		m.mu.Lock()
		m.read = append(m.read, textIn(last.Content))
		m.mu.Unlock()
	} else {
		arguments := m.arguments
		if _, single := request.Tools[0].Function.Parameters.Properties["__arg1"]; single { // a tool of langchaingo
			arguments = asJSON(map[string]string{"__arg1": arguments})
		}
		reason, message["content"] = "tool_calls", ""
		message["tool_calls"] = []any{map[string]any{
			"id": "call-1", "type": "function", "function": map[string]any{"name": m.tool, "arguments": arguments},
		}}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, asJSON(map[string]any{
		"id": "1", "object": "chat.completion", "model": desk.Model,
		"choices": []any{map[string]any{"index": 0, "finish_reason": reason, "message": message}},
		"usage":   map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	}))
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func textIn(content any) string {
	if text, ok := content.(string); ok {
		return text
	}
	return asJSON(content)
}

// Test checks an agent, and that the lines of main.go that end with "// guard" or "// ask" are few.
func Test(t *testing.T, run desk.Run) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	assert.LessOrEqual(t, bytes.Count(source, []byte("// guard\n")), 10, "lines for the guard")
	assert.LessOrEqual(t, bytes.Count(source, []byte("// ask\n")), 14, "lines for questions")
	t.Chdir("..") // to the policy
	for name, c := range map[string]struct {
		input, tool, arguments string
		no                     bool // the person's answer
		ran                    []string
		questions              int
		read, hidden           string // by the model
	}{
		"allowed": {input: "Pay Ann 5.", tool: "pay", arguments: `{"to":"Ann","amount":5}`, ran: []string{"pay Ann 5"}, read: "paid 5 to Ann"},
		"denied":  {input: "Pay Bob 500.", tool: "pay", arguments: `{"to":"Bob","amount":500}`, read: "denied by desk/limit: 500 is not between 0 and 100"},
		"session": {input: "Pay Ann 5.", tool: "pay", arguments: `{"to":"Eve","amount":5}`, read: "denied by desk/payee: the user did not name Eve"},
		"redacted": {
			input: "Read the mail.", tool: "read_mail", arguments: `{"name":"in"}`, ran: []string{"read_mail in"},
			read: "The key is", hidden: "IOSFODNN7EXAMPLQ",
		},
		"approved": {
			input: "Pay Bob 70.", tool: "pay", arguments: `{"to":"Bob","amount":70}`, ran: []string{"pay Bob 70"},
			questions: 1, read: "paid 70 to Bob",
		},
		"rejected": {input: "Pay Bob 70.", tool: "pay", arguments: `{"to":"Bob","amount":70}`, no: true, questions: 1, read: "rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &model{tool: c.tool, arguments: c.arguments}
			server := httptest.NewServer(m)
			defer server.Close()
			t.Setenv("OPENAI_API_KEY", "none")
			var questions []string
			d := &desk.Desk{Approve: func(question string) bool {
				questions = append(questions, question)
				return !c.no
			}}
			answer, err := run(t.Context(), d, server.URL, c.input)
			require.NoError(t, err)
			assert.Equal(t, "Done.", answer)
			assert.Equal(t, c.ran, d.Ran())
			assert.Len(t, questions, c.questions)
			require.NotEmpty(t, m.read)
			assert.Contains(t, m.read[len(m.read)-1], c.read)
			if c.hidden != "" {
				assert.NotContains(t, m.read[0], c.hidden)
			}
		})
	}
}
