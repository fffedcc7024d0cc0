package shell

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/process"
)

// A Shell runs commands. Create one with New. It is immutable and safe for concurrent use.
type Shell struct {
	config Config
}

// New returns a shell, or an error that joins all configuration problems, such as a missing directory or shell.
func New(c Config) (*Shell, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	return &Shell{config: c}, nil
}

// Command is a command for a Shell.
type Command struct {
	// Text is the command, in the shell's language. Do not insert values into it: use Vars.
	Text string
	// Vars are variables for this command, by name. Use them to pass values. They take precedence over Config.Vars.
	Vars map[string]string
	// Timeout is the command's time limit. Zero means Config.Timeout.
	Timeout time.Duration
}

// Run runs a command. It returns when the command has ended and, if possible, all its processes.
//
// Run returns an error if the command could not be started. A command that fails or exceeds its time limit is not an
// error. The Result describes how it ended. If ctx is done, the error is its cause, and the Result holds the output
// until then.
func (s *Shell) Run(ctx context.Context, c Command) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	var wrong []error
	switch {
	case strings.TrimSpace(c.Text) == "":
		wrong = append(wrong, errors.New("the command is empty"))
	case strings.Contains(c.Text, "\x00"):
		wrong = append(wrong, errors.New("the command has a NUL byte, which no shell can read"))
	case c.Timeout < 0:
		wrong = append(wrong, fmt.Errorf("the timeout is %v: it must not be negative", c.Timeout))
	}
	wrong = append(wrong, checkVars(c.Vars), isDir(s.config.Dir))
	if err := errors.Join(wrong...); err != nil {
		return Result{}, fmt.Errorf("shell: %w", err)
	}
	if c.Timeout == 0 {
		c.Timeout = s.config.Timeout
	}
	r, err := s.runCommand(ctx, c)
	if err != nil {
		return r, fmt.Errorf("shell: %w", err)
	}
	if r.Ended == Cancelled {
		return r, context.Cause(ctx)
	}
	return r, nil
}

// environ returns a command's environment.
func (s *Shell) environ(ctx context.Context, c Command) []string {
	vars := map[string]string{"TERM": "dumb"}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if s.passes(name) {
			vars[name] = value
		}
	}
	maps.Copy(vars, process.TraceVars(ctx))
	maps.Copy(vars, s.config.Vars)
	if more, ok := ctx.Value(variablesKey{}).(map[string]string); ok {
		maps.Copy(vars, more)
	}
	maps.Copy(vars, c.Vars)
	return slices.Sorted(maps.Values(lo.MapValues(vars, func(value, name string) string { return name + "=" + value })))
}

type variablesKey struct{}

// WithVariables returns a context whose commands get more variables, for middleware around an executor. They take precedence over
// Config.Vars.
func WithVariables(ctx context.Context, vars map[string]string) context.Context {
	return context.WithValue(ctx, variablesKey{}, vars)
}

func (s *Shell) passes(name string) bool {
	return slices.ContainsFunc(s.config.Env, func(pattern string) bool {
		ok, _ := path.Match(pattern, name) // New checked the pattern
		return ok || pattern == "*"
	})
}
