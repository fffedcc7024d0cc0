package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"
)

// service is a model service that speaks chat completions and says what it was told
// to, one turn after the other; the last one for ever.
type service struct {
	*httptest.Server

	log string // what was asked is appended to this file

	mu    sync.Mutex
	turns []turn
	taken chan struct{} // gets a value for each request
}

// turn is one reply: text and calls, or a status, or none at all until the asker
// hangs up.
type turn struct {
	Text   string `json:"text"`
	Calls  []call `json:"calls"`
	Status int    `json:"status"`
	Error  string `json:"error"`
	Hang   bool   `json:"hang"`
}

type call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func newService(lines, log string) (*service, error) {
	s := &service{log: log, taken: make(chan struct{}, 100)}
	for line := range strings.Lines(lines) {
		var t turn
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			return nil, fmt.Errorf("turn %d: %w", len(s.turns)+1, err)
		}
		s.turns = append(s.turns, t)
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s, nil
}

func (s *service) next(body []byte) turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log != "" {
		if f, err := os.OpenFile(s.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, _ = f.Write(append(body, '\n'))
			_ = f.Close()
		}
	}
	t := s.turns[0]
	if len(s.turns) > 1 {
		s.turns = s.turns[1:]
	}
	s.taken <- struct{}{}
	return t
}

func (s *service) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	t := s.next(body)
	switch {
	case r.URL.Path != "/v1/chat/completions":
		http.NotFound(w, r)
		return
	case t.Hang:
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
		return
	case t.Status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(t.Status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": t.Error, "type": "test"}})
		return
	}
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		whole(w, t)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	finish := "stop"
	for _, word := range strings.SplitAfter(t.Text, " ") {
		chunk(w, map[string]any{"role": "assistant", "content": word}, nil)
	}
	for i, c := range t.Calls {
		finish = "tool_calls"
		chunk(w, map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": fmt.Sprintf("call_%d", i+1), "type": "function",
			"function": map[string]any{"name": c.Name, "arguments": string(c.Arguments)},
		}}}, nil)
	}
	chunk(w, map[string]any{}, finish)
	data(w, map[string]any{
		"id": "reply", "object": "chat.completion.chunk", "model": "test-model", "choices": []any{},
		"usage": map[string]any{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
	})
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// whole sends a reply in one piece, as runs that are resumed ask for it.
func whole(w http.ResponseWriter, t turn) {
	message := map[string]any{"role": "assistant", "content": t.Text}
	finish := "stop"
	for i, c := range t.Calls {
		finish = "tool_calls"
		calls, _ := message["tool_calls"].([]any)
		message["tool_calls"] = append(calls, map[string]any{
			"id": fmt.Sprintf("call_%d", i+1), "type": "function",
			"function": map[string]any{"name": c.Name, "arguments": string(c.Arguments)},
		})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "reply", "object": "chat.completion", "model": "test-model",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
	})
}

func chunk(w io.Writer, delta map[string]any, finish any) {
	data(w, map[string]any{
		"id": "reply", "object": "chat.completion.chunk", "model": "test-model",
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	})
}

func data(w io.Writer, value any) {
	text, _ := json.Marshal(value)
	_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
}
