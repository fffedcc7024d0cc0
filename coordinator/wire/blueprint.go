package wire

import (
	"encoding/json"
	"time"
)

// Type says what a run of a blueprint executes.
type Type string

// The types of blueprints.
const (
	// Autonomous: an agent.
	Autonomous Type = "autonomous"
	// Procedural: a command.
	Procedural Type = "procedural"
	// Pipeline: stages of agents and commands, on the machine of the coordinator.
	Pipeline Type = "pipeline"
)

// Blueprint describes what runs of a name do. It is a plain value.
type Blueprint struct {
	// Name identifies the blueprint: letters, digits, and . _ - between them.
	Name string `json:"name"`
	// Type says which of the other members apply.
	Type        Type   `json:"type"`
	Description string `json:"description,omitempty"`
	// ParametersSchema is the JSON Schema of the parameters of a run. Empty means, for an autonomous blueprint, an object with the
	// text "prompt", and otherwise any object.
	ParametersSchema json.RawMessage `json:"parameters_schema,omitempty"`
	// OutputSchema is the JSON Schema of the result. Empty means that an agent ends with a text, and a command with anything.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// SystemPrompt are the instructions of an agent, unless Agent has them. Agent is the definition of the agent, as an agent file
	// has it (docs/agent-file.md); what it leaves open, such as the model, the runner chooses.
	SystemPrompt string          `json:"system_prompt,omitempty"`
	Agent        json.RawMessage `json:"agent,omitempty"`
	// Command is the program of a procedural blueprint. Nil means the command with the name of the blueprint that a runner has:
	// then only such runners execute the runs.
	Command *Command `json:"command,omitempty"`
	// Pipeline are the files of a blueprint of that type.
	Pipeline *PipelineFiles `json:"pipeline,omitempty"`
	// Demands are labels that a runner must have to execute the runs: see durable.Job.
	Demands map[string]string `json:"demands,omitempty"`
	// Hooks are the hooks around the runs: one or a list for each of on_run_start, on_run_finish, on_result, on_error, on_timeout
	// and on_tool_call, as docs/coordinator.md describes them.
	Hooks json.RawMessage `json:"hooks,omitempty"`
	// Definitions are hooks by name, for {"$ref": "name"} in Hooks.
	Definitions json.RawMessage `json:"definitions,omitempty"`
}

// Command describes the program of a procedural blueprint. It gets the parameters as JSON on its standard input, and writes
// the result to its standard output.
type Command struct {
	// Argv is the program and its arguments. No shell reads them. Required.
	Argv []string `json:"argv"`
	// Dir is the working directory on the runner's machine. Empty means the runner's own.
	Dir string `json:"dir,omitempty"`
	// Env is the environment of the program. It gets nothing of the environment of the runner.
	Env map[string]string `json:"env,omitempty"`
	// TimeoutSeconds is the maximum duration. Zero means ten minutes.
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
	// Repeat says that the program may run again when it is unknown what it has done.
	Repeat bool `json:"repeat,omitempty"`
}

// PipelineFiles are the files of a pipeline.
type PipelineFiles struct {
	// File is the path of the pipeline file among Files. Empty means pipeline.yaml.
	File string `json:"file,omitempty"`
	// Files are the texts of all files, by their paths, with slashes and relative to one folder: the pipeline file, and the agents,
	// loops and pipelines that it names. Required.
	Files map[string]string `json:"files"`
	// Workspace is the folder on the machine of the coordinator in which agents and commands work: an absolute path. Empty means
	// a folder for each run, with copies of Files, which may be executed.
	Workspace string `json:"workspace,omitempty"`
}

// Stored is a version of a blueprint in the store.
type Stored struct {
	Blueprint

	// Version counts the versions of the blueprint from one.
	Version int64 `json:"version"`
	// Updated is when the version was stored, and By who stored it.
	Updated time.Time `json:"updated,omitzero"`
	By      string    `json:"updated_by,omitempty"`
}

// BlueprintVersion says who has stored a version of a blueprint.
type BlueprintVersion struct {
	Version int64     `json:"version"`
	Updated time.Time `json:"updated"`
	By      string    `json:"updated_by,omitempty"`
}
