package hostgate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// wire has the members of all hosts' events.
type wire struct {
	// All but opencode; Copilot has both spellings.
	Event         string          `json:"hook_event_name"`
	HookName      string          `json:"hookName"`
	Session       string          `json:"session_id"`
	SessionCamel  string          `json:"sessionId"`
	Conversation  string          `json:"conversation_id"`
	Dir           string          `json:"cwd"`
	Workspaces    []string        `json:"workspace_roots"`
	Transcript    *string         `json:"transcript_path"`
	TranscriptC   string          `json:"transcriptPath"`
	AgentID       string          `json:"agent_id"`
	ToolName      string          `json:"tool_name"`
	ToolNameCamel string          `json:"toolName"`
	ToolInput     json.RawMessage `json:"tool_input"`
	ToolInputC    json.RawMessage `json:"toolInput"`
	ToolArgs      json.RawMessage `json:"toolArgs"`
	CallID        string          `json:"tool_use_id"`
	Response      json.RawMessage `json:"tool_response"`
	Result        json.RawMessage `json:"tool_result"`
	ResultCamel   json.RawMessage `json:"toolResult"`
	Output        json.RawMessage `json:"tool_output"`
	Error         json.RawMessage `json:"error"`
	ErrorMessage  string          `json:"error_message"`
	Prompt        string          `json:"prompt"`
	PromptSource  json.RawMessage `json:"source"`

	// Gemini CLI.
	MCP *struct {
		Server string `json:"server_name"`
		Tool   string `json:"tool_name"`
	} `json:"mcp_context"`

	// Cursor, events for one kind of tool.
	Command  *string `json:"command"`
	FilePath *string `json:"file_path"`

	// opencode: what the plugin sends.
	Hook      string `json:"hook"`
	Directory string `json:"directory"`
	In        *struct {
		Tool    string          `json:"tool"`
		Session string          `json:"sessionID"`
		CallID  string          `json:"callID"`
		Args    json.RawMessage `json:"args"`
	} `json:"input"`
	Out json.RawMessage `json:"output"`

	servers []string
}

func (w *wire) transcript() string {
	if w.Transcript != nil {
		return *w.Transcript
	}
	return w.TranscriptC
}

// source returns the member source if it is a text.
func (w *wire) source() string {
	text, _ := strictjson.Unquote(string(w.PromptSource))
	return text
}

// textOf returns raw JSON as a text: the text itself if it is one.
func textOf(raw json.RawMessage) string {
	if s, ok := strictjson.Unquote(string(raw)); ok {
		return s
	}
	return string(raw)
}

// formKeys are keys whose words are part of a result's form.
var formKeys = []string{"type", "mode", "status", "resultType", "result_type", "mimeType", "role"}

// isForm reports whether a text is part of a result's form: a short word under such a key.
func isForm(key string, v any) bool {
	word, ok := v.(string)
	return ok && slices.Contains(formKeys, key) && len(word) <= 20 &&
		strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/-") == ""
}

// textsIn returns the texts in v, in order, and putTexts returns v with other texts in their places.
func textsIn(v any) (out []string) {
	walkTexts(v, func(s string) string { out = append(out, s); return s })
	return out
}

func putTexts(v any, texts []string) any {
	if len(texts) == 1 && texts[0] != "" { // one text for all: in the first place
		first := true
		return walkTexts(v, func(string) string {
			if !first {
				return ""
			}
			first = false
			return texts[0]
		})
	}
	i := 0
	return walkTexts(v, func(string) string { i++; return texts[i-1] })
}

// walkTexts returns a copy of v in which f has replaced every text, in the order of the sorted keys.
func walkTexts(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = walkTexts(v[i], f)
		}
		return out
	case map[string]any:
		out := maps.Clone(v)
		for _, key := range slices.SortedFunc(maps.Keys(v), mainFirst) {
			if !isForm(key, v[key]) {
				out[key] = walkTexts(v[key], f)
			}
		}
		return out
	}
	return v
}

// mainTexts are keys of a result's main text, which stands before the others.
var mainTexts = []string{"stdout", "content", "text", "result", "output", "stderr"}

func mainFirst(a, b string) int {
	rank := func(key string) int {
		if i := slices.Index(mainTexts, key); i >= 0 {
			return i
		}
		return len(mainTexts)
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// fitTexts returns texts for n places: as they are, or joined for one place.
func fitTexts(list []string, n int) []string {
	if len(list) == n {
		return list
	}
	return []string{joinTexts(list)}
}

// joinTexts returns the texts as one, which is not empty.
func joinTexts(list []string) string {
	joined := strings.Join(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" }), "\n")
	if joined == "" {
		return "(no output)"
	}
	return joined
}

// decodeResult returns JSON as a value whose numbers keep their digits. A result that cannot be decoded counts as one text.
func decodeResult(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	var v any
	if strictjson.Unmarshal(raw, &v) != nil {
		return strings.ToValidUTF8(string(raw), string(utf8.RuneError))
	}
	return v
}

// readMembers returns the members of a JSON object.
func readMembers(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]json.RawMessage{}, nil
	}
	if s, ok := strictjson.Unquote(string(raw)); ok { // Cursor sends an object as a text
		raw = json.RawMessage(s)
	}
	if err := strictjson.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("the arguments are no JSON object: %w", err)
	}
	return m, nil
}
