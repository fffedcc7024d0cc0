package shell

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/internal/process"
)

const (
	defaultName           = "bash"
	defaultTimeout        = 2 * time.Minute
	defaultMaxTimeout     = 10 * time.Minute
	defaultGrace          = 2 * time.Second
	defaultMaxOutputBytes = 16 << 10
)

// Config configures a Shell. All fields except Dir may be zero.
type Config struct {
	// Dir is the working directory for each command. It must exist. It does not confine the command.
	Dir string
	// Name is the tool's name. Empty means "bash".
	Name string
	// Shell is the shell: a path, or a name to look up in PATH. Empty means "bash". It must support POSIX scripts, as
	// dash and zsh do. fish, Python and the like do not.
	Shell string
	// Timeout is the time limit for a command that sets none. Zero means two minutes.
	Timeout time.Duration
	// MaxTimeout is the longest time limit that the model may set. Zero means ten minutes, or Timeout if that is
	// more.
	MaxTimeout time.Duration
	// Grace is how long processes may take to end after SIGTERM, before SIGKILL. Zero means two seconds. Less than zero
	// means that SIGKILL follows immediately.
	Grace time.Duration
	// MaxOutputBytes is the number of bytes kept from stdout and from stderr, each: one half from the head, the other
	// from the tail. Zero means 16 KiB.
	MaxOutputBytes int
	// Env names the variables of this program's environment that commands get: exact names, or patterns as in
	// path.Match, such as "GO*". Nil means DefaultEnv. Empty means none. "*" passes on everything, including secrets.
	Env []string
	// Vars are further variables, by name. They take precedence over Env.
	Vars map[string]string
	// Limits limits a command's resources. The zero Limits sets no limit.
	Limits Limits
}

// Limits limits one command's resources. A zero field sets no limit. Linux only.
type Limits struct {
	// Processes is the maximum number of simultaneous processes, including the shell. If there are more, the whole
	// command is killed.
	Processes int
	// CPUTime is each process's CPU time, in whole seconds. A process that exceeds it gets SIGXCPU, and a second later
	// SIGKILL.
	CPUTime time.Duration
	// FileBytes is the maximum size of each file that a process writes. A process that exceeds it gets SIGXFSZ.
	FileBytes int64
	// MemoryBytes is each process's maximum private memory (RLIMIT_DATA). Further allocations fail. Shared memory does
	// not count.
	MemoryBytes int64
}

// DefaultEnv returns the names of the variables that commands get if Config.Env is nil: locations of programs and user
// files, language and time zone. None of them is a secret.
func DefaultEnv() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR"}
}

// withDefaults returns the configuration with defaults filled in, or an error that joins all its problems.
func (c Config) withDefaults() (Config, error) {
	wrong := []error{process.CheckSupport(), c.Limits.check()}
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }

	var err error
	if c.Dir == "" {
		say("no directory: set Config.Dir to the folder for commands")
	} else if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		say("directory: %w", err)
	} else {
		wrong = append(wrong, isDir(c.Dir))
	}
	c.Shell = cmp.Or(c.Shell, "bash")
	if found, err := exec.LookPath(c.Shell); err != nil {
		say("no shell: %w: install bash, or set Config.Shell to the path of a shell", err)
	} else if c.Shell, err = filepath.Abs(found); err != nil {
		say("shell: %w", err)
	}
	if c.Timeout < 0 || c.MaxTimeout < 0 || c.MaxOutputBytes < 0 {
		say("Timeout (%v), MaxTimeout (%v) and MaxOutputBytes (%d) must not be negative", c.Timeout, c.MaxTimeout, c.MaxOutputBytes)
	}
	c.Name = cmp.Or(c.Name, defaultName)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.MaxTimeout = max(cmp.Or(c.MaxTimeout, defaultMaxTimeout), c.Timeout)
	c.Grace = max(cmp.Or(c.Grace, defaultGrace), 0)
	c.MaxOutputBytes = cmp.Or(c.MaxOutputBytes, defaultMaxOutputBytes)
	if c.Env == nil {
		c.Env = DefaultEnv()
	}
	for _, pattern := range c.Env {
		if _, err := path.Match(pattern, ""); err != nil {
			say("Env: pattern %q: %w", pattern, err)
		}
	}
	c.Env, c.Vars = slices.Clone(c.Env), maps.Clone(c.Vars)
	return c, errors.Join(append(wrong, checkVars(c.Vars))...)
}

func (l Limits) check() error {
	switch {
	case l == (Limits{}):
		return nil
	case l.Processes < 0 || l.CPUTime < 0 || l.FileBytes < 0 || l.MemoryBytes < 0:
		return fmt.Errorf("limits %+v: they must not be negative, and zero means none", l)
	case runtime.GOOS != "linux":
		return fmt.Errorf("limits need Linux: this is %s", runtime.GOOS)
	}
	return nil
}

func ceilSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

func isDir(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return fmt.Errorf("directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("directory: %s is a file", name)
	}
	return nil
}

func checkVars(vars map[string]string) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			wrong = append(wrong, fmt.Errorf("variable %q: not a valid variable name", name))
		}
		if strings.Contains(vars[name], "\x00") {
			wrong = append(wrong, fmt.Errorf("variable %s: the value contains a NUL byte", name))
		}
	}
	return errors.Join(wrong...)
}
