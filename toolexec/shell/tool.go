package shell

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/process"
	"github.com/grapnel-go/grapnel/toolexec"
)

// keyVariable is the environment variable with a tool call's idempotency key.
const keyVariable = "GRAPNEL_IDEMPOTENCY_KEY"

// Tool calls New and returns the shell's tool.
func Tool(c Config) (toolexec.Tool, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	return s.Tool(), nil
}

// Tool returns the tool that runs commands with this shell. Its arguments are command, a string, and optionally
// timeout_seconds, an integer. A call is not repeated automatically. The timeout in the tool's policy includes the time
// to end processes. Use toolexec.WithPolicy to change this.
func (s *Shell) Tool() toolexec.Tool {
	type arguments struct {
		Command        string `json:"command"`
		TimeoutSeconds int64  `json:"timeout_seconds"`
	}
	tool := toolexec.CallFunc(s.spec(), func(ctx context.Context, call toolexec.Call, in arguments) (toolexec.Output, error) {
		r, err := s.Run(ctx, Command{
			Text:    in.Command,
			Timeout: time.Duration(in.TimeoutSeconds) * time.Second,
			Vars:    map[string]string{keyVariable: call.IdempotencyKey()},
		})
		switch {
		case r.Ended == Cancelled:
			return toolexec.Output{}, &Error{Result: r, Cause: err}
		case err != nil:
			return toolexec.Output{}, err
		case r.Ended == TimedOut:
			return toolexec.Output{}, &toolexec.TimeoutError{After: r.Timeout, Err: &Error{Result: r}}
		}
		return toolexec.Output{
			Content: agent.TextContent(r.String()),
			Failed:  !r.OK(),
			Effects: agent.EffectsOf(lastResult.Set(r.withoutText())),
		}, nil
	})
	return toolexec.WithPolicy(tool, toolexec.Policy{
		Timeout:        s.config.MaxTimeout + s.config.Grace + process.Killing + 10*time.Second,
		Grace:          s.config.Grace + process.Killing + time.Second,
		Retry:          toolexec.Retry{Attempts: 1},
		MaxResultBytes: 4*s.config.MaxOutputBytes + 4<<10, // a replaced byte can become three bytes
	})
}

func (s *Shell) spec() agent.ToolSpec {
	c := s.config
	return agent.ToolSpec{
		Name: c.Name,
		Description: fmt.Sprintf("Runs a command with %s and returns its exit code, stdout and stderr. Each call is a shell of "+
			"its own that begins in %s: directory, variables and background processes do not last from call to call. There is "+
			"no stdin and no terminal. Output beyond %d bytes of a stream is cut in its middle. "+
			"The command is killed after %d seconds, or after timeout_seconds.", filepath.Base(c.Shell), c.Dir, c.MaxOutputBytes, ceilSeconds(c.Timeout)),
		Parameters: fmt.Sprintf(`{"type":"object","properties":{`+
			`"command":{"type":"string","minLength":1,"description":"the command"},`+
			`"timeout_seconds":{"type":"integer","minimum":1,"maximum":%d,"description":"how long it may take, in seconds"}},`+
			`"required":["command"],"additionalProperties":false}`, max(1, int64(c.MaxTimeout/time.Second))),
	}
}

// lastResult holds the run's last command result, without output.
var lastResult = agent.RunKey[Result]("shell.last")

func (r Result) withoutText() Result {
	r.Stdout.Text, r.Stderr.Text = "", ""
	return r
}

// ResultOf returns the Result of the command behind a tool result, for hooks at PostToolUse and ToolFailed. If the
// command ended by itself, the stream text is empty: the tool result holds the text for the model. It returns false for
// other tools' results, for calls that did not run, and for results that were withheld or read from JSON.
func ResultOf(r agent.ToolResult) (Result, bool) {
	if ended, ok := errors.AsType[*Error](r.Err); ok {
		return ended.Result, true
	}
	for _, effect := range r.Effects.All() {
		if name, scope, value, ok := effect.Metadata(); ok && name == lastResult.Name() && scope == lastResult.Scope() {
			result, ok := value.(Result)
			return result, ok
		}
	}
	return Result{}, false
}
