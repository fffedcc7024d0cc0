package agentfile

import "regexp"

// Shell is the settings of the shell tool.
type Shell struct {
	Dir       string    `key:"dir"`
	Timeout   Duration  `key:"timeout"`
	MaxOutput Bytes     `key:"max_output"`
	Env       []EnvName `key:"env"`
}

// Files is the settings of the file tools.
type Files struct {
	Root     string `key:"root"`
	ReadOnly bool   `key:"read_only"`
	MaxSize  Bytes  `key:"max_size"`
}

// BaseDir is the settings of the base-dir hook.
type BaseDir struct {
	Dir       string    `key:"dir"`
	Tools     []Pattern `key:"tools"`
	Arguments []string  `key:"arguments"`
}

// Redact is the settings of the redact hook.
type Redact struct {
	Patterns []Regexp  `key:"patterns"`
	Env      []EnvName `key:"env"`
}

// RateLimit is the settings of the rate-limit hook.
type RateLimit struct {
	Tools []Pattern `key:"tools"`
	Calls Count     `key:"calls,required"`
	Per   Duration  `key:"per,required"`
}

// Budget is the settings of the budget hook.
type Budget struct {
	Cost   Dollars `key:"cost"`
	Tokens Count   `key:"tokens"`
	Calls  Count   `key:"calls"`
}

// Audit is the settings of the audit hook.
type Audit struct {
	File string `key:"file,required"`
}

// Verify is the settings of the verify hook.
type Verify struct {
	Command []string `key:"command,required"`
	Dir     string   `key:"dir"`
	Timeout Duration `key:"timeout"`
}

// Calls says which tool calls a deny or ask hook is about.
type Calls struct {
	Tools []Pattern `key:"tools,required"`
	// Argument, with Matching, narrows it to calls whose argument of that name
	// matches.
	Argument string `key:"argument"`
	Matching Regexp `key:"matching"`
	Reason   string `key:"reason"`
}

// Deny is the settings of the deny hook, Ask those of the ask hook.
type (
	Deny Calls
	Ask  Calls
)

// Output is the form of the final answer.
type Output struct {
	Name   string `key:"name"`
	Schema Schema `key:"schema,required"`
}

var serverName = regexp.MustCompile(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`)
