package agent

import (
	"iter"
	"slices"
	"sync/atomic"
)

// Role says who speaks in a message.
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

// messageBody is written while a message is made and never again, but for wire,
// which caches what the fields already say.
type messageBody struct {
	role    Role
	content Content
	calls   []ToolCall
	source  string
	callID  string
	tool    string
	status  ToolStatus
	reason  ReasonCode
	wire    atomic.Pointer[wired]
}

var emptyBody messageBody

func (m Message) read() *messageBody {
	if m.body == nil {
		return &emptyBody
	}
	return m.body
}

// System is a message that instructs the model.
func System(text string) Message {
	return Message{&messageBody{role: RoleSystem, content: TextContent(text)}}
}

// User is what a user says: text, images, files.
func User(parts ...Part) Message {
	return Message{&messageBody{role: RoleUser, content: ContentOf(parts...)}}
}

// UserText is what a user says in plain text.
func UserText(text string) Message {
	return Message{&messageBody{role: RoleUser, content: TextContent(text)}}
}

// Assistant is a model's reply: text, calls, or both. The calls are copied.
func Assistant(text string, calls ...ToolCall) Message {
	return AssistantContent(TextContent(text), calls...)
}

// AssistantContent is a model's reply with content of several parts.
func AssistantContent(content Content, calls ...ToolCall) Message {
	if len(calls) == 1 { // most replies: the call lies in the body's own allocation
		b := &struct {
			messageBody
			call [1]ToolCall
		}{call: [1]ToolCall{calls[0]}}
		b.call[0].Index = 0
		b.role, b.content, b.calls = RoleAssistant, content, b.call[:]
		return Message{&b.messageBody}
	}
	return Message{&messageBody{role: RoleAssistant, content: content, calls: numbered(calls)}}
}

// ToolAnswer is the message that answers a tool call: what the model is told of
// the result.
func ToolAnswer(r *ToolResult) Message {
	b := new(messageBody)
	b.answer(r)
	return Message{b}
}

// answer fills a new body in.
func (b *messageBody) answer(r *ToolResult) {
	b.role, b.content, b.callID, b.tool = RoleTool, r.Content, r.CallID(), r.Tool()
	b.status, b.reason, b.source = r.Status, r.Reason, r.DecidedBy
}

// Role says who speaks.
func (m Message) Role() Role { return m.read().role }

// Content is what is said.
func (m Message) Content() Content { return m.read().content }

// Text is the text of the content.
func (m Message) Text() string { return m.read().content.Text() }

// CallCount is the number of tool calls an assistant message asks for.
func (m Message) CallCount() int { return len(m.read().calls) }

// Call is tool call i, in the order the model asked. It panics when i is out of
// range.
func (m Message) Call(i int) ToolCall { return m.read().calls[i] }

// Calls iterates over the tool calls in the order the model asked.
func (m Message) Calls() iter.Seq2[int, ToolCall] { return slices.All(m.read().calls) }

// CallID is the id of the call that a tool message answers.
func (m Message) CallID() string { return m.read().callID }

// Tool is the name of the tool that a tool message answers for.
func (m Message) Tool() string { return m.read().tool }

// Status says what became of the call that a tool message answers; it is empty
// on other messages.
func (m Message) Status() ToolStatus { return m.read().status }

// Reason is the code of why the call was not executed or failed.
func (m Message) Reason() ReasonCode { return m.read().reason }

// IsError reports whether a tool message tells the model of something that did
// not work or was not done.
func (m Message) IsError() bool { return m.read().reason != "" || m.read().status == ToolFailed }

// Source is who put the message in, where that was neither the user, the model
// nor a tool: the name of a hook, for example. Empty otherwise.
func (m Message) Source() string { return m.read().source }

// WithSource returns the message with its source set.
func (m Message) WithSource(source string) Message {
	b := m.copied()
	b.source = source
	return Message{b}
}

// WithContent returns the message with other content; role, calls and the rest
// stay.
func (m Message) WithContent(c Content) Message {
	b := m.copied()
	b.content = c
	return Message{b}
}

// WithCalls returns the message with other tool calls, which are copied.
func (m Message) WithCalls(calls ...ToolCall) Message {
	b := m.copied()
	b.calls = numbered(calls)
	return Message{b}
}

// Equal reports whether both messages say the same.
func (m Message) Equal(o Message) bool {
	a, b := m.read(), o.read()
	return a == b || a.role == b.role && a.content.Equal(b.content) && slices.Equal(a.calls, b.calls) &&
		a.source == b.source && a.callID == b.callID && a.tool == b.tool && a.status == b.status && a.reason == b.reason
}

func (m Message) copied() *messageBody {
	b := m.read()
	return &messageBody{
		role: b.role, content: b.content, calls: b.calls, source: b.source,
		callID: b.callID, tool: b.tool, status: b.status, reason: b.reason,
	}
}
