package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/internal/process"
)

const (
	// commandTokenLife is the time for which the token of a command is reused. The commands of Azure and Google Cloud
	// print a token that is valid for at least five minutes.
	commandTokenLife = 4 * time.Minute
	// tokenTimeout is the time limit for getting a token.
	tokenTimeout = 30 * time.Second
)

// tokenOf returns a function that gets tokens from a variable, or from the command in another variable. It returns
// nil if neither variable is set.
func tokenOf(variable, command string) (drivers.TokenFunc, error) {
	if token := setting(variable); token != "" {
		return constantToken(token), nil
	}
	text := setting(command)
	if text == "" {
		return nil, nil
	}
	args, err := splitCommand(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return commandToken(command, args, commandTokenLife), nil
}

func constantToken(token string) drivers.TokenFunc {
	return func(context.Context) (string, error) { return token, nil }
}

// splitCommand splits a command into words, without a shell: words are separated by spaces, or are a JSON
// list.
func splitCommand(text string) (args []string, err error) {
	if !strings.HasPrefix(text, "[") {
		return strings.Fields(text), nil
	}
	if err := json.Unmarshal([]byte(text), &args); err != nil || len(args) == 0 || args[0] == "" {
		return nil, errors.New(`expected a command such as gcloud auth print-access-token, or a JSON list of its words`)
	}
	return args, nil
}

// commandToken returns a function that runs a command for a token and caches the token for the duration life. Its
// errors do not contain the command's output, which may be a secret. Name is the variable that contains the command.
func commandToken(name string, args []string, life time.Duration) drivers.TokenFunc {
	var token string
	var until time.Time
	turn := make(chan struct{}, 1) // guards the variables below
	return func(ctx context.Context) (string, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // also when both were possible: a short program may end before it is killed
			return "", ctx.Err()
		}
		if time.Now().Before(until) {
			return token, nil
		}
		text, err := outputOf(ctx, args)
		switch {
		case err != nil:
			return "", fmt.Errorf("running the command of %s: %w: run it by hand to see why", name, err)
		case text == "" || strings.ContainsAny(text, " \t\r\n"):
			return "", fmt.Errorf("running the command of %s: expected a token and nothing else on its standard output", name)
		}
		token, until = text, time.Now().Add(life)
		return token, nil
	}
}

// outputOf runs a program, kills it with all its children when ctx ends, and returns its standard output
// without surrounding space.
func outputOf(ctx context.Context, args []string) (string, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	r, err := process.Run(ctx, process.Command{
		Path: path, Args: args, Env: os.Environ(), Stdout: &out, Stderr: io.Discard, Timeout: tokenTimeout,
	})
	switch {
	case err != nil:
		return "", err
	case r.Ended == process.Cancelled:
		return "", context.Cause(ctx)
	case r.Ended == process.TimedOut:
		return "", fmt.Errorf("it exceeded the time limit of %s", tokenTimeout)
	case r.ExitCode() != 0:
		return "", errors.New(r.State.String())
	}
	return strings.TrimSpace(out.String()), nil
}
