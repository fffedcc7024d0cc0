package modeltest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Entry is a request as the mock server understood it, in the chat completions format for all protocols. The journal
// omits bodies of more than 64 KiB.
type Entry struct {
	Path string `json:"path"`
	Body struct {
		Model    string `json:"model"`
		Messages []struct {
			Role      string  `json:"role"`
			Content   Content `json:"content"`
			CallID    string  `json:"tool_call_id"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
		Stream bool `json:"stream"`
	} `json:"body"`
	Response struct {
		Status int `json:"status"`
	} `json:"response"`
}

// Content is a message's text, sent as a string or in parts.
type Content string

// UnmarshalJSON reads a string, a list of parts, or null.
func (c *Content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = Content(text)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	*c = Content(b.String())
	return nil
}

// Journal returns the requests to this endpoint as the mock server understood them, in the order of its answers. Only
// endpoints of a MockServer have a journal.
func (e *Endpoint) Journal(t testing.TB) []Entry {
	t.Helper()
	require.NotNil(t, e.journal, "not an endpoint of a mock server")
	text := e.journal(t)
	var entries []Entry
	require.NoError(t, json.Unmarshal(text, &entries), "the journal of the mock server: %s", text)
	return entries
}
