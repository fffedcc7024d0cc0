package action

import (
	"context"
	"time"

	"github.com/samber/mo"
)

// Action is the action of a declared hook, ready to run. It is immutable and safe for concurrent use.
type Action interface {
	// Do runs the action and waits until it, and every process of it that can be ended, has ended. It honours ctx and its
	// own time limit. The error is an *Error: the action failed, or its answer is invalid. A decision is never an error.
	Do(ctx context.Context, r *Request) mo.Result[*Answer]
}

// actionFunc adapts a func to an Action.
type actionFunc func(ctx context.Context, r *Request) (*Answer, error)

// Do calls f.
func (f actionFunc) Do(ctx context.Context, r *Request) mo.Result[*Answer] {
	return mo.TupleToResult(f(ctx, r))
}

// Declared is an action as a file declares it: a plain value, one of Command, Shell, HTTP, MCPTool, Agent, Spawn, Gate,
// Prompt and Func.
type Declared interface {
	// Type returns its type in files: command, shell, http, mcp_tool, agent, spawn, gate, prompt, func.
	Type() string
	// Validate checks the declaration without a host. The error joins a *FieldError for each problem: see Fields.
	Validate() error
	// Lint returns warnings about settings that are valid but probably a mistake.
	Lint() []Warning
	// Limit returns the maximum duration of Do: its timeout, or the default of its type, with retries, delays, and the time
	// to end processes that do not end by themselves. The hook around it needs at least this limit.
	Limit() time.Duration
	// Action returns the action, ready to run. The error joins the problems of the declaration and what the host lacks for
	// it.
	Action(h Host) mo.Result[Action]
}

// Answer is the result of an action.
type Answer struct {
	// Decision is the decision of the action; nil when it has no opinion, or the point allows no decision.
	Decision *Decision
	// Output is the output as text: of a process, the body of a response, the final text of an agent or a pipeline. It
	// contains no secrets that were sent.
	Output string
	// Truncated is set when the output exceeded the limit.
	Truncated bool
	// Off is set when nothing was done, because the run was started by a hook and the action would start another one.
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

// DefaultMaxBytes is the maximum size of the input and of the answer of an action, each: 64 KiB.
const DefaultMaxBytes = 64 << 10

// ending is the part of a limit reserved for ending processes that do not end by themselves.
const ending = 5 * time.Second
