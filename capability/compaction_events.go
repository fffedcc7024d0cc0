package capability

import (
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// CompactionTrigger is the reason for a compaction.
type CompactionTrigger string

// The triggers.
const (
	// CompactTokens and CompactMessages: a limit was exceeded.
	CompactTokens   CompactionTrigger = "tokens"
	CompactMessages CompactionTrigger = "messages"
	// CompactContextLength: the messages were too long for the model.
	CompactContextLength CompactionTrigger = "context_length"
)

// CompactionCompleted: from this model call on, a summary replaces the older messages.
type CompactionCompleted struct {
	Run  agent.Run `json:"run"`
	Step int       `json:"step"`
	// ID names the compaction, also to hooks and in CompactedView.
	ID      string            `json:"id"`
	Trigger CompactionTrigger `json:"trigger"`
	// The shown messages and tokens before and after the compaction.
	MessagesBefore int    `json:"messages_before"`
	MessagesAfter  int    `json:"messages_after"`
	TokensBefore   int64  `json:"tokens_before"`
	TokensAfter    int64  `json:"tokens_after"`
	Summary        string `json:"summary"`
	// Usage is the summary's usage, which counts as the step's usage.
	Usage agent.Usage   `json:"usage"`
	Took  time.Duration `json:"took"` // in nanoseconds
}

// CompactionFailed: a compaction failed, and the model is shown the messages unchanged.
type CompactionFailed struct {
	Run     agent.Run         `json:"run"`
	Step    int               `json:"step"`
	ID      string            `json:"id"`
	Trigger CompactionTrigger `json:"trigger"`
	// Messages and Tokens are the size of the shown messages.
	Messages int   `json:"messages"`
	Tokens   int64 `json:"tokens"`
	// Denied: a hook denied the compaction, or could not decide.
	Denied bool `json:"denied,omitempty"`
	// Failure is the reason.
	Failure agent.Failure `json:"failure"`
	// Usage is the failed attempt's usage, which counts as the step's usage.
	Usage agent.Usage   `json:"usage"`
	Took  time.Duration `json:"took"` // in nanoseconds
}

// EventName returns "compaction.completed".
func (CompactionCompleted) EventName() string { return "compaction.completed" }

// EventName returns "compaction.failed".
func (CompactionFailed) EventName() string { return "compaction.failed" }
