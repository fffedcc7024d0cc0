package action

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

// Command is a program that runs with arguments. There is no shell and no variable substitution. The program gets the
// variables in its environment and the request on its standard input.
type Command struct {
	// Argv is the program and its arguments. A program without a slash is looked up in PATH. A relative path with a
	// slash is below Host.Dir. Required.
	Argv []string
	// Dir is the working directory, relative to Host.Dir. Empty means Host.Dir.
	Dir string
	// Env holds additional environment variables for the program. Inherit lists variables of this process that the
	// program receives in addition to DefaultInherit. Its entries are names or path.Match patterns, such as "AWS_*".
	Env     map[string]string
	Inherit []string
	// Timeout is the time limit. Zero means ten minutes.
	Timeout time.Duration
	// MaxBytes limits the output that is kept. Zero means DefaultMaxBytes.
	MaxBytes int
}

var _ Declared = Command{}

// Type returns "command".
func (Command) Type() string { return "command" }

// Limit returns the longest time that Do may take.
func (c Command) Limit() time.Duration { return cmp.Or(c.Timeout, defaultCommandTimeout) + ending }

// Validate returns an error for each invalid field.
func (c Command) Validate() error {
	var p problems
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		p.say("argv", "missing: name the program and its arguments, such as [./check.sh, --strict]")
	case strings.Contains(strings.Join(c.Argv, ""), "\x00"):
		p.say("argv", "contains a NUL byte")
	}
	p.process(c.Env, c.Inherit, c.Timeout, c.MaxBytes)
	return p.join()
}

// Lint returns warnings about probable mistakes.
func (c Command) Lint() []Warning {
	var all []Warning
	for _, argument := range c.Argv {
		for _, name := range named.FindAllString(argument, -1) {
			all = append(all, Warning{Field: "argv", Text: name, Message: name + " is passed to the program unexpanded: read it from " +
				"its environment, or use a shell action"})
		}
	}
	return all
}

// Action returns the action, ready to run with h.
func (c Command) Action(h Host) (Action, error) {
	var wrong problems
	h.checkVariables(&wrong, "inherit", c.Inherit)
	if err := errors.Join(c.Validate(), wrong.join()); err != nil {
		return nil, err
	}
	p := program{
		kind: c.Type(), argv: slices.Clone(c.Argv), dir: h.directory(c.Dir), env: maps.Clone(c.Env), inherit: slices.Clone(c.Inherit),
		timeout: cmp.Or(c.Timeout, defaultCommandTimeout), most: c.MaxBytes,
	}
	return actionFunc(p.runOnce), nil
}
