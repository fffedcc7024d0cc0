package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/process"
)

// Command is a program whose success is the check, such as go test.
type Command struct {
	// Dir is the working directory. Empty means this process's directory.
	Dir string
	// Args are the program and its arguments, without a shell.
	Args []string
	// Env is the environment, as in exec.Cmd. Nil means this process's variables with which programs find their files,
	// such as PATH and HOME, and the Go tools' variables. Tests that a model wrote then do not see API keys.
	Env []string
}

// passed names the variables that a Command without Env passes on.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CACHE_HOME",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOTOOLCHAIN", "GOTMPDIR", "CGO_ENABLED", "CC", "CXX",
	"SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT", "TEMP", "TMP",
}

// Check runs the program and passes when it exits with 0. The output is its text on both streams, in order of arrival.
// When ctx is done, the program's whole process group is killed. Processes that remain in the group when the program
// ends are killed, too. On systems without process groups only the program itself is killed. Processes in another
// session (setsid, daemons) keep running. toolexec/shell finds them, so use it for such checks. Check returns an error
// if the program cannot be started.
func (p Command) Check(ctx context.Context, _ agent.State) (Verdict, error) {
	if len(p.Args) == 0 {
		return Verdict{}, errors.New("there is no program: set Command.Args")
	}
	if p.Dir != "" {
		if _, err := os.Stat(p.Dir); err != nil { // otherwise the error would name the program
			return Verdict{}, fmt.Errorf("running %s: Command.Dir: %w", p.Args[0], err)
		}
	}
	var out tail
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...) //nolint:gosec // running a program is the purpose
	cmd.Dir, cmd.Env = p.Dir, p.environ()
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // for pipes that a process holds open
	process.OwnGroup(cmd)
	cmd.Cancel = func() error {
		process.KillGroup(cmd)
		return nil
	}
	err := cmd.Run()
	process.KillGroup(cmd)
	if cmd.ProcessState == nil {
		return Verdict{}, fmt.Errorf("running %s: %w", p.Args[0], err)
	}
	if cmd.ProcessState.Success() && ctx.Err() == nil {
		return Verdict{Passed: true, Output: out.String()}, nil
	}
	return Verdict{Output: fmt.Sprintf("%s\n%s: %s", strings.TrimSpace(out.String()), strings.Join(p.Args, " "), cmd.ProcessState)}, nil
}

func (p Command) environ() []string {
	if p.Env != nil {
		return p.Env
	}
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(passed, name)
	})
}

// tail keeps the end of the data written to it.
type tail struct{ kept []byte }

// tailBytes is how many bytes of the end are kept. The model receives less.
const tailBytes = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-tailBytes):]...)
	if len(t.kept) > 2*tailBytes {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.kept[max(0, len(t.kept)-tailBytes):]) }
