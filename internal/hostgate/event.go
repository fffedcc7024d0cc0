package hostgate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Host is a coding agent that calls hooks.
type Host string

// The hosts, named as in commands.
const (
	ClaudeCode Host = "claude-code"
	Codex      Host = "codex"
	GeminiCLI  Host = "gemini-cli"
	Copilot    Host = "copilot"
	Cursor     Host = "cursor"
	OpenCode   Host = "opencode"
)

// Hosts lists all hosts.
var Hosts = []Host{ClaudeCode, Codex, GeminiCLI, Copilot, Cursor, OpenCode}

// Options configure decoding. The zero value is ready to use.
type Options struct {
	// Servers are the names of MCP servers. Hosts join a server's and a tool's name with a character that both may contain,
	// or send no server at all, so that only this list tells them apart.
	Servers []string
}

// Call is a tool call with this module's names.
type Call struct {
	Tool string `json:"tool"`
	// Arguments is a JSON object.
	Arguments string `json:"arguments"`
}

// Event is a message from a host to a hook.
type Event struct {
	Host Host
	// Name is the host's name of the event, and Point ours. Point is empty for an event without a counterpart.
	Name  string
	Point hooks.PointName
	// Session is the host's ID of the conversation, Agent the ID of a sub-agent in it, and Dir the working folder.
	Session, Agent, Dir string
	// Transcript is the path of the host's transcript. It may be empty.
	Transcript string
	// CallID is empty in hosts without such IDs.
	CallID string
	// HostTool is the tool's name in the host. Calls has the call, then the calls that are hidden in it.
	HostTool string
	Calls    []Call
	// Unclear, unless empty, says why the call must not run, whatever the rules are.
	Unclear string
	// Texts is the text in a tool's result. Failed reports that the tool failed.
	Texts  []string
	Failed bool
	// Prompt is the user's input at InputSubmitted. It is empty for input that no person has written.
	Prompt string

	codec  codec
	input  call
	result any // the host's result, decoded
}

// Decision is what to do about a call.
type Decision string

// The decisions. The zero value is no opinion.
const (
	Deny Decision = "deny"
	Ask  Decision = "ask"
)

// Answer is the answer to an event.
type Answer struct {
	Decision Decision
	// Reason is for the model, and for the person who is asked.
	Reason string
	// Arguments, unless empty, replaces the arguments of Event.Calls[0] as a whole.
	Arguments string
	// Texts, unless nil, replaces the result: text by text if there are as many as in the event, otherwise as one.
	Texts []string
	// Context is added to the conversation, in hosts that can.
	Context string
}

// Output is a hook process's output. Its exit code is always zero, because some hosts show the model the hook's command
// line otherwise.
type Output []byte

// codec is one host's form of events and answers.
type codec interface {
	// read fills in the event from the host's members.
	read(w *wire, e *Event) error
	// pass, deny, ask, rewrite and replace return the answer's members, or nil for no output.
	pass(e *Event, context string) object
	deny(e *Event, reason string) object
	// ask returns nil if the host cannot ask.
	ask(e *Event, reason string, arguments json.RawMessage) object
	// rewrite returns nil if the host cannot replace the arguments.
	rewrite(e *Event, arguments json.RawMessage, context string) object
	replace(e *Event, texts []string, context string) object
}

type object = map[string]any

var codecs = map[Host]codec{
	ClaudeCode: claude{}, Codex: codex{}, GeminiCLI: gemini{}, Copilot: copilot{}, Cursor: cursor{}, OpenCode: opencode{},
}

// Decode reads an event. An error means that the host's call must be refused: see Refusal.
func Decode(h Host, stdin []byte, o Options) (*Event, error) {
	c, ok := codecs[h]
	if !ok {
		return nil, fmt.Errorf("unknown host %q: expected one of %v", h, Hosts)
	}
	var w wire
	if err := strictjson.Unmarshal(stdin, &w); err != nil {
		return nil, fmt.Errorf("reading the event of %s: %w", h, err)
	}
	w.servers = o.Servers
	e := &Event{Host: h, codec: c}
	if err := c.read(&w, e); err != nil {
		return nil, fmt.Errorf("reading the event of %s: %w", h, err)
	}
	if e.Name == "" {
		return nil, fmt.Errorf("reading the event of %s: it has no name", h)
	}
	return e, nil
}

// IsTool reports whether the event is about a tool call: before it, or after it.
func (e *Event) IsTool() bool {
	return e.Point == hooks.PreToolUse || e.IsResult() || e.Point == hooks.InterventionRequested
}

// IsResult reports whether the event is about a tool's result.
func (e *Event) IsResult() bool { return e.Point == hooks.PostToolUse || e.Point == hooks.ToolFailed }

