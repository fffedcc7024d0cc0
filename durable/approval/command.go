package approval

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/process"
)

// Command is a notifier that runs a program, for example one that sends a mail or shows a notification. The program gets
// the Message as JSON on standard input, and in its environment GRAPNEL_RUN, GRAPNEL_AGENT, GRAPNEL_TOOL and GRAPNEL_LINK
// of the first waiting call. A nonzero exit code is an error. When the program exits or times out, Command kills the rest
// of its process group (on Unix; elsewhere only the program).
type Command struct {
	// Args are the program and its arguments; no shell interprets them. Required.
	Args []string
	// Links build the links. Required.
	Links Links
	// Env names the variables of this program's environment that the command gets. Nil means DefaultEnv.
	Env []string
	// Timeout is the time limit. Zero means 30 seconds.
	Timeout time.Duration
	// Output receives both output streams of the program. Nil discards them, because they may contain the link.
	Output io.Writer
}

// defaultRun is the default of Command.Timeout.
const defaultRun = 30 * time.Second

// DefaultEnv returns the default of Command.Env: the variables that locate programs, the user's files, the display and
// the message bus. It includes no keys.
func DefaultEnv() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR",
		"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
		"SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT", "TEMP", "TMP",
	}
}

var _ durable.Notifier = Command{}

// Notify runs the program.
func (p Command) Notify(ctx context.Context, n durable.Notice) error {
	body, m, err := newMessage(n, p.Links)
	if err != nil || body == nil {
		return err
	}
	fail := func(err error) error {
		return fmt.Errorf("running %s to announce that run %s waits: %w", p.name(), n.Run.ID, err)
	}
	if len(p.Args) == 0 {
		return fail(errors.New("no program configured: set Command.Args"))
	}
	timeout := cmp.Or(p.Timeout, defaultRun)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("killed after %s", timeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...) //nolint:gosec // running the configured program is its purpose
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(body), p.Output, p.Output
	cmd.Env = append(p.environ(),
		"GRAPNEL_RUN="+string(m.Run), "GRAPNEL_AGENT="+oneLine(m.Agent), "GRAPNEL_TOOL="+oneLine(m.Calls[0].Tool), "GRAPNEL_LINK="+m.Calls[0].Link)
	cmd.WaitDelay = time.Second // for pipes that a process holds open
	process.OwnGroup(cmd)
	cmd.Cancel = func() error {
		process.KillGroup(cmd)
		return nil
	}
	err = cmd.Run()
	process.KillGroup(cmd)
	switch {
	case ctx.Err() != nil:
		return fail(context.Cause(ctx))
	case cmd.ProcessState != nil && cmd.ProcessState.Success():
		return nil // the program may ignore its input and leave its pipes open
	case err != nil:
		return fail(err)
	}
	return nil
}

func (p Command) name() string {
	if len(p.Args) == 0 {
		return "a program"
	}
	return p.Args[0]
}

func (p Command) environ() []string {
	passed := p.Env
	if passed == nil {
		passed = DefaultEnv()
	}
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(passed, name)
	})
}
