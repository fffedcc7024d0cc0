//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// start starts it without a terminal.
func (p *program) start() *program {
	p.t.Helper()
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(p.t, p.cmd.Start())
	return p
}

// outputOf runs another grapnel in the folder of this one, and returns what it writes.
func (p *program) outputOf(args ...string) string {
	p.t.Helper()
	q := p.next(args...)
	require.Equal(p.t, 0, q.run(), q.written())
	return strings.TrimSpace(q.written())
}

// waitForRun waits until the summary of a run, as JSON, matches.
func (p *program) waitForRun(id, pattern string) string {
	p.t.Helper()
	var text string
	require.Eventually(p.t, func() bool {
		text = p.outputOf("runs", "show", id, "--json")
		return regexp.MustCompile(pattern).MatchString(text)
	}, 2*patience, 20*time.Millisecond, "waiting for %s in the run", pattern)
	return text
}

// atWork returns a grapnel in whose folder there are an agent and commands, with a submitted run of one of them.
func atWork(t *testing.T, turns string, submit ...string) (p *program, id string) {
	t.Helper()
	p = command(t, modelOf(t, turns), "runs", "work", "clerk.yaml", "commands.yaml")
	p.write("clerk.yaml", "tools: [shell]\n")
	p.write("commands.yaml", `
commands:
  slow: {argv: [sh, -c, 'test -e begun || { echo $$ > begun; sleep 600; }; echo once >> made.txt'], env: {PATH: `+"'"+os.Getenv("PATH")+"'"+`}, repeat: true}
  once: {argv: [sh, -c, 'echo $$ > begun; sleep 600'], env: {PATH: `+"'"+os.Getenv("PATH")+"'"+`}}
  wait: {argv: [sh, -c, 'touch begun; until test -e on; do sleep 0.01; done; echo done'], env: {PATH: `+"'"+os.Getenv("PATH")+"'"+`}}
`)
	return p, p.outputOf(append([]string{"runs", "submit"}, submit...)...)
}

// A worker that is killed in the middle of a command leaves the run to the next: a command that may repeat runs again,
// and another one fails, because it is unknown what it has done.
func TestAWorkerIsKilledInACommand(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]string{"slow": "completed", "once": "failed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, id := atWork(t, `{"text": "-"}`, "command", name)
			p.cmd.Args = append(p.cmd.Args, "--lease", "5s")
			killAtWork(t, p.start())
			q := p.next("runs", "work", "commands.yaml").start()
			shown := p.waitForRun(id, `"status": "`+status+`"`)
			assert.Contains(t, shown, `"attempts": 2`)
			if name == "slow" {
				assert.Equal(t, "once\n", p.read("made.txt"))
			} else {
				assert.Contains(t, shown, "it is unknown what the command did")
			}
			q.signal(syscall.SIGTERM)
			assert.Equal(t, 0, q.code(), q.written())
		})
	}
}

// A worker that is killed while an agent runs leaves the run to the next, which does nothing again that is in the journal.
func TestAWorkerIsKilledInAnAgent(t *testing.T) {
	t.Parallel()
	p, id := atWork(t, `{"calls": [{"name": "bash", "arguments": {"command": "echo once >> made.txt"}}]}
{"hang": true}
{"text": "All done."}`, "agent", "clerk", "go")
	p.cmd.Args = append(p.cmd.Args, "--lease", "5s")
	p.start()
	p.waitForRun(id, `"steps": 1`)
	p.waitUntil("made.txt", func(string) bool { return true })
	p.signal(syscall.SIGKILL)
	p.code()
	q := p.next("runs", "work", "clerk.yaml").start()
	shown := p.waitForRun(id, `"status": "(completed|failed)"`)
	assert.Contains(t, shown, `"answer": "All done."`)
	assert.Equal(t, "once\n", p.read("made.txt"))
	q.signal(syscall.SIGTERM)
	assert.Equal(t, 0, q.code(), q.written())
}

// SIGTERM suspends the run at the end of its step, and another worker resumes it.
func TestAWorkerSuspends(t *testing.T) {
	t.Parallel()
	p, id := atWork(t, slow, "agent", "clerk", "go")
	p.start()
	p.waitFor("begun")
	p.signal(syscall.SIGTERM)
	p.expect("Suspending: ")
	p.write("on", "")
	assert.Equal(t, 0, p.code(), p.written())
	assert.Contains(t, p.written(), "agent clerk: ready after ")
	assert.Contains(t, p.outputOf("runs", "show", id, "--json"), `"status": "ready"`)
	q := p.next("runs", "work", "clerk.yaml", "--once")
	require.Equal(t, 0, q.run(), q.written())
	assert.Contains(t, p.outputOf("runs", "show", id, "--json"), `"answer": "All done."`)
	assert.Equal(t, "once\ntwice\n", p.read("made.txt"))
	events := p.outputOf("runs", "watch", id, "--json")
	assert.Contains(t, events, `"type":"run.parked"`)
	assert.Contains(t, events, `"type":"run.resumed"`)
}

// With --once, too, a signal suspends what runs.
func TestASuspendedOnce(t *testing.T) {
	t.Parallel()
	p, id := atWork(t, slow, "agent", "clerk", "go")
	p.cmd.Args = append(p.cmd.Args, "--once")
	p.start()
	p.waitFor("begun")
	p.signal(syscall.SIGTERM)
	p.expect("Suspending: ")
	p.write("on", "")
	assert.Equal(t, 0, p.code(), p.written())
	assert.Contains(t, p.outputOf("runs", "show", id, "--json"), `"status": "ready"`)
}

