package hooks

import (
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// EventKind says what happened to a hook.
type EventKind string

// The kinds of hook events. A hook that is called gives HookStart and then one of
// HookComplete, HookFailed, HookBlocked and HookTimeout.
const (
	HookStart    EventKind = "hook.start"
	HookComplete EventKind = "hook.complete"
	HookFailed   EventKind = "hook.failed"
	// HookBlocked: the hook denied, stopped or withheld.
	HookBlocked EventKind = "hook.blocked"
	HookTimeout EventKind = "hook.timeout"
	// HookSkipped: the hook was not called, or its answer not used.
	HookSkipped EventKind = "hook.skipped"
	// HookConflict: two hooks set the same metadata; the later one wins.
	HookConflict EventKind = "hook.conflict"
)

// Event tells an agent.Observer what a hook did.
type Event struct {
	Kind  EventKind
	Run   agent.Run
	Step  int
	Hook  string
	Point PointName
	// Call is the effective call at tool points; its ID is empty elsewhere.
	Call agent.ToolCall
	// Detached is set for hooks that nobody waits for.
	Detached bool
	// Control tells a control from an observer.
	Control bool
	// Attempt counts the calls of the hook for one occasion from 1.
	Attempt  int
	Duration time.Duration
	Decision Decision
	Reason   string
	// Err is what a failed hook failed with, and Policy what was done about it.
	Err    error
	Policy string
	// Before and After are the arguments, for a rewrite.
	Before, After string
}

// EventName is the kind.
func (e Event) EventName() string { return string(e.Kind) }
