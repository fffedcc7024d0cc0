package agent

import (
	"cmp"
	"iter"
	"slices"
	"sync/atomic"
)

// Role is the role of a message's author.
type Role string

// The roles of the chat format.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a transcript. It is immutable, one word wide, and
// safe for concurrent use. The zero Message has no role and no content.
type Message struct {
	body *messageBody
}

// messageBody is immutable once the message is made, except for wire, which caches an encoding of the other fields. The
// content is in result for role tool, and in speech for all other roles.
type messageBody struct {
	*speech
	result *ToolResult
	wire   atomic.Pointer[wired]
}

// speech is the content of a system, user or assistant message.
type speech struct {
	content Content
	calls   []ToolCall // must not be written
	source  *string    // nil for none
	speaker speaker
}

// speaker is a role other than tool, as an index into roles.
type speaker uint8

const (
	nobody speaker = iota
	bySystem
	byUser
	byAssistant
)

var roles = [...]Role{nobody: "", bySystem: RoleSystem, byUser: RoleUser, byAssistant: RoleAssistant}

func speakerOf(r Role) speaker { return speaker(slices.Index(roles[:], r)) } //nolint:gosec // the role was checked

// sourceRef returns a source as a speech stores it.
func sourceRef(source string) *string {
	if source == "" {
		return nil
	}
	return &source
}

var emptyBody = messageBody{speech: new(speech)}

func (m Message) read() *messageBody {
	if m.body == nil {
		return &emptyBody
	}
	return m.body
}

// newSpeech returns a message of a role other than tool.
func newSpeech(what speech) Message {
	b := &struct {
		messageBody
		speech
	}{speech: what}
	b.messageBody.speech = &b.speech
	return Message{&b.messageBody}
}

// System returns a message with instructions for the model.
func System(text string) Message {
	return newSpeech(speech{speaker: bySystem, content: TextContent(text)})
}

// User returns a message of a user: text, images, files.
func User(parts ...Part) Message {
	return newSpeech(speech{speaker: byUser, content: ContentOf(parts...)})
}

// UserText returns a message of a user in plain text.
func UserText(text string) Message {
	return newSpeech(speech{speaker: byUser, content: TextContent(text)})
}

// Assistant returns a model's reply: text, calls, or both. The calls are copied.
func Assistant(text string, calls ...ToolCall) Message {
	return AssistantContent(TextContent(text), calls...)
}

// AssistantContent returns a model's reply with several content parts.
func AssistantContent(content Content, calls ...ToolCall) Message {
	return newSpeech(speech{speaker: byAssistant, content: content, calls: numberCalls(calls)})
}

// ToolAnswer returns the message that answers a tool call. The result is copied.
func ToolAnswer(r *ToolResult) Message {
	own := *r
	return Message{&messageBody{result: &own}}
}

// Role returns the role of the message's author.
func (m Message) Role() Role {
	b := m.read()
	if b.result != nil {
		return RoleTool
	}
	return roles[b.speaker]
}

// Content returns the message's content.
func (m Message) Content() Content {
	b := m.read()
	if b.result != nil {
		return b.result.Content
	}
	return b.content
}

// Text returns the text of the content.
func (m Message) Text() string { return m.Content().Text() }

// list returns the tool calls, which must not be modified.
func (m Message) list() []ToolCall {
	b := m.read()
	if b.result != nil {
		return nil
	}
	return b.calls
}

// CallCount returns the number of tool calls in an assistant message.
func (m Message) CallCount() int { return len(m.list()) }

// Call returns tool call i, in the model's order. It panics when i is out of range.
func (m Message) Call(i int) ToolCall { return m.list()[i] }

// Calls iterates over the tool calls in the model's order.
func (m Message) Calls() iter.Seq2[int, ToolCall] { return slices.All(m.list()) }

// emptyResult is the result of a message that answers no call.
var emptyResult ToolResult

func (m Message) toolResult() *ToolResult { return cmp.Or(m.read().result, &emptyResult) }

// CallID returns the ID of the call that a tool message answers.
func (m Message) CallID() string { return m.toolResult().CallID() }

// Tool returns the name of the tool whose call the message answers.
func (m Message) Tool() string { return m.toolResult().Tool() }

// Status returns the status of the call that a tool message answers. It is empty for other messages.
func (m Message) Status() ToolStatus { return m.toolResult().Status }

// Reason returns the code that says why the call was not executed or failed.
func (m Message) Reason() ReasonCode { return m.toolResult().Reason }

// IsError reports whether a tool message tells the model that its call failed or did not run.
func (m Message) IsError() bool { return m.toolResult().IsError() }

// Source names the author of a message that does not come from the user, the model or a tool, but from a hook, for
// example. It is empty otherwise.
func (m Message) Source() string {
	b := m.read()
	if b.result != nil {
		return b.result.DecidedBy
	}
	return *cmp.Or(b.source, new(string))
}

// WithSource returns the message with its source set.
func (m Message) WithSource(source string) Message {
	return m.changeBody(func(s *speech) { s.source = sourceRef(source) }, func(r *ToolResult) { r.DecidedBy = source })
}

// WithContent returns the message with other content and everything else unchanged.
func (m Message) WithContent(c Content) Message {
	return m.changeBody(func(s *speech) { s.content = c }, func(r *ToolResult) { r.Content = c })
}

// WithCalls returns the message with other tool calls, which are copied. A message with role tool cannot have calls and
// is returned unchanged.
func (m Message) WithCalls(calls ...ToolCall) Message {
	return m.changeBody(func(s *speech) { s.calls = numberCalls(calls) }, func(*ToolResult) {})
}

// changeBody returns a copy of the message with its speech or its result changed.
func (m Message) changeBody(speaking func(*speech), answering func(*ToolResult)) Message {
	b := m.read()
	if b.result != nil {
		r := *b.result
		answering(&r)
		return Message{&messageBody{result: &r}}
	}
	s := *b.speech
	speaking(&s)
	return newSpeech(s)
}

// Equal reports whether both messages are the same.
func (m Message) Equal(o Message) bool {
	return m.read() == o.read() || m.Role() == o.Role() && m.Content().Equal(o.Content()) &&
		slices.Equal(m.list(), o.list()) && m.Source() == o.Source() && m.CallID() == o.CallID() &&
		m.Tool() == o.Tool() && m.Status() == o.Status() && m.Reason() == o.Reason()
}
