package capability

import (
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// CompactionTrigger says why there is a compaction.
type CompactionTrigger string

// The triggers.
const (
	// CompactTokens and CompactMessages: a limit was passed.
	CompactTokens   CompactionTrigger = "tokens"
	CompactMessages CompactionTrigger = "messages"
	// CompactContextLength: the messages were too long for the model.
	CompactContextLength CompactionTrigger = "context_length"
)

// CompactionCompleted: from this model call on a summary stands for the older
// messages.
type CompactionCompleted struct {
	Run  agent.Run `json:"run"`
	Step int       `json:"step"`
	// ID names the compaction, also to hooks and in CompactedView.
	ID      string            `json:"id"`
	Trigger CompactionTrigger `json:"trigger"`
	// Before and after are what the model would have been shown, and is.
	MessagesBefore int    `json:"messages_before"`
	MessagesAfter  int    `json:"messages_after"`
	TokensBefore   int64  `json:"tokens_before"`
	TokensAfter    int64  `json:"tokens_after"`
	Summary        string `json:"summary"`
	// Usage is what the summary consumed, which counts with the step.
	Usage agent.Usage   `json:"usage"`
	Took  time.Duration `json:"took"` // in nanoseconds
}

// CompactionFailed: the model is shown the messages as they were.
type CompactionFailed struct {
	Run     agent.Run         `json:"run"`
	Step    int               `json:"step"`
	ID      string            `json:"id"`
	Trigger CompactionTrigger `json:"trigger"`
	// Messages and Tokens are what the model is shown.
	Messages int   `json:"messages"`
	Tokens   int64 `json:"tokens"`
	// Denied: a hook said no, or could not decide.
	Denied bool `json:"denied,omitempty"`
	// Failure is why.
	Failure agent.Failure `json:"failure"`
	// Usage is what was consumed in vain, which counts with the step.
	Usage agent.Usage   `json:"usage"`
	Took  time.Duration `json:"took"` // in nanoseconds
}

// EventName returns "compaction.completed".
func (CompactionCompleted) EventName() string { return "compaction.completed" }

// EventName returns "compaction.failed".
func (CompactionFailed) EventName() string { return "compaction.failed" }