// Output returns the answer in the host's form.
func (e *Event) Output(a Answer) Output {
	switch {
	case e.Point == hooks.InterventionRequested && a.Decision != Deny:
		a = Answer{}
	case e.IsResult():
		if a.Decision != "" { // the call is over: its result is withheld
			a.Decision, a.Texts = "", []string{"result withheld: " + reasonOf(a)}
		}
		if a.Texts != nil && !slices.Equal(a.Texts, e.Texts) {
			return printObject(e.codec.replace(e, a.Texts, a.Context))
		}
	case e.IsTool():
	default:
		a.Decision, a.Arguments = "", ""
	}
	var input json.RawMessage
	if a.Arguments != "" && a.Decision != Deny {
		var err error
		if input, err = e.input.restore(a.Arguments); err != nil {
			return printObject(e.codec.deny(e, fmt.Sprintf("the rewritten arguments do not fit the tool %s: %v", e.HostTool, err)))
		}
	}
	switch {
	case a.Decision == Deny:
		return printObject(e.codec.deny(e, reasonOf(a)))
	case a.Decision == Ask:
		if asked := e.codec.ask(e, reasonOf(a), input); asked != nil {
			return printObject(asked)
		}
		return printObject(e.codec.deny(e, reasonOf(a)))
	case input != nil:
		if changed := e.codec.rewrite(e, input, a.Context); changed != nil {
			return printObject(changed)
		}
		return printObject(e.codec.deny(e, "a rule changes the arguments of this call, and "+string(e.Host)+" cannot do that here"))
	}
	return printObject(e.codec.pass(e, a.Context))
}

// CanAsk reports whether the host asks the user itself when the answer is Ask.
func (e *Event) CanAsk() bool { return e.codec.ask(e, "?", nil) != nil }

// reasonOf returns the reason, which is never empty: Codex ignores a denial without one.
func reasonOf(a Answer) string {
	return cmp.Or(strings.TrimSpace(a.Reason), "no reason given")
}

// Refusal returns a denial for an event that Decode did not read. If the name of the event can be read and nothing can be
// denied there, it is no opinion.
func Refusal(h Host, stdin []byte, reason string) Output {
	c, ok := codecs[h]
	if !ok {
		return nil
	}
	var w wire
	e := &Event{Host: h, codec: c}
	err := json.Unmarshal(stdin, &w)                                           // not strict: as much as can be read
	if err != nil || cmp.Or(w.Session, w.SessionCamel, w.Conversation) == "" { // for Copilot, whose events have no name
		w.ToolName, w.ToolNameCamel = cmp.Or(w.ToolName, "?"), cmp.Or(w.ToolNameCamel, "?")
	}
	w.ToolInput, w.ToolArgs = nil, nil
	if err := c.read(&w, e); err != nil || e.Name == "" || e.Point == "" && !known(h, e.Name) {
		e.Point = hooks.PreToolUse
		e.Name = cmp.Or(e.Name, firstEvent[h])
	}
	return e.Output(Answer{Decision: Deny, Reason: reason})
}

// firstEvent is each host's name of the event before a call.
var firstEvent = map[Host]string{
	ClaudeCode: "PreToolUse", Codex: "PreToolUse", GeminiCLI: "BeforeTool", Copilot: "preToolUse", Cursor: "preToolUse",
	OpenCode: "tool.execute.before",
}

// known reports whether the host has an event of this name, so that it is no call.
func known(h Host, name string) bool { return slices.Contains(strings.Fields(others[h]), name) }

// others lists each host's events that are not about calls.
var others = map[Host]string{
	ClaudeCode: "SessionStart Setup InstructionsLoaded UserPromptSubmit UserPromptExpansion PermissionDenied PostToolBatch Notification " +
		"MessageDisplay SubagentStart SubagentStop TaskCreated TaskCompleted TeammateIdle Stop StopFailure ConfigChange CwdChanged " +
		"DirectoryAdded FileChanged WorktreeCreate WorktreeRemove PreCompact PostCompact PreModelSwitch PostModelSwitch SessionEnd " +
		"Elicitation ElicitationResult",
	Codex:     "UserPromptSubmit SessionStart SessionEnd SubagentStart SubagentStop Stop PreCompact PostCompact Interrupt",
	GeminiCLI: "BeforeAgent AfterAgent BeforeModel AfterModel BeforeToolSelection SessionStart SessionEnd Notification PreCompress",
	Copilot: "sessionStart SessionStart sessionEnd SessionEnd userPromptSubmitted UserPromptSubmit userPromptTransformed agentStop Stop " +
		"subagentStart SubagentStart subagentStop SubagentStop errorOccurred preCompact PreCompact notification Notification",
	Cursor: "sessionStart sessionEnd subagentStart subagentStop afterShellExecution afterMCPExecution afterFileEdit beforeSubmitPrompt " +
		"preCompact stop afterAgentResponse afterAgentThought beforeTabFileRead afterTabFileEdit workspaceOpen",
	OpenCode: "chat.message",
}

// printObject returns an object as one line of JSON.
func printObject(o object) Output {
	if o == nil {
		return nil
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil { // only texts and JSON that was read
		panic(err)
	}
	return Output(b.String())
}
