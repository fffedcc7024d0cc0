package durable

import "github.com/grapnel-go/grapnel/agent"

// Traits are what a service that submits runs must know about each of them later. Stores keep them, and List selects by some.
type Traits struct {
	// Turn is the run's place in the conversation of its session; empty for a run outside it.
	Turn Turn `json:"turn,omitempty"`
	// ParentSession is the session that has started this run.
	ParentSession agent.SessionID `json:"parent_session,omitempty"`
	// CallsBack says that the parent session is told how the run has ended.
	CallsBack bool `json:"calls_back,omitempty"`
	// RequestKey is a hash of the idempotency key with which the session was resumed.
	RequestKey string `json:"request_key,omitempty"`
	// Hook is the type of the hook that has started the run, such as on_run_start.
	Hook string `json:"hook,omitempty"`
	// HasHooks says that hooks are called around the run, HoldsResult that they see its result before it is stored.
	HasHooks    bool `json:"has_hooks,omitempty"`
	HoldsResult bool `json:"holds_result,omitempty"`
	// RetryOf is the run that this one tries again, PastHook the hook that is not asked about it, Because the reason for that.
	RetryOf  agent.RunID `json:"retry_of,omitempty"`
	PastHook string      `json:"past_hook,omitempty"`
	Because  string      `json:"because,omitempty"`
	// Trace is the span that has submitted the run, as the W3C header traceparent has it.
	Trace string `json:"trace,omitempty"`
}

// Turn is the place of a run in the conversation of its session.
type Turn string

// The turns of a conversation.
const (
	// TurnFirst begins the conversation.
	TurnFirst Turn = "first"
	// TurnLater continues it.
	TurnLater Turn = "later"
)
