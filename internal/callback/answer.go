// Package callback reads answers to gates and serves the page on which a person answers one. The listener of package
// action and the handler of package durable/gate share it.
package callback

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Path is the path prefix of a callback URL; the token follows it.
const Path = "/callback/"

// mostBytes is the maximum size of a posted answer.
const mostBytes = 64 << 10

// Answer is the answer to a gate, from a person or a process.
type Answer struct {
	Approved bool
	Message  string
	// Text is the complete answer.
	Text string
}

// words are the accepted answers; true approves.
var words = map[string]bool{"approve": true, "continue": true, "reject": false, "abort": false}

// Approves reports whether a word approves; known is false if the word is not a valid answer.
func Approves(word string) (approved, known bool) {
	approved, known = words[word]
	return approved, known
}

// Say builds an answer from a word and a message.
func Say(word, message string) (Answer, error) {
	yes, ok := words[word]
	if !ok {
		return Answer{}, fmt.Errorf("unknown answer %.40q: expected approve (or continue) or reject (or abort)", word)
	}
	text, err := strictjson.Marshal(struct {
		Action  string `json:"action"`
		Message string `json:"message,omitempty"`
	}{word, message})
	return Answer{yes, message, text}, err
}

// Parse reads an answer: {"action": "approve", "message": "…"}, possibly with other members, or a single word.
func Parse(text string) (Answer, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		return Say(text, "")
	}
	if err := strictjson.CheckObject(text); err != nil {
		return Answer{}, fmt.Errorf("invalid answer: %w", err)
	}
	var in struct {
		Action  json.RawMessage `json:"action"`
		Message json.RawMessage `json:"message"`
	}
	if err := strictjson.Unmarshal(text, &in); err != nil {
		return Answer{}, fmt.Errorf("invalid answer: %w", err)
	}
	action, ok := strictjson.Unquote(string(in.Action))
	message, plain := strictjson.Unquote(string(in.Message))
	if !ok || len(in.Message) > 0 && !plain {
		return Answer{}, errors.New(`invalid answer: expected the string "action" and optionally the string "message"`)
	}
	what, err := Say(action, message)
	what.Text = text
	return what, err
}

// Reason returns the message or, for an approval with other members, the complete answer.
func (a Answer) Reason() string {
	if plain, err := Say("approve", a.Message); a.Approved && err == nil && a.Text != plain.Text && strings.HasPrefix(a.Text, "{") {
		return a.Text
	}
	return a.Message
}

// Verdict returns the verdict on the call that waits at the gate. A rejection denies the call, and the run continues.
func (a Answer) Verdict() agent.ApprovalVerdict {
	if a.Approved {
		return agent.Approve
	}
	return agent.RejectAndContinue
}

// ReadPost parses a posted answer: JSON, a form, or an action in the query with an empty body. Status is the HTTP
// status to send with err.
func ReadPost(w http.ResponseWriter, r *http.Request) (what Answer, status int, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil {
		return Answer{}, http.StatusRequestEntityTooLarge, fmt.Errorf("the answer exceeds %d bytes", mostBytes)
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	given := r.URL.Query()
	switch {
	case media == "application/x-www-form-urlencoded" && len(body) > 0:
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return Answer{}, http.StatusBadRequest, errors.New("the body is not a form")
		}
		for name, list := range form {
			given[name] = append(given[name], list...)
		}
	case len(body) > 0:
		if what, err = Parse(string(body)); err == nil && len(given["action"]) > 0 && words[given.Get("action")] != what.Approved {
			err = errors.New("the link and the body give different answers")
		}
		return what, http.StatusBadRequest, err
	}
	for _, name := range []string{"action", "message"} {
		for _, again := range given[name] {
			if again != given.Get(name) {
				return Answer{}, http.StatusBadRequest, fmt.Errorf("%q is set more than once", name)
			}
		}
	}
	what, err = Say(given.Get("action"), given.Get("message"))
	return what, http.StatusBadRequest, err
}
