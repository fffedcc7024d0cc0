package modeltest

import (
	"encoding/json"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// fixture is the JSON format of a turn for the mock server.
type fixture struct {
	Match struct {
		Context string `json:"context"`
		// TurnIndex is the number of assistant replies in the messages.
		TurnIndex int `json:"turnIndex"`
		// SequenceIndex is the number of earlier requests for this turn; nil means any.
		SequenceIndex *int `json:"sequenceIndex,omitempty"`
	} `json:"match"`
	Response response `json:"response"`
	// ChunkSize is the chunk length in UTF-16 code units.
	ChunkSize int `json:"chunkSize,omitempty"`
	// TruncateAfterChunks is the number of chunks after which the connection is cut.
	TruncateAfterChunks int `json:"truncateAfterChunks,omitempty"`
	// StreamingProfile is the speed of a stream.
	StreamingProfile *profile `json:"streamingProfile,omitempty"`
}

type profile struct {
	// FirstByte is the time to the first byte in milliseconds.
	FirstByte int64 `json:"ttft"`
	// PerSecond is the number of chunks per second.
	PerSecond float64 `json:"tps,omitempty"`
}

type response struct {
	ID           string    `json:"id,omitempty"`
	Model        string    `json:"model,omitempty"`
	Content      string    `json:"content,omitempty"`
	ToolCalls    []call    `json:"toolCalls,omitempty"`
	FinishReason string    `json:"finishReason,omitempty"`
	Usage        *usage    `json:"usage,omitempty"`
	Error        *apiError `json:"error,omitempty"`
	Status       int       `json:"status,omitempty"`
	// RetryAfter is the time to wait in seconds.
	RetryAfter float64 `json:"retryAfter,omitempty"`
}

type call struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type usage struct {
	Input  int64 `json:"prompt_tokens"`
	Output int64 `json:"completion_tokens"`
	Total  int64 `json:"total_tokens"`
}

type apiError struct {
	Message string `json:"message"`
	Type    string `json:"type,omitempty"`
	Code    string `json:"code,omitempty"`
}

// stepFixture returns a fixture that answers with a step when the messages contain n replies.
func stepFixture(step agent.Step, n int) fixture {
	var f fixture
	f.Match.TurnIndex = n
	f.Response = response{
		ID: step.ID, Model: step.Model, Content: step.Message.Text(), FinishReason: string(step.FinishReason),
		Usage: &usage{step.Usage.InputTokens, step.Usage.OutputTokens, step.Usage.Tokens()},
	}
	texts := []string{f.Response.Content}
	for _, c := range step.Message.Calls() {
		if c.Arguments == "" {
			c.Arguments = "{}" // the server does not accept an empty string
		}
		f.Response.ToolCalls = append(f.Response.ToolCalls, call{c.ID, c.Name, c.Arguments})
		texts = append(texts, c.Arguments)
	}
	f.ChunkSize = chunkSize(texts...)
	return f
}

// malformed reports whether a call's arguments are not JSON.
func (f fixture) malformed() bool {
	for _, c := range f.Response.ToolCalls {
		if !json.Valid([]byte(c.Arguments)) {
			return true
		}
	}
	return false
}

// chunkSize returns a chunk length that keeps characters whole, which the server does not ensure itself, and limits
// the number of chunks.
func chunkSize(texts ...string) int {
	size := 16
	for _, text := range texts {
		size = max(size, len(text)/256)
	}
	for {
		if !splitsPair(size, texts) {
			return size
		}
		size++
	}
}

// splitsPair reports whether chunks of the given size split a character of two code units.
func splitsPair(size int, texts []string) bool {
	for _, text := range texts {
		units := utf16.Encode([]rune(text))
		for i := size; i < len(units); i += size {
			if utf16.IsSurrogate(rune(units[i])) && utf16.IsSurrogate(rune(units[i-1])) &&
				utf16.DecodeRune(rune(units[i-1]), rune(units[i])) != '�' {
				return true
			}
		}
	}
	return false
}

func encodeFixtures(t testing.TB, fixtures []fixture) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"fixtures": fixtures})
	require.NoError(t, err)
	return text
}
