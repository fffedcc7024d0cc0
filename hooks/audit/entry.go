package audit

import (
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Version is the format version that a Log writes.
const Version = 1

// Event is the kind of event that a line records.
type Event string

// The kinds of events, one line each.
const (
	RunStarted Event = "run_started"
	ToolCall   Event = "tool_call"
	ToolResult Event = "tool_result"
	Decision   Event = "decision"
	RunEnded   Event = "run_ended"
)

// Entry is one line of the log. Fields that do not belong to its event are omitted.
type Entry struct {
	Version int       `json:"v"`
	Time    time.Time `json:"time"` // in UTC
	// Log is the random ID of the Log that wrote the line. Number counts its lines from one. A gap in the numbers means
	// missing lines.
	Log    string `json:"log"`
	Number uint64 `json:"n"`
	Event  Event  `json:"event"`

	Session agent.SessionID `json:"session"`
	Run     agent.RunID     `json:"run"`
	Parent  agent.RunID     `json:"parent,omitempty"`
	Root    agent.RunID     `json:"root"`
	Depth   int             `json:"depth,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	Stage   string          `json:"stage,omitempty"`
	// Step is the step's index in the run, counted from zero.
	Step int `json:"step"`

	// Call is a tool call's ID, unique within its step. Tool is the model's name for the tool, cut to 128 bytes. The
	// tool need not exist.
	Call string `json:"call,omitempty"`
	Tool string `json:"tool,omitempty"`
	// Arguments is the hash of the arguments that the tool got, or would have got. Asked is the hash of the model's own
	// arguments, if a hook changed them.
	Arguments string `json:"arguments_hash,omitempty"`
	Asked     string `json:"asked_hash,omitempty"`

	// Decision is the decision at Point, and By names the hook or person that made it. In a tool_result, By names the
	// hook or person that denied, mocked, replaced or withheld.
	Decision hooks.Decision  `json:"decision,omitempty"`
	Point    hooks.PointName `json:"point,omitempty"`
	By       string          `json:"by,omitempty"`
	// HookFailed is set when the denial comes from the hook's failure, not from its decision.
	HookFailed bool `json:"hook_failed,omitempty"`

	// Status is the call's or run's final status. Reason is the code for its cause: an agent.ReasonCode or
	// agent.StopReason.
	Status string `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Attempts is how often the tool ran. Milliseconds is the duration of the call or the run.
	Attempts     int   `json:"attempts,omitempty"`
	Milliseconds int64 `json:"ms,omitempty"`
	// Result is the hash of the result text that the model received, and ResultBytes its length.
	Result      string `json:"result_hash,omitempty"`
	ResultBytes int    `json:"result_bytes,omitempty"`

	// Totals is the run's usage.
	Totals *Totals `json:"totals,omitempty"`
	// Texts is set with Options.Content only.
	Texts *Texts `json:"texts,omitempty"`
}

// Totals is a run's usage.
type Totals struct {
	Steps        int   `json:"steps"`
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// Cost is in US dollars. It is nil when it is unknown.
	Cost *float64 `json:"cost_usd"`
}

// Texts holds arguments, results and reasons as text. Texts longer than 16 KiB are cut.
type Texts struct {
	Arguments string `json:"arguments,omitempty"`
	Asked     string `json:"asked,omitempty"`
	Result    string `json:"result,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// maxText is the maximum length of a logged text, in bytes.
const maxText = 16 << 10

// maxName is the maximum length of a logged tool name, in bytes, because a model can write a name of any length.
const maxName = 128

// entryOf returns an entry for the run and step in which a hook is called.
func entryOf(event Event, c hooks.Context) Entry {
	run := c.Run()
	return Entry{
		Version: Version, Event: event,
		Session: run.Session, Run: run.ID, Parent: run.Parent, Root: run.Root, Depth: run.Depth,
		Agent: run.Agent, Stage: run.Stage, Step: c.StepIndex(),
	}
}
