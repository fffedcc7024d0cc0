package action

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

// Shell runs a bash script. Nothing is inserted into the text. The variables are exported, so that the text can use
// them as "$NAME". The request is on standard input.
type Shell struct {
	// Text is the script. Required.
	Text string
	// Dir, Env, Inherit, Timeout and MaxBytes are as in Command.
	Dir      string
	Env      map[string]string
	Inherit  []string
	Timeout  time.Duration
	MaxBytes int
}

var _ Declared = Shell{}

// Type returns "shell".
func (Shell) Type() string { return "shell" }

// Limit returns the longest time that Do may take.
func (s Shell) Limit() time.Duration { return cmp.Or(s.Timeout, defaultCommandTimeout) + ending }

// Validate returns an error for each invalid field.
func (s Shell) Validate() error {
	var p problems
	switch {
	case strings.TrimSpace(s.Text) == "":
		p.say("command", "missing: set the text that bash runs")
	case strings.Contains(s.Text, "\x00"):
		p.say("command", "contains a NUL byte")
	default:
		if err := checkSyntax(s.Text); err != nil {
			p.say("command", "syntax error: %v", err)
		}
	}
	p.process(s.Env, s.Inherit, s.Timeout, s.MaxBytes)
	return p.join()
}

// Action returns the action, ready to run with h.
func (s Shell) Action(h Host) (Action, error) {
	var wrong problems
	h.checkVariables(&wrong, "inherit", s.Inherit)
	if err := errors.Join(s.Validate(), wrong.join()); err != nil {
		return nil, err
	}
	p := program{
		kind: s.Type(), argv: []string{"bash", "-c", "--", s.Text, "bash"}, dir: h.directory(s.Dir), env: maps.Clone(s.Env),
		inherit: slices.Clone(s.Inherit), timeout: cmp.Or(s.Timeout, defaultCommandTimeout), most: s.MaxBytes,
	}
	return actionFunc(p.runOnce), nil
}
