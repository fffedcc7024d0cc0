package action

import (
	"context"
	"time"
)

// Action is a declared hook's action, ready to run. It is immutable and safe for concurrent use.
type Action interface {
	// Do runs the action. It waits until the action and each of its processes that can be ended have ended. It honours
	// ctx and its own time limit. The error is an *Error: the action failed, or its answer is invalid. A decision is
	// never an error.
	Do(ctx context.Context, r *Request) (*Answer, error)
}

// actionFunc adapts a func to an Action.
type actionFunc func(ctx context.Context, r *Request) (*Answer, error)

// Do calls f.
func (f actionFunc) Do(ctx context.Context, r *Request) (*Answer, error) {
	return f(ctx, r)
}

// Declared is an action as a file declares it. It is a plain value: a Command, Shell, HTTP, MCPTool, Agent, Spawn,
// Gate, Prompt or Func.
type Declared interface {
	// Type returns the type's name in files: command, shell, http, mcp_tool, agent, spawn, gate, prompt, func.
	Type() string
	// Validate checks the declaration without a host. The error joins a *FieldError for each problem: see Fields.
	Validate() error
	// Lint returns warnings about settings that are valid but probably a mistake.
	Lint() []Warning
	// Limit returns the maximum duration of Do: the timeout or its default, plus retries, delays, and the time to kill
	// processes. The hook around the action needs at least this limit.
	Limit() time.Duration
	// Action returns the action, ready to run. The error joins the declaration's problems and the parts that the host
	// lacks.
	Action(h Host) (Action, error)
}

// Answer is an action's result.
type Answer struct {
	// Decision is the action's decision. It is nil when the action has no opinion, or the point allows no decision.
	Decision *Decision
	// Output is a process's output, a response body, or the final text of an agent or pipeline. It contains none of the
	// secrets that were sent.
	Output string
	// Truncated is set when the output exceeded the limit.
	Truncated bool
	// Off is set when the action did nothing because a hook started the run. The action would have started another run.
	Off bool
}

// The default time limits.
const (
	defaultCommandTimeout = 600 * time.Second // command, shell
	defaultHTTPTimeout    = 30 * time.Second  // http, each try
	defaultToolTimeout    = 60 * time.Second  // mcp_tool, func
	defaultPromptTimeout  = 30 * time.Second  // prompt
	defaultAgentTimeout   = 300 * time.Second // agent
	defaultSpawnTimeout   = time.Hour         // spawn
	defaultGateTimeout    = time.Hour         // gate
)

// DefaultMaxBytes is the default size limit for an action's input and for its answer, each: 64 KiB.
const DefaultMaxBytes = 64 << 10

// ending is the part of a limit reserved for killing processes.
const ending = 5 * time.Second
