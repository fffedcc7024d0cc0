package audit

import (
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Version is the version of the format that is written.
const Version = 1

// Event says what a line is about.
type Event string

// The events.
const (
	RunStarted Event = "run_started"
	ToolCall   Event = "tool_call"
	ToolResult Event = "tool_result"
	Decision   Event = "decision"
	RunEnded   Event = "run_ended"
)

// Entry is one line. What does not belong to its event is left out.
type Entry struct {
	Version int       `json:"v"`
	Time    time.Time `json:"time"` // in UTC
	// Log names the Log that wrote the line, at random, and Number counts its lines from one: a gap is a line that is
	// missing.
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
	// Step counts the steps of the run from zero.
	Step int `json:"step"`

	// Call is the id of a tool call, unique within its step, and Tool the tool's name: what the model called, be there such
	// a tool or not, of which no more than 128 bytes are kept.
	Call string `json:"call,omitempty"`
	Tool string `json:"tool,omitempty"`
	// Arguments is the hash of the arguments as they ran, or would have; Asked that of what the model asked for, where a
	// hook changed it.
	Arguments string `json:"arguments_hash,omitempty"`
	Asked     string `json:"asked_hash,omitempty"`

	// Decision is what was decided at Point, and By who did: a hook, or a person. On the answer to a call By is who
	// denied, mocked, replaced or withheld.
	Decision hooks.Decision  `json:"decision,omitempty"`
	Point    hooks.PointName `json:"point,omitempty"`
	By       string          `json:"by,omitempty"`
	// HookFailed says that the hook did not say no but could not decide.
	HookFailed bool `json:"hook_failed,omitempty"`

	// Status is what became of a call, or of a run. Reason is the code of why: an agent.ReasonCode or agent.StopReason.
	Status string `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Attempts is how often the tool ran; Milliseconds is how long the call, or the run, took.
	Attempts     int   `json:"attempts,omitempty"`
	Milliseconds int64 `json:"ms,omitempty"`
	// Result is the hash of the text that the model was told, and ResultBytes its length.
	Result      string `json:"result_hash,omitempty"`
	ResultBytes int    `json:"result_bytes,omitempty"`

	// Totals is what a run used.
	Totals *Totals `json:"totals,omitempty"`
	// Texts is there with Options.Content only.
	Texts *Texts `json:"texts,omitempty"`
}

// Totals is what a run used.
type Totals struct {
	Steps        int   `json:"steps"`
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// Cost is in US dollars; nil when it is unknown.
	Cost *float64 `json:"cost_usd"`
}

// Texts is what was said and done. Longer texts than 16 KiB are cut.
type Texts struct {
	Arguments string `json:"arguments,omitempty"`
	Asked     string `json:"asked,omitempty"`
	Result    string `json:"result,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// maxText is how much of a text is kept.
const maxText = 16 << 10

// maxName is how much of the name of a tool is kept: a model may write anything there.
const maxName = 128

// entryOf returns a line about the run and step that a hook is called in.
func entryOf(event Event, c hooks.Context) Entry {
	run := c.Run()
	return Entry{
		Version: Version, Event: event,
		Session: run.Session, Run: run.ID, Parent: run.Parent, Root: run.Root, Depth: run.Depth,
		Agent: run.Agent, Stage: run.Stage, Step: c.StepIndex(),
	}
}
