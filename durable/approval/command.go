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
)

// Command is a notifier that runs a program, such as one that sends a mail or shows a
// notification. It gets the Message as JSON on standard input, and in its environment
// GRAPNEL_RUN, GRAPNEL_AGENT, GRAPNEL_TOOL and GRAPNEL_LINK of the first call that waits.
// An exit code that is not zero is an error. When the time is over, or the program is
// done, the rest of its process group is killed (on Unix; elsewhere the program).
type Command struct {
	// Args are the program and its arguments; no shell reads them. Required.
	Args []string
	// Links make the links; required.
	Links Links
	// Env names the variables of this program's environment that it gets. Nil means
	// DefaultEnv.
	Env []string
	// Timeout is how long it may take. Zero means 30 seconds.
	Timeout time.Duration
	// Output is where what it prints goes, both streams. Nil is nowhere: it may have
	// printed the link.
	Output io.Writer
}

// defaultRun is how long a Command may take unless it says otherwise.
const defaultRun = 30 * time.Second

// DefaultEnv names the variables that a Command gets unless it says otherwise: where
// programs, the user's files, the screen and the message bus are, and no keys.
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
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...) //nolint:gosec // that is what it is for
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(body), p.Output, p.Output
	cmd.Env = append(p.environ(),
		"GRAPNEL_RUN="+string(m.Run), "GRAPNEL_AGENT="+oneLine(m.Agent), "GRAPNEL_TOOL="+oneLine(m.Calls[0].Tool), "GRAPNEL_LINK="+m.Calls[0].Link)
	cmd.WaitDelay = time.Second // for pipes that a process holds open
	ownGroup(cmd)
	err = cmd.Run()
	killGroup(cmd)
	switch {
	case ctx.Err() != nil:
		return fail(context.Cause(ctx))
	case cmd.ProcessState != nil && cmd.ProcessState.Success():
		return nil // it need not have read what it was told, nor have closed its pipes
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
