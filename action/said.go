package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// said is what the person or process that was asked has said.
type said struct {
	yes     bool
	message string
	// text is the whole of it, as the gate's output.
	text string
}

// words are what may be said.
var words = map[string]bool{"approve": true, "continue": true, "reject": false, "abort": false}

// saidIn makes an answer of a word and a message.
func saidIn(word, message string) (said, error) {
	yes, ok := words[word]
	if !ok {
		return said{}, fmt.Errorf("%.40q is no answer: say approve (or continue) or reject (or abort)", word)
	}
	text, err := strictjson.Marshal(struct {
		Action  string `json:"action"`
		Message string `json:"message,omitempty"`
	}{word, message})
	return said{yes, message, text}, err
}

// readSaid reads an answer: {"action": "approve", "message": "…"}, with whatever else stands in there, or the word alone.
func readSaid(text string) (said, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		return saidIn(text, "")
	}
	if err := strictjson.CheckObject(text); err != nil {
		return said{}, fmt.Errorf("this is no answer: %w", err)
	}
	var in struct {
		Action  json.RawMessage `json:"action"`
		Message json.RawMessage `json:"message"`
	}
	if err := strictjson.Unmarshal(text, &in); err != nil {
		return said{}, fmt.Errorf("this is no answer: %w", err)
	}
	action, ok := strictjson.Unquote(string(in.Action))
	message, plain := strictjson.Unquote(string(in.Message))
	if !ok || len(in.Message) > 0 && !plain {
		return said{}, errors.New(`this is no answer: it needs "action", and may have "message", both of them text`)
	}
	what, err := saidIn(action, message)
	what.text = text
	return what, err
}
