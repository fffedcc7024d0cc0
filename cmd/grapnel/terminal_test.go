//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const patience = 30 * time.Second

// program is grapnel at work, with all that it has written.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	keys *os.File      // its terminal; nil without one
	gone chan struct{} // closed when all that came from the terminal was read

	mu   sync.Mutex
	text bytes.Buffer
}

func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *program) written() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// heedSIGHUP has programs begin with SIGHUP as it is by default, also where the tests
// run under nohup: a signal that is handled here is not ignored there.
var heedSIGHUP = sync.OnceFunc(func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) })

// expect waits until the program has written a text.
func (p *program) expect(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.written(), text) }, patience, 5*time.Millisecond,
		"waiting for %q", text)
}

// prompted waits until the program reads what is said. Ctrl-D is only a key to it then:
// before, the terminal takes it.
func (p *program) prompted() {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.HasSuffix(p.written(), "\x1b[?2004h> ") }, patience, 5*time.Millisecond,
		"waiting for the prompt")
}

func (p *program) press(keys string) {
	p.t.Helper()
	_, err := p.keys.WriteString(keys)
	require.NoError(p.t, err)
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// code waits for the end of the program and returns its exit code.
func (p *program) code() int {
	p.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.cmd.Wait()
		if p.gone != nil {
			<-p.gone
		}
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		require.Fail(p.t, "the program does not end", p.written())
	}
	return p.cmd.ProcessState.ExitCode()
}

func command(t *testing.T, s *service, args ...string) *program {
	t.Helper()
	heedSIGHUP()
	p := &program{t: t, cmd: exec.CommandContext(t.Context(), "grapnel", args...)}
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.cmd.Dir, "TERM=xterm"}
	if s != nil {
		p.cmd.Env = append(p.cmd.Env, "GRAPNEL_MODEL=openai/test-model", "OPENAI_API_KEY=sk-1", "OPENAI_BASE_URL="+s.URL+"/v1")
	}
	return p
}

// piped starts grapnel without a terminal.
func piped(t *testing.T, s *service, args ...string) *program {
	t.Helper()
	p := command(t, s, args...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(t, p.cmd.Start())
	return p
}

// atTerminal starts grapnel at a terminal of 60 columns.
func atTerminal(t *testing.T, s *service, args ...string) *program {
	t.Helper()
	p := command(t, s, args...)
	for name, text := range map[string]string{"ask.yaml": "tools: [shell]\nhooks:\n  - ask: {tools: [bash], reason: it makes files}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(p.cmd.Dir, name), []byte(text), 0o600))
	}
	p.atTerminal()
	return p
}

// atTerminal starts it at a terminal.
func (p *program) atTerminal() {
	p.t.Helper()
	keys, err := pty.StartWithSize(p.cmd, &pty.Winsize{Rows: 40, Cols: 60})
	require.NoError(p.t, err)
	p.keys, p.gone = keys, make(chan struct{})
	go func() {
		defer close(p.gone)
		buffer := make([]byte, 4096)
		for {
			n, err := keys.Read(buffer)
			_, _ = p.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	p.t.Cleanup(func() { _ = keys.Close() })
}

func modelOf(t *testing.T, turns string) *service {
	t.Helper()
	s, err := newService(turns, "")
	require.NoError(t, err)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// waitUntilAsked waits until the model was asked again.
func (s *service) waitUntilAsked(t *testing.T) {
	t.Helper()
	select {
	case <-s.taken:
	case <-time.After(patience):
		require.Fail(t, "the model is not asked")
	}
}

func TestCtrlCEndsARun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		signal syscall.Signal
		code   int
		says   string
	}{
		"SIGINT":  {syscall.SIGINT, 130, "cancelled: in step 1, interrupted by Ctrl-C"},
		"SIGTERM": {syscall.SIGTERM, 143, "cancelled: in step 1, ended by SIGTERM"},
		"SIGHUP":  {syscall.SIGHUP, 129, "cancelled: in step 1, ended by SIGHUP"},
	} {
		t.Run(name, func(t *testing.T) {
			s := modelOf(t, `{"hang": true}`)
			p := piped(t, s, "run", "hello")
			s.waitUntilAsked(t)
			p.signal(tc.signal)
			assert.Equal(t, tc.code, p.code())
			assert.Contains(t, p.written(), tc.says)
		})
	}
}

// A tool that does not want to end is left to its grace period by the first Ctrl-C;
// the second ends the program at once.
func TestCtrlCTwiceExitsAtOnce(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"calls": [{"name": "bash", "arguments": {"command": "trap '' TERM; echo > started; for i in $(seq 600); do sleep 0.1; done"}}]}`)
	p := piped(t, s, "run", "--tool", "shell", "hello")
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(p.cmd.Dir, "started"))
		return err == nil
	}, patience, 5*time.Millisecond)
	p.signal(syscall.SIGINT)
	p.expect("Interrupt again")
	p.signal(syscall.SIGINT)
	assert.Equal(t, 130, p.code())
	assert.NotContains(t, p.written(), "cancelled: in step")
}

func TestCtrlCTellsWhichToolRan(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"calls": [{"name": "bash", "arguments": {"command": "echo > started; sleep 60"}}]}`)
	p := piped(t, s, "run", "--tool", "shell", "hello")
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(p.cmd.Dir, "started"))
		return err == nil
	}, patience, 5*time.Millisecond)
	p.signal(syscall.SIGINT)
	assert.Equal(t, 130, p.code())
	assert.Contains(t, p.written(), "bash")
	assert.Contains(t, p.written(), "interrupted by Ctrl-C")
}

