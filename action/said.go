package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// said is the answer of the person or process that was asked.
type said struct {
	yes     bool
	message string
	// text is the complete answer, which becomes the gate's output.
	text string
}

// words are the accepted answers; true approves.
var words = map[string]bool{"approve": true, "continue": true, "reject": false, "abort": false}

// saidIn builds an answer from a word and a message.
func saidIn(word, message string) (said, error) {
	yes, ok := words[word]
	if !ok {
		return said{}, fmt.Errorf("unknown answer %.40q: expected approve (or continue) or reject (or abort)", word)
	}
	text, err := strictjson.Marshal(struct {
		Action  string `json:"action"`
		Message string `json:"message,omitempty"`
	}{word, message})
	return said{yes, message, text}, err
}

// readSaid parses an answer: {"action": "approve", "message": "…"}, possibly with other members, or the word alone.
func readSaid(text string) (said, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		return saidIn(text, "")
	}
	if err := strictjson.CheckObject(text); err != nil {
		return said{}, fmt.Errorf("invalid answer: %w", err)
	}
	var in struct {
		Action  json.RawMessage `json:"action"`
		Message json.RawMessage `json:"message"`
	}
	if err := strictjson.Unmarshal(text, &in); err != nil {
		return said{}, fmt.Errorf("invalid answer: %w", err)
	}
	action, ok := strictjson.Unquote(string(in.Action))
	message, plain := strictjson.Unquote(string(in.Message))
	if !ok || len(in.Message) > 0 && !plain {
		return said{}, errors.New(`invalid answer: expected the string "action" and optionally the string "message"`)
	}
	what, err := saidIn(action, message)
	what.text = text
	return what, err
}
