package shell_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

// newShell returns a shell in a directory of its own, with short times.
func newShell(t testing.TB, change func(*shell.Config)) *shell.Shell {
	t.Helper()
	parts.Command(t, "bash", "install bash")
	c := shell.Config{Dir: t.TempDir(), Timeout: 30 * time.Second, Grace: 200 * time.Millisecond}
	if change != nil {
		change(&c)
	}
	s, err := shell.New(c)
	require.NoError(t, err)
	return s
}

func run(t testing.TB, s *shell.Shell, command string) shell.Result {
	t.Helper()
	r, err := s.Run(t.Context(), shell.Command{Text: command})
	require.NoError(t, err)
	return r
}

func TestWhatIsTold(t *testing.T) {
	s := newShell(t, nil)
	for command, want := range map[string]string{
		"true":                              "exit code 0\nno output",
		"exit 3":                            "exit code 3\nno output",
		"echo out; echo err >&2; exit 1":    "exit code 1\nstdout:\nout\nstderr:\nerr",
		"printf 'no newline'":               "exit code 0\nstdout:\nno newline",
		"kill -SEGV $$":                     "killed by SIGSEGV\nno output",
		"no-such-program-anywhere":          "exit code 127\nstderr:\nbash: line 1: no-such-program-anywhere: command not found",
		"if":                                "exit code 2\nstderr:\nbash: -c: line 2: syntax error: unexpected end of file",
		"-x":                                "exit code 127\nstderr:\nbash: line 1: -x: command not found",
		"--version; echo $?":                "exit code 0\nstdout:\n127\nstderr:\nbash: line 1: --version: command not found",
		"cat":                               "exit code 0\nno output",
		"read -r x </dev/tty || exit 9":     "exit code 9\nstderr:\nbash: line 1: /dev/tty: No such device or address",
		"echo \"$0 $# $-\"":                 "exit code 0\nstdout:\nbash 0 hBc",
		"echo one\necho 'it''s' \"$(pwd)\"": "exit code 0\nstdout:\none\nits DIR",
		"echo late > >(cat)":                "exit code 0\nstdout:\nlate",
	} {
		t.Run(command, func(t *testing.T) {
			dir := strings.TrimSpace(run(t, s, "pwd").Stdout.Text)
			assert.Equal(t, strings.ReplaceAll(want, "DIR", dir), run(t, s, command).String())
		})
	}
}

func TestCallsShareNothing(t *testing.T) {
	s := newShell(t, nil)
	require.True(t, run(t, s, "cd /; export X=1; x() { :; }; umask 0").OK())
	assert.Equal(t, "exit code 0\nstdout:\nnone 0022", run(t, s, "cd $PWD && [ $PWD != / ] && echo ${X-none} $(umask); ! type x 2>/dev/null").String())
}

func TestValuesGoInAsVariables(t *testing.T) {
	s := newShell(t, func(c *shell.Config) { c.Vars = map[string]string{"A": "config", "B": "config"} })
	evil := "$(touch x); `touch y` ' \" \\ \n; rm -rf ."
	r, err := s.Run(t.Context(), shell.Command{Text: `printf '%s|%s|%s' "$A" "$B" "$EVIL"; ls`, Vars: map[string]string{"B": "command", "EVIL": evil}})
	require.NoError(t, err)
	assert.Equal(t, "config|command|"+evil, r.Stdout.Text)
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SERVICE_API_KEY", "sk-secret")
	t.Setenv("GOTESTVAR", "go")
	t.Setenv("BASH_ENV", "/nonexistent/startup")
	t.Setenv("LC_TIME", "C")
	for name, tc := range map[string]struct {
		env        []string
		has, lacks []string
	}{
		"default": {nil, []string{"PATH=", "LC_TIME=C", "TERM=dumb"}, []string{"SERVICE_API_KEY", "GOTESTVAR", "BASH_ENV"}},
		"none":    {[]string{}, []string{"TERM=dumb"}, []string{"SERVICE_API_KEY", "GOTESTVAR", "LC_TIME", "HOME="}},
		"listed":  {[]string{"PATH", "GO*"}, []string{"GOTESTVAR=go", "PATH="}, []string{"SERVICE_API_KEY", "LC_TIME", "HOME="}},
		"all":     {[]string{"*"}, []string{"SERVICE_API_KEY=sk-secret", "GOTESTVAR=go", "BASH_ENV="}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, func(c *shell.Config) { c.Env = tc.env })
			env := "\n" + run(t, s, "/usr/bin/env").Stdout.Text
			for _, want := range tc.has {
				assert.Contains(t, env, "\n"+want)
			}
			for _, not := range tc.lacks {
				assert.NotContains(t, env, "\n"+not)
			}
		})
	}
}

func TestLongOutput(t *testing.T) {
	s := newShell(t, func(c *shell.Config) { c.MaxOutputBytes = 1000 })
	r := run(t, s, "seq 1 100000; echo short >&2")
	assert.Equal(t, int64(588895), r.Stdout.Bytes)
	assert.True(t, strings.HasPrefix(r.Stdout.Text, "1\n2\n3\n"))
	assert.True(t, strings.HasSuffix(r.Stdout.Text, "\n99999\n100000\n"))
	assert.Equal(t, int64(587895), r.Stdout.Omitted)
	assert.Contains(t, r.Stdout.Text, "\n[… 587895 of 588895 bytes left out …]\n")
	assert.Equal(t, "short\n", r.Stderr.Text)
}