// Ctrl-C cancels the turn and brings the prompt back; at the prompt it ends nothing.
func TestChatAtATerminal(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"hang": true}
{"text": "Here I am."}
{"text": "A paste."}`)
	p := atTerminal(t, s, "chat")
	p.prompted()
	p.press("\x03")
	p.expect("Nothing is running.")
	p.prompted()
	p.press("hello?\r")
	s.waitUntilAsked(t)
	p.press("\x03")
	p.expect("interrupted by Ctrl-C")
	p.prompted()
	p.press("again\r")
	p.expect("Here I am.")
	p.prompted()
	p.press("/hepl\r")
	p.expect("Did you mean /help?")
	p.prompted()
	p.press("\x1b[200~one\rtwo\x1b[201~\r")
	p.expect("A paste.")
	p.prompted()
	p.press("\x04")
	assert.Equal(t, 0, p.code())
	assert.Contains(t, p.written(), "\x1b[1mstep 1", "a terminal gets colours")
	assert.Equal(t, 1, strings.Count(p.written(), "Here I am."), "the answer is not written twice")
}

// Where a hook asks for approval, the person at the terminal is asked.
func TestApproval(t *testing.T) {
	t.Parallel()
	const turns = `{"calls": [{"name": "bash", "arguments": {"command": "touch made.txt"}}]}
{"text": "All right."}`
	for name, tc := range map[string]struct {
		answer string
		code   int
		says   string
		made   bool
	}{
		"yes":     {"y\r", 0, "All right.", true},
		"no":      {"n\r", 5, "rejected a call", false},
		"why not": {"use printf instead\r", 0, "All right.", false},
		"Ctrl-C":  {"\x03", 130, "interrupted by Ctrl-C", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := atTerminal(t, modelOf(t, turns), "run", "--agent", "ask.yaml", "go")
			p.expect("y = yes")
			assert.Contains(t, p.written(), "it makes files")
			p.press(tc.answer)
			p.expect(tc.says)
			assert.Equal(t, tc.code, p.code())
			_, err := os.Stat(filepath.Join(p.cmd.Dir, "made.txt"))
			assert.Equal(t, tc.made, err == nil)
		})
	}
}

// SIGTERM ends a conversation, in a turn and at the prompt, and leaves the terminal
// as it was.
func TestSIGTERMEndsChat(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"hang": true}`)
	p := atTerminal(t, s, "chat")
	p.expect("> ")
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 143, p.code())

	p = atTerminal(t, s, "chat")
	p.expect("> ")
	p.press("hello\r")
	s.waitUntilAsked(t)
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 143, p.code())
	assert.Contains(t, p.written(), "ended by SIGTERM")
}