// The second signal cuts off what runs.
func TestASecondSignalCutsOff(t *testing.T) {
	t.Parallel()
	p, id := atWork(t, `{"text": "-"}`, "command", "slow")
	p.cmd.Args = append(p.cmd.Args, "--grace", "1h")
	p.start()
	p.waitFor("begun")
	p.signal(syscall.SIGTERM)
	p.expect("Suspending: ")
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 143, p.code(), p.written())
	assert.Contains(t, p.outputOf("runs", "show", id, "--json"), `"status": "ready"`)
	assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
}

// SIGUSR1 drains: the run ends, and no other begins.
func TestAWorkerDrains(t *testing.T) {
	t.Parallel()
	p, id := atWork(t, `{"text": "-"}`, "command", "wait")
	p.start()
	p.waitFor("begun")
	p.signal(syscall.SIGUSR1)
	p.expect("Draining: ")
	later := p.outputOf("runs", "submit", "command", "wait")
	p.write("on", "")
	assert.Equal(t, 0, p.code(), p.written())
	assert.Contains(t, p.outputOf("runs", "show", id), "done")
	assert.Contains(t, p.outputOf("runs", "show", later, "--json"), `"status": "ready"`)
}

// Of two runs that a worker executes, one is cancelled; the other is paused after its step, told something, and resumed.
func TestSignalsToARunOfAWorker(t *testing.T) {
	t.Parallel()
	p, id := atWork(t, slow+"\n", "agent", "clerk", "go")
	p.start()
	p.waitFor("begun")
	other := p.outputOf("runs", "submit", "command", "once", "--deadline", "24h")
	p.waitForRun(other, `"status": "running"`)
	p.outputOf("runs", "pause", id)
	p.waitForRun(id, `"paused": true`)
	p.outputOf("runs", "cancel", other, "--reason", "enough", "--no-resume")
	assert.Contains(t, p.waitForRun(other, `"status": "cancelled"`), "enough") // the worker has received the pause with this signal
	p.write("on", "")
	p.waitForRun(id, `"status": "waiting"`)
	assert.Equal(t, "once\n", p.read("made.txt"))
	p.outputOf("runs", "tell", id, "Use", "the", "staging", "server.")
	assert.Contains(t, p.outputOf("runs", "resume", id), "is no longer paused")
	p.waitForRun(id, `"status": "completed"`)
	assert.Equal(t, "once\ntwice\n", p.read("made.txt"))
	assert.Contains(t, p.outputOf("runs", "export", id), "Use the staging server.")

	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.code(), p.written())
}

// A run whose deadline passes is cancelled while it runs.
func TestADeadlineCancels(t *testing.T) {
	t.Parallel()
	p, id := atWork(t, `{"text": "-"}`, "command", "once", "--deadline", "2s")
	p.start()
	p.waitForRun(id, `"status": "cancelled"`)
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.code(), p.written())
}

// A run of an agent waits for approval; the answer is recorded, and the worker resumes the run.
func TestAWorkerResumesAnAnsweredRun(t *testing.T) {
	t.Parallel()
	p, _ := atWork(t, asking, "command", "wait")
	p.write("ask.yaml", "tools: [shell]\nhooks:\n  - ask: {tools: [bash], reason: it makes files}\n")
	id := p.outputOf("runs", "submit", "agent", "ask", "go")
	p.cmd.Args = []string{"grapnel", "runs", "work", "ask.yaml"}
	p.start()
	p.waitForRun(id, `"status": "waiting"`)
	assert.Contains(t, p.outputOf("runs", "approve", id, p.card(id)), "approved")
	p.waitForRun(id, `"status": "completed"`)
	assert.FileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.code(), p.written())
}

// Watching from a number continues there, and ends when the run has ended; nothing is lost or repeated.
func TestWatch(t *testing.T) {
	t.Parallel()
	p, id := atWork(t, slow, "agent", "clerk", "go")
	w := p.next("runs", "watch", id, "--json").start()
	p.start()
	p.waitFor("begun")
	w.expect("tool_call.started")
	p.write("on", "")
	assert.Equal(t, 0, w.code(), w.written())
	all := numbered(t, w.written())
	assert.Equal(t, "run.started", all[0].Type)
	assert.Equal(t, "run.completed", all[len(all)-1].Type)
	rest := numbered(t, p.outputOf("runs", "watch", id, "--json", "--after", "3"))
	assert.Equal(t, all[3:], rest)
	assert.Contains(t, p.outputOf("runs", "watch", id), "run.completed")
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.code(), p.written())
}

type event struct {
	Seq  int64  `json:"seq"`
	Type string `json:"type"`
	Run  string `json:"run"`
}

// numbered returns the events of lines, which have the numbers without a gap.
func numbered(t *testing.T, lines string) []event {
	t.Helper()
	var all []event
	for line := range strings.Lines(lines) {
		var e event
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		if len(all) > 0 {
			require.Equal(t, all[len(all)-1].Seq+1, e.Seq)
		}
		all = append(all, e)
	}
	require.NotEmpty(t, all)
	return all
}

// The health says what the worker does.
func TestWorkerHealth(t *testing.T) {
	t.Parallel()
	p, id := atWork(t, `{"text": "-"}`, "command", "wait")
	p.cmd.Args = append(p.cmd.Args, "--health", "127.0.0.1:0")
	p.start()
	p.expect("/healthz\n")
	p.waitFor("begun")
	url := regexp.MustCompile(`http://\S+/healthz`).FindString(p.written())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	assert.Contains(t, string(body), `"state":"running"`)
	assert.Contains(t, string(body), id)
	p.write("on", "")
	p.waitForRun(id, `"status": "completed"`)
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.code(), p.written())
}
