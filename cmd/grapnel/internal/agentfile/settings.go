package agentfile

import (
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/registry"
)

// Shell is the settings of the shell tool.
type Shell struct {
	Dir        string   `key:"dir"`
	Timeout    Duration `key:"timeout"`
	MaxTimeout Duration `key:"max_timeout"`
	MaxOutput  Bytes    `key:"max_output"`
	// Env are variables that commands get in addition to the usual ones, by name or glob.
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
	// Patterns are further kinds of secrets. Without names kinds that are not redacted.
	Patterns []Secret `key:"patterns"`
	Without  []string `key:"without"`
	// Replies redacts the model's replies, too, which then are no longer streamed.
	Replies bool `key:"replies"`
}

// Secret is a kind of secret and the pattern that finds it.
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

// Check reports a budget without any limit.
func (b *Budget) Check(n yamlfile.Node) {
	if b.Cost == 0 && b.Tokens == 0 && b.ToolCalls == 0 {
		n.Wrong("a budget needs a limit: set cost, tokens or tool_calls")
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

// Calls selects the tool calls of a deny or ask hook: calls of the given tools, except those that Except names. If
// Matching is set, it selects only calls whose text at Argument matches it. If Commands is set, it selects only calls
// whose text at Argument is a shell line that runs, or may run, one of the Commands.
type Calls struct {
	Name   string    `key:"name"`
	Tools  []Pattern `key:"tools,required"`
	Except []Pattern `key:"except"`
	// Argument is a path as in hooks.Call.Text. Empty means "command" if Commands is set.
	Argument string    `key:"argument"`
	Matching Regexp    `key:"matching"`
	Commands []Command `key:"commands"`
	Reason   string    `key:"reason"`
}

// Check reports an argument without Matching or Commands, and a pattern without its argument.
func (c *Calls) Check(n yamlfile.Node) {
	switch {
	case c.Argument == "" && c.Matching.Regexp != nil, c.Argument != "" && c.Matching.Regexp == nil && len(c.Commands) == 0:
		n.Wrong("argument and matching go together: set the name of the argument and its pattern")
	case slices.Contains(strings.Split(c.Argument, "."), "*"):
		n.Wrong("argument must name one text, without *: use a rule of a policy to judge several texts")
	case c.Argument == "" && len(c.Commands) > 0:
		c.Argument = "command"
	}
}

// Policy is the settings of the policy hook: files with rules, or names such as
// library:safe-shell.
type Policy struct {
	Files []string `key:"files,required"`
}

// Check reports a policy without files.
func (p *Policy) Check(n yamlfile.Node) {
	if len(p.Files) == 0 {
		n.Wrong("files is empty: name a file with rules, or a policy such as library:safe-shell")
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
