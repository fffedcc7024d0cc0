package action

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/samber/mo"
)

// Shell is a text that bash runs, word for word: nothing is put into it. The variables are exported, so that the text has
// them as "$NAME", and the request is on its standard input.
type Shell struct {
	// Text is what bash runs. Required.
	Text string
	// Dir, Env, Inherit, Timeout and MaxBytes are those of a Command.
	Dir      string
	Env      map[string]string
	Inherit  []string
	Timeout  time.Duration
	MaxBytes int
}

var _ Declared = Shell{}

// Type returns "shell".
func (Shell) Type() string { return "shell" }

// Limit returns how long Do may take.
func (s Shell) Limit() time.Duration { return cmp.Or(s.Timeout, defaultCommandTimeout) + ending }

// Validate finds what is wrong with it.
func (s Shell) Validate() error {
	var p problems
	switch {
	case strings.TrimSpace(s.Text) == "":
		p.say("command", "it is missing: say what bash is to run")
	case strings.Contains(s.Text, "\x00"):
		p.say("command", "it has a NUL byte, which no shell can read")
	default:
		if err := checkSyntax(s.Text); err != nil {
			p.say("command", "bash cannot read it: %v", err)
		}
	}
	p.process(s.Env, s.Inherit, s.Timeout, s.MaxBytes)
	return p.join()
}

// Action makes it ready.
func (s Shell) Action(h Host) mo.Result[Action] {
	if err := s.Validate(); err != nil {
		return mo.Err[Action](err)
	}
	p := program{
		kind: s.Type(), argv: []string{"bash", "-c", "--", s.Text, "bash"}, dir: h.directory(s.Dir), env: maps.Clone(s.Env),
		inherit: slices.Clone(s.Inherit), timeout: cmp.Or(s.Timeout, defaultCommandTimeout), most: s.MaxBytes,
	}
	return mo.Ok[Action](actionFunc(p.runOnce))
}
