package action

import (
	"cmp"
	"time"
)

// GateBy says who opens a gate.
type GateBy string

// The gates.
const (
	// GatePerson asks a person: Host.Approver; at PreToolUse as a hook that asks does, so that the run can park.
	GatePerson GateBy = "person"
	// GateCallback waits for a POST to a URL that it makes, with Webhook to tell somebody of it.
	GateCallback GateBy = "callback"
	// GateFile waits for a file that appears or changes.
	GateFile GateBy = "file"
	// GateCommand asks a command again and again.
	GateCommand GateBy = "command"
)

// Gate waits until somebody says yes or no. What they said is the action's output.
type Gate struct {
	// By says who. Required.
	By GateBy
	// Reason is a sentence for whoever is asked; ${NAME} in it stands for a variable.
	Reason string
	// Webhook, for callbacks, is sent when somebody listens already, with CALLBACK_URL among its variables. Its answer
	// does not matter, but that it arrives. Required for callbacks.
	Webhook *HTTP
	// Port, for callbacks, is where to listen on the loopback. Zero is any that is free.
	Port int
	// File, for files, is the file to wait for, relative to Host.Dir. One that is there already does not count, unless
	// Existing is set, before it changes.
	File     string
	Existing bool
	// Argv, for commands, is the command: 0 says yes, or what it prints; 1 not yet.
	Argv []string
	// Every is how long to wait between two looks at a file or a command. Zero means DefaultGateEvery.
	Every time.Duration
	// Timeout is how long to wait. Zero means DefaultGateTimeout. OnTimeout is what counts as said then: "reject" or
	// "approve"; empty is neither, a failure.
	Timeout   time.Duration
	OnTimeout string
}

// DefaultGateEvery is how often a gate looks at a file or asks a command.
const DefaultGateEvery = time.Second

var _ Declared = Gate{}

// Type is "gate".
func (Gate) Type() string { return "gate" }

// Limit is how long Do may take.
func (g Gate) Limit() time.Duration { return cmp.Or(g.Timeout, DefaultGateTimeout) + ending }