// However a conversation ends, its rules at ConversationEnd are told before the program has ended. Ctrl-C in a turn does not
// end it.
func TestTheEndOfAChatIsTold(t *testing.T) {
	t.Parallel()
	const rules = `policy: rules
hooks: {ConversationEnd: [{id: told, type: shell, command: 'cat >> told.json', observe: true}]}
`
	for name, tc := range map[string]struct {
		end  func(p *program, s *service)
		code int
		told string
	}{
		"Ctrl-D": {func(p *program, _ *service) { p.press("\x04") }, 0, `"conversation":{"reason":"prompt_input_exit","turns":2}`},
		"signal": {func(p *program, _ *service) { p.signal(syscall.SIGTERM) }, 143, `"conversation":{"reason":"other","turns":2}`},
		"signal in a turn": {func(p *program, s *service) {
			p.press("more\r")
			s.waitUntilAsked(t)
			p.signal(syscall.SIGTERM)
		}, 143, `"conversation":{"reason":"other","turns":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modelOf(t, `{"hang": true}
{"text": "Here I am."}
{"hang": true}`)
			p := command(t, s, "chat", "--policy", "rules.yaml")
			p.write("rules.yaml", rules)
			p.atTerminal()
			p.prompted()
			p.press("hello?\r")
			s.waitUntilAsked(t)
			p.press("\x03")
			p.expect("interrupted by Ctrl-C")
			p.prompted()
			assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "told.json"))
			p.press("again\r")
			s.waitUntilAsked(t)
			p.expect("Here I am.")
			p.prompted()
			tc.end(p, s)
			assert.Equal(t, tc.code, p.code(), p.written())
			assert.Equal(t, 1, strings.Count(p.read("told.json"), tc.told), p.read("told.json"))
			assert.Equal(t, 1, strings.Count(p.read("told.json"), `"point":"ConversationEnd"`))
		})
	}
}

// What was typed before a question was asked is no answer to it.
func TestTypedBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"calls": [{"name": "bash", "arguments": {"command": "until test -e typed; do sleep 0.01; done"}}]}
{"calls": [{"name": "bash", "arguments": {"command": "touch made.txt"}}]}
{"text": "All right."}`)
	p := atTerminal(t, s, "run", "--agent", "ask.yaml", "go")
	p.expect("y = yes")
	p.press("y\r")
	s.waitUntilAsked(t)
	p.expect("▸ bash")
	echoed := func() int { return strings.Count(p.written(), "y\r\n") }
	before := echoed()
	p.press("y\r")
	require.Eventually(t, func() bool { return echoed() > before }, patience, 5*time.Millisecond) // it waits in the terminal
	require.NoError(t, os.WriteFile(filepath.Join(p.cmd.Dir, "typed"), nil, 0o600))
	p.expect("touch made.txt")
	p.press("n\r")
	assert.Equal(t, 5, p.code())
	assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
}

// A question whose time is over takes nothing of what is typed after it.
func TestAQuestionInVain(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"calls": [{"name": "bash", "arguments": {"command": "touch made.txt"}}]}
{"text": "All right."}`)
	p := atTerminal(t, s, "chat", "--agent", "ask.yaml", "--time", "500ms")
	p.prompted()
	p.press("go\r")
	p.expect("time_limit")
	p.prompted()
	p.press("again\r")
	p.expect("All right.")
	p.prompted()
	p.press("\x04")
	assert.Equal(t, 0, p.code())
	assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
}
