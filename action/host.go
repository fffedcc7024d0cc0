package action

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Host is what actions need of the program around them. An action that needs what is missing here is an error when it
// is made ready. The zero Host is enough for command, shell, http, and gates that are not persons.
type Host struct {
	// Dir is where commands run that do not say otherwise, and what relative paths are relative to. Empty means the
	// working directory.
	Dir string
	// Secrets are what URLs and headers may name.
	Secrets Secrets
	// Funcs are the Go funcs for func actions, by name.
	Funcs map[string]Body
	// Tools calls tools for mcp_tool actions.
	Tools ToolCaller
	// Agents starts agents for agent actions.
	Agents AgentStarter
	// Spawner starts pipelines for spawn actions, and MaxDepth is how many may stand above one another; zero
	// means three.
	Spawner  Spawner
	MaxDepth int
	// Driver asks the model for prompt actions.
	Driver agent.Driver
	// Approver asks a person for gates.
	Approver agent.Approver
	// Callbacks listens for gates that wait for a callback. Nil means a listener on the loopback while there are any.
	Callbacks *Callbacks
}

// defaultSpawnDepth is how many spawned pipelines may stand above one another where nothing is said.
const defaultSpawnDepth = 3

// Body is a Go func that a func action calls. A nil Decision has no opinion. The func must honour ctx and be safe for
// concurrent use. An error, and a panic, is a failure of the action.
type Body func(ctx context.Context, r *Request) (*Decision, error)

// ToolCaller calls a tool of an MCP server. It must honour ctx and be safe for concurrent use.
type ToolCaller interface {
	// CallTool calls a tool and gives the text that it answered with. A tool that says that it failed is an Err. Server
	// may be empty where tools are known by one name.
	CallTool(ctx context.Context, server, tool string, arguments json.RawMessage) mo.Result[string]
}

// AgentStarter runs agents for hooks.
type AgentStarter interface {
	// StartAgent checks the input against what the agent takes, runs it in a session of its own, and gives the text that
	// it ends with. It stops the agent when ctx is done. The control hooks around tools of the run that asks hold for the
	// agent, too; hooks around the agent's own run do not, and ctx keeps the hook actions of that run that would start
	// agents from doing so: it must reach them, see Started.
	StartAgent(ctx context.Context, start AgentStart) mo.Result[string]
}

// AgentStart is what an agent is started with.
type AgentStart struct {
	// Agent is its name.
	Agent string
	// Input is a JSON object: what it is told.
	Input json.RawMessage
	// Output is the JSON Schema of what it must answer with; empty where any text will do.
	Output string
	// Request is what the hook was asked. State is that of the run which asks.
	Request *Request
	State   agent.State
}

// Spawner runs pipelines for hooks.
type Spawner interface {
	// Spawn runs a pipeline in a place of its own and gives its output. It stops it when ctx is done. The pipeline gets
	// the inputs and nothing else of the run that asks.
	Spawn(ctx context.Context, s SpawnStart) mo.Result[string]
}

// SpawnStart is what a pipeline is started with.
type SpawnStart struct {
	// Pipeline is its name.
	Pipeline string
	// Inputs is a JSON object.
	Inputs json.RawMessage
	// Hook, Point, Run, Iteration and Attempt say for whom: enough for a name of its place that is not taken.
	Hook    string
	Point   string
	Run     agent.Run
	Attempt int
	// Depth is how many spawned pipelines there are with this one, one for the first.
	Depth int
}

// Secrets are values that URLs and headers may name, and nothing else: they are read when a request is sent, and are not
// in what is told of it.
type Secrets struct {
	// Env names the variables of this program's environment that may be used.
	Env []string
	// File is a file of lines NAME=value, all of which may be used; it goes before the environment. Empty means none.
	File string
}

// directory returns a directory of the host: dir, below Dir where it is relative.
func (h Host) directory(dir string) string {
	if dir == "" || h.Dir == "" || filepath.IsAbs(dir) {
		return cmp.Or(dir, h.Dir)
	}
	return filepath.Join(h.Dir, dir)
}
