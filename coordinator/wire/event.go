package wire

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// The types of the events of hooks around runs. They are the names of stored events; their data is a HookEvent.
const (
	EventHookStart    = "hook_start"
	EventHookComplete = "hook_complete"
	EventHookFailed   = "hook_failed"
	EventHookBlocked  = "hook_blocked"
	EventHookTimeout  = "hook_timeout"
)

// HookEvent is what happened to a hook around a run.
type HookEvent struct {
	EventType string          `json:"event_type"`
	SessionID agent.SessionID `json:"session_id"`
	RunID     agent.RunID     `json:"run_id"`
	Timestamp time.Time       `json:"timestamp"`
	// Hook is the name of the hook, HookType its point, such as on_run_start.
	Hook     string `json:"hook"`
	HookType string `json:"hook_type"`
	// TargetType is the type of the action, TargetName its agent, host, program or func.
	TargetType string `json:"target_type"`
	TargetName string `json:"target_name"`
	// HookRunID is the run that this call of the hook has started.
	HookRunID agent.RunID `json:"hook_run_id,omitempty"`
	// DurationMS is how long the hook took, in milliseconds; absent in hook_start.
	DurationMS *int64 `json:"duration_ms,omitempty"`
	// Action is continue or block, at on_run_start, and replace at on_result if the hook has changed the result.
	// ParametersTransformed says that the hook has changed the parameters; Before and After are the parameters then.
	Action                string          `json:"action,omitempty"`
	ParametersTransformed bool            `json:"parameters_transformed,omitempty"`
	Before                json.RawMessage `json:"before,omitzero"`
	After                 json.RawMessage `json:"after,omitzero"`
	BlockReason           string          `json:"block_reason,omitempty"`
	// Error is why the hook has failed, OnErrorBehavior what followed: block, continue or retry. After a run nothing follows: there it is
	// the on_error of the hook.
	// ErrorBody is the beginning of the response of a hook of type http that has failed with its status.
	Error           string `json:"error,omitempty"`
	ErrorBody       string `json:"error_body,omitempty"`
	OnErrorBehavior string `json:"on_error_behavior,omitempty"`
	// OnError is the on_error of a hook that has failed, as the blueprint has it; empty for the default.
	OnError string `json:"on_error,omitempty"`
}

// defaultHook matches the names of hooks to which their blueprint gives none: their point, and their number at it.
var defaultHook = regexp.MustCompile(`/[A-Za-z]+-([0-9]+)$`)

// Title names the hook for people, as its blueprint does: "on_run_start hook 2 (agent month-check)".
func (h HookEvent) Title() string {
	text := h.HookType + " hook"
	if number := defaultHook.FindStringSubmatch(h.Hook); number == nil {
		text += " " + h.Hook[strings.LastIndexByte(h.Hook, '/')+1:]
	} else if number[1] != "1" {
		text += " " + number[1]
	}
	if h.TargetType != "" {
		text += " (" + strings.TrimSpace(h.TargetType+" "+h.TargetName) + ")"
	}
	return text
}

// Failure says that the hook has failed, and why.
func (h HookEvent) Failure() string { return h.Title() + " failed: " + h.Error }

// BlocksRun reports whether the run did not start because of this call of an on_run_start hook: it has blocked the run, or its failure has.
func (h HookEvent) BlocksRun() bool {
	failed := (h.EventType == EventHookFailed || h.EventType == EventHookTimeout) && h.OnErrorBehavior == "block"
	return h.HookType == "on_run_start" && (failed || h.EventType == EventHookBlocked)
}

// EventRunStart is the type of the event that a runner has started the program of a run.
const EventRunStart = "run_start"

// The types of the last event of a stream: how the run has ended.
const (
	EventRunCompleted = "run_completed"
	EventRunFailed    = "run_failed"
	EventRunStopped   = "run_stopped"
)
