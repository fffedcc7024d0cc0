package agentfile

import (
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/registry"
)

// Shell is the settings of the shell tool.
type Shell struct {
	Dir        string   `key:"dir"`
	Timeout    Duration `key:"timeout"`
	MaxTimeout Duration `key:"max_timeout"`
	MaxOutput  Bytes    `key:"max_output"`
	// Env are variables that commands get besides the usual ones, by name or glob.
	Env    []EnvPattern `key:"env"`
	Limits Limits       `key:"limits"`
}

// Limits bound what one command of the shell tool may use.
type Limits struct {
	Processes Count    `key:"processes"`
	CPUTime   Duration `key:"cpu_time"`
	FileSize  Bytes    `key:"file_size"`
	Memory    Bytes    `key:"memory"`
}

// Files is the settings of the file tools.
type Files struct {
	Root     string `key:"root"`
	ReadOnly bool   `key:"read_only"`
	MaxRead  Bytes  `key:"max_read"`
	MaxWrite Bytes  `key:"max_write"`
}

// BaseDir is the settings of the base-dir hook.
type BaseDir struct {
	Name   string    `key:"name"`
	Dir    string    `key:"dir"`
	Also   []string  `key:"also"`
	Fields []string  `key:"fields"`
	Tools  []Pattern `key:"tools"`
}

// Redact is the settings of the redact hook.
type Redact struct {
	// Env are variables of the environment whose values are secret.
	Env []registry.EnvName `key:"env"`
	// Patterns find further secrets, Without names kinds that are left alone.
	Patterns []Secret `key:"patterns"`
	Without  []string `key:"without"`
	// Replies redacts what the model says, too, which then no longer streams.
	Replies bool `key:"replies"`
}

// Secret is a kind of secret and how it is found.
type Secret struct {
	Kind     string `key:"kind,required"`
	Matching Regexp `key:"matching,required"`
}

// RateLimit is the settings of the rate-limit hook.
type RateLimit struct {
	Name  string    `key:"name"`
	Tools []Pattern `key:"tools"`
	Calls Count     `key:"calls,required"`
	Per   Duration  `key:"per"`
	Wait  Duration  `key:"wait"`
}

// Budget is the settings of the budget hook.
type Budget struct {
	Cost      Dollars `key:"cost"`
	Tokens    Count   `key:"tokens"`
	ToolCalls Count   `key:"tool_calls"`
	Deny      bool    `key:"deny"`
}

// Audit is the settings of the audit hook.
type Audit struct {
	File    string           `key:"file,required"`
	Content bool             `key:"content"`
	KeyEnv  registry.EnvName `key:"key_env"`
	Sync    bool             `key:"sync"`
}

// Check wants one limit at least.
func (b *Budget) Check(n yamlfile.Node) {
	if b.Cost == 0 && b.Tokens == 0 && b.ToolCalls == 0 {
		n.Wrong("a budget limits nothing that says neither cost, tokens nor tool_calls")
	}
}

// Verify is the settings of the verify hook.
type Verify struct {
	Name     string   `key:"name"`
	Command  []string `key:"command,required"`
	Dir      string   `key:"dir"`
	Attempts Count    `key:"attempts"`
	Timeout  Duration `key:"timeout"`
}

// Calls says which tool calls a deny or ask hook is about: those of the tools, and
// where Argument is set, of them those whose argument of that name is Matching.
type Calls struct {
	Name     string    `key:"name"`
	Tools    []Pattern `key:"tools,required"`
	Argument string    `key:"argument"`
	Matching Regexp    `key:"matching"`
	Reason   string    `key:"reason"`
}

// Check wants an argument with what is in it.
func (c *Calls) Check(n yamlfile.Node) {
	if (c.Argument == "") != (c.Matching.Regexp == nil) {
		n.Wrong("argument and matching go together: one says which argument, the other what is in it")
	}
}

// Deny is the settings of the deny hook, Ask those of the ask hook.
type (
	Deny struct{ Calls }
	Ask  struct{ Calls }
)

// DenyInput is the settings of the deny-input hook.
type DenyInput struct {
	Name     string `key:"name"`
	Matching Regexp `key:"matching,required"`
	Reason   string `key:"reason"`
}