// A hundred megabytes go by; a few kilobytes of them are kept.
func TestHugeOutputIsNeverInMemory(t *testing.T) {
	s := newShell(t, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := run(t, s, "yes | head -c 100000000; yes no | head -c 20000000 >&2")
	runtime.ReadMemStats(&after)
	assert.Equal(t, int64(100_000_000), r.Stdout.Bytes)
	assert.Equal(t, int64(20_000_000), r.Stderr.Bytes)
	assert.Less(t, len(r.String()), 3*(16<<10))
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), "allocated in all")
}

func TestOutputThatIsNoText(t *testing.T) {
	s := newShell(t, func(c *shell.Config) { c.MaxOutputBytes = 100 })
	for command, want := range map[string]string{
		`printf '\x7fELF\x00\x01'`:                        "stdout (binary, 6 bytes):\n[begins with 7f 45 4c 46 00 01; not shown]",
		`printf 'caf\xe9, and quite some more text'`:      "stdout (unprintable characters replaced: 1):\ncaf\ufffd, and quite some more text",
		`printf 'a \x1b]0;title\x07 of a terminal here'`:  "stdout (unprintable characters replaced: 2):\na ␛]0;title␇ of a terminal here",
		`printf 'a\r\nb\rc\n'`:                            "stdout:\na\nb\nc",
		`printf 'user\u202etxt.exe, reads the other way'`: "stdout (unprintable characters replaced: 1):\nuser\ufffdtxt.exe, reads the other way",
		`printf 'nothing \U000E0041 to be seen in here'`:  "stdout (unprintable characters replaced: 1):\nnothing \ufffd to be seen in here",
		`for i in {1..100}; do printf 'ä€😀'; done`:        "stdout:\nä€😀ä€😀ä€😀ä€😀ä€😀ä€\n[… 801 of 900 bytes left out …]\n😀ä€😀ä€😀ä€😀ä€😀ä€😀",
	} {
		t.Run(command, func(t *testing.T) {
			got := run(t, s, "export LC_ALL=C.UTF-8; "+command)
			assert.Equal(t, "exit code 0\n"+want, got.String())
		})
	}
}

func TestWhatCannotRun(t *testing.T) {
	s := newShell(t, nil)
	for name, tc := range map[string]struct {
		command shell.Command
		want    string
	}{
		"nothing":      {shell.Command{Text: " \n"}, "shell: the command is empty"},
		"a NUL":        {shell.Command{Text: "echo \x00"}, "shell: the command has a NUL byte, which no shell can read"},
		"negative":     {shell.Command{Text: "x", Timeout: -1}, "shell: the timeout is -1ns: it must not be negative"},
		"a bad name":   {shell.Command{Text: "x", Vars: map[string]string{"A=B": ""}}, `shell: variable "A=B": not a valid variable name`},
		"a NUL within": {shell.Command{Text: "x", Vars: map[string]string{"A": "\x00"}}, "shell: variable A: the value contains a NUL byte"},
		"too long":     {shell.Command{Text: "echo " + strings.Repeat("x", 1<<20)}, "argument list too long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Run(t.Context(), tc.command)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestDirectoryThatIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	require.NoError(t, os.Mkdir(dir, 0o755))
	s := newShell(t, func(c *shell.Config) { c.Dir = dir })
	require.NoError(t, os.Remove(dir))
	_, err := s.Run(t.Context(), shell.Command{Text: "true"})
	require.EqualError(t, err, "shell: directory: stat "+dir+": no such file or directory")
}

func TestShellThatIsGone(t *testing.T) {
	link := filepath.Join(t.TempDir(), "sh")
	require.NoError(t, os.Symlink(parts.Command(t, "bash", "install bash"), link))
	s := newShell(t, func(c *shell.Config) { c.Shell = link })
	assert.Equal(t, "exit code 0\nstdout:\nx", run(t, s, "echo x").String())
	require.NoError(t, os.Remove(link))
	_, err := s.Run(t.Context(), shell.Command{Text: "true"})
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "shell: starting "+link)
}

func TestConfigurationIsChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := shell.New(shell.Config{
		Shell: "no-such-shell", Timeout: -1, Env: []string{"[a"},
		Vars: map[string]string{"": "x"}, Limits: shell.Limits{Processes: -1},
	})
	for _, want := range []string{
		"no directory: set Config.Dir", "no shell", "install bash", "must not be negative", `pattern "[a"`,
		`variable "": not a valid variable name`, "limits {Processes:-1",
	} {
		assert.ErrorContains(t, err, want)
	}
	_, err = shell.New(shell.Config{Dir: file})
	assert.ErrorContains(t, err, "directory: "+file+" is a file")
	_, err = shell.Tool(shell.Config{Dir: "/no/such/dir"})
	assert.ErrorContains(t, err, "directory: stat /no/such/dir")
}

func TestCancelledBeforeItBegins(t *testing.T) {
	s := newShell(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	_, err := s.Run(ctx, shell.Command{Text: "touch began"})
	require.ErrorIs(t, err, cause)
	assert.Equal(t, "no output", strings.Split(run(t, s, "ls").String(), "\n")[1])
}

func ExampleShell_Run() {
	dir, err := os.MkdirTemp("", "shell")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s, err := shell.New(shell.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := s.Run(context.Background(), shell.Command{
		Text: `echo "hello $NAME"; ls "$NAME"`,
		Vars: map[string]string{"NAME": "$(whoami)"}, // never read as shell text
	})
	fmt.Println(r, err)
	// Output:
	// exit code 2
	// stdout:
	// hello $(whoami)
	// stderr:
	// ls: cannot access '$(whoami)': No such file or directory <nil>
}
