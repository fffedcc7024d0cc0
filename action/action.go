package action

import (
	"context"
	"time"

	"github.com/samber/mo"
)

// Action is something that a declared hook does, ready to be done. It is immutable and safe for concurrent use.
type Action interface {
	// Do does it, waits for it, and returns when nothing of it is left running that could be ended. It honours ctx, and
	// a time limit of its own. The error is an *Error: what was to be done could not be done, or its answer makes no
	// sense. A decision is never an error.
	Do(ctx context.Context, r *Request) mo.Result[*Answer]
}

// actionFunc is an Action from a plain func.
type actionFunc func(ctx context.Context, r *Request) (*Answer, error)

// Do calls f.
func (f actionFunc) Do(ctx context.Context, r *Request) mo.Result[*Answer] {
	return mo.TupleToResult(f(ctx, r))
}

// Declared is an action as a file says it: a plain value, one of Command, Shell, HTTP, MCPTool, Agent, Spawn, Gate,
// Prompt and Func.
type Declared interface {
	// Type returns the word for it in files: command, shell, http, mcp_tool, agent, spawn, gate, prompt, func.
	Type() string
	// Validate finds what is wrong with it by itself. The error joins a *FieldError for each thing: see Fields.
	Validate() error
	// Lint finds what is allowed and most likely not meant.
	Lint() []Warning
	// Limit returns how long Do may take at most: its timeout, or the default of its type, with retries, delays, and the time
	// that it takes to end what does not end by itself. The hook around it needs a limit that is not less.
	Limit() time.Duration
	// Action makes it ready. The error joins what is wrong with it, and what the host lacks for it.
	Action(h Host) mo.Result[Action]
}

// Answer is what came of an action.
type Answer struct {
	// Decision is what it decided; nil when it has no opinion, or none was asked for.
	Decision *Decision
	// Output is what it said, as text: what a process wrote, the body of an answer, what an agent or a pipeline ended
	// with. Secrets that were sent are not in it.
	Output string
	// Truncated is set when there was more output than is kept.
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

// DefaultMaxBytes is how much an action is told and how much of its answer is kept, each: 64 KiB.
const DefaultMaxBytes = 64 << 10

// ending is the part of a limit that is for ending what does not end by itself.
const ending = 5 * time.Second
