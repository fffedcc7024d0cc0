package registry

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable/command"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Command defines a command that workers run: see package durable/command.
type Command struct {
	// Argv is the program and its arguments. No shell reads them.
	Argv []string `key:"argv,required"`
	// Dir is the working directory. Empty means the worker's.
	Dir string `key:"dir"`
	// Env is the program's environment. It inherits nothing from the worker.
	Env map[string]string `key:"env"`
	// Timeout is the maximum duration. Zero means ten minutes.
	Timeout time.Duration `key:"timeout,positive"`
	// Grace is the time between SIGTERM and SIGKILL. Zero means two seconds.
	Grace time.Duration `key:"grace,positive"`
	// MaxOutput is the maximum number of output bytes that are stored. Zero means 1 MiB.
	MaxOutput int `key:"max_output,positive"`
	// MaxProcesses is the maximum number of simultaneous processes. Zero means no limit.
	MaxProcesses int `key:"max_processes,positive"`
	// Repeat says that the program may run again when its effects are unknown.
	Repeat bool `key:"repeat"`
	// Parameters is the schema for a job's parameters. Empty means that every JSON object is valid.
	Parameters Schema `key:"parameters"`
}

// Check reports an empty program.
func (c *Command) Check(n yamlfile.Node) {
	if len(c.Argv) > 0 && c.Argv[0] == "" {
		n.Find("argv").Wrong("argv: name a program, such as [/usr/bin/make, test]")
	}
}

// Validate returns an error that lists all mistakes in a job's parameters.
func (c *Command) Validate(params json.RawMessage) error {
	schema := c.Parameters
	if schema == "" {
		schema = `{"type":"object"}`
	}
	compiled, err := toolexec.CompileSchema(string(schema))
	if err != nil {
		return err
	}
	err = compiled.Validate(string(params))
	if wrong, ok := errors.AsType[*agent.ArgumentsError](err); ok { // its text is for models: it has few problems, cut
		return errors.New(strings.Join(lo.Map(wrong.Problems, func(p agent.ArgumentProblem, _ int) string { return p.String() }), "; "))
	}
	return err
}

// Command returns the command for a runner. The parameters of each job are checked.
func (c *Command) Command() command.Command {
	return command.Command{
		Argv: c.Argv, Dir: c.Dir, Env: c.Env, Timeout: c.Timeout, Grace: c.Grace, MaxOutput: c.MaxOutput, MaxProcesses: c.MaxProcesses,
		Repeat: c.Repeat, Check: c.Validate,
	}
}

// commandFile is a file with commands.
type commandFile struct {
	Commands map[string]*Command `key:"commands,required"`
}

// commandFormat is the format of command files that this version reads.
const commandFormat = 1

// IsCommandFile reports whether a text has the key commands. It is then a file for ParseCommands and does not define an
// agent.
func IsCommandFile(path string, text []byte) bool {
	root, ok := yamlfile.Parse(path, text).Root()
	return ok && root.Kind() == yamlfile.MappingNode && root.Find("commands").Kind() != yamlfile.AbsentNode
}

// ParseCommands reads commands, by name, as JSON if the path ends in .json and otherwise as YAML:
//
//	commands:
//	  report:
//	    argv: [/usr/local/bin/report, --json]
//	    timeout: 1m
//	    parameters: {properties: {month: {type: string}}, required: [month]}
//
// The error joins all mistakes, each with its line and column.
func ParseCommands(path string, text []byte) (map[string]*Command, error) {
	source := yamlfile.Parse(path, text)
	file := commandFile{}
	if source.CheckFormat(commandFormat) {
		if root, ok := source.Root(); ok {
			root.Decode(&file)
		} else if source.Err() == nil {
			source.At(yamlfile.Position{Line: 1, Column: 1}).Wrong("the file is empty: begin with the line commands:")
		}
	}
	if err := source.Err(); err != nil {
		return nil, err
	}
	return file.Commands, nil
}
