package recorded

import (
	"errors"
	"fmt"
	"slices"

	"github.com/grapnel-go/grapnel/drivers/replay"
)

// Format is a form in which runs are written down.
type Format string

// The forms.
const (
	Replay     Format = "replay"
	OpenAI     Format = "openai"
	Anthropic  Format = "anthropic"
	ClaudeCode Format = "claude-code"
	Events     Format = "events"
	Audit      Format = "audit"
	OTLP       Format = "otlp"
)

// Formats returns every form, in the order in which they are documented.
func Formats() []Format { return []Format{Replay, OpenAI, Anthropic, ClaudeCode, Events, Audit, OTLP} }

// FormatNamed finds a form by its name.
func FormatNamed(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats(), f) {
		return f, nil
	}
	return "", fmt.Errorf("there is no form %q of recordings: take one of %v", name, Formats())
}

// ErrUnknown is the cause when nothing is known of a file's form.
var ErrUnknown = errors.New("nothing is known of a recording like this")

// Run is one recorded run. It is the caller's to keep and to change.
type Run struct {
	replay.Record

	Format Format
	// File and Line are where the run begins. Lines count from one.
	File string
	Line int
	// Agent is the agent's name, where the form tells it.
	Agent string
	// Lacks says in half a sentence what the form does not tell of a run, such as what the user said; empty when
	// nothing is known to be missing.
	Lacks string
}

// call makes a call of a recording.
func call(id, name, arguments string) replay.ToolCall {
	return replay.ToolCall{ID: id, Type: "function", Function: replay.FunctionCall{Name: name, Arguments: arguments}}
}

// newAnswer makes the answer to a call.
func newAnswer(id, name, text string, failed bool) replay.Message {
	return replay.Message{Role: replay.RoleTool, ToolCallID: id, Name: name, Content: replay.Text(text), Error: failed}
}

// newMessage makes a message of text.
func newMessage(role replay.Role, text string) replay.Message {
	return replay.Message{Role: role, Content: replay.Text(text)}
}
