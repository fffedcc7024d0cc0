//go:build unix

package main

import (
	"database/sql"
	"encoding/json"
	"flag"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/parts"
)

var update = flag.Bool("update", false, "write the golden files again")

// next returns another grapnel in the folder of this one, with the same environment.
func (p *program) next(args ...string) *program {
	p.t.Helper()
	q := command(p.t, nil, args...)
	q.cmd.Dir, q.cmd.Env = p.cmd.Dir, p.cmd.Env
	return q
}

// run runs it to its end without a terminal, and returns its exit code.
func (p *program) run() int {
	p.t.Helper()
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(p.t, p.cmd.Start())
	return p.code()
}

// card returns the short ID of the only card that a run, or any run with the prefix, asks for.
func (p *program) card(run string, flags ...string) string {
	p.t.Helper()
	var all []struct{ Run, Wait string }
	require.NoError(p.t, json.Unmarshal([]byte(p.outputOf(append([]string{"approvals", "list", "--json"}, flags...)...)), &all))
	all = lo.Filter(all, func(w struct{ Run, Wait string }, _ int) bool { return strings.HasPrefix(w.Run, run) })
	require.Len(p.t, all, 1)
	return all[0].Wait[:12]
}

func (p *program) write(name, text string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.cmd.Dir, name), []byte(text), 0o600))
}

func (p *program) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.cmd.Dir, name))
	require.NoError(p.t, err)
	return string(text)
}

func (p *program) waitFor(name string) {
	p.t.Helper()
	p.waitUntil(name, func(string) bool { return true })
}

// waitUntil waits for a file whose text is complete: a shell creates the file of `echo text > file` before it writes the text.
func (p *program) waitUntil(name string, complete func(text string) bool) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		text, err := os.ReadFile(filepath.Join(p.cmd.Dir, name))
		return err == nil && complete(string(text))
	}, patience, 5*time.Millisecond, "waiting for %s", name)
}

// slow is a model whose agent waits for a file in its first step.
const slow = `{"calls": [{"name": "bash", "arguments": {"command": "touch begun; until test -e on; do sleep 0.01; done; echo once >> made.txt"}}]}
{"calls": [{"name": "bash", "arguments": {"command": "echo twice >> made.txt"}}]}
{"text": "All done."}`

// The first signal suspends a run that is kept at the end of its step, and another
// process goes on with it: what was done is not done again.
func TestASignalSuspends(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "SIGHUP": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := piped(t, modelOf(t, slow), "run", "--durable", "--tool", "shell", "go")
			p.waitFor("begun")
			p.signal(signal)
			p.expect("Suspending: ")
			p.write("on", "")
			assert.Equal(t, 7, p.code(), p.written())
			assert.Contains(t, p.written(), "suspended: after 1 step, to be resumed")
			assert.Contains(t, p.written(), "grapnel runs resume run_")
			assert.Equal(t, "once\n", p.read("made.txt"))

			q := p.next("runs", "resume", "--all")
			require.Equal(t, 0, q.run(), q.written())
			assert.Contains(t, q.written(), "resumed: after 1 step")
			assert.Contains(t, q.written(), "All done.")
			assert.Equal(t, "once\ntwice\n", p.read("made.txt"))
			q = p.next("runs", "resume", "--all")
			require.Equal(t, 0, q.run())
			assert.Contains(t, q.written(), "There is nothing to resume.")
		})
	}
}

// The second signal cancels the run, and that is its end.
func TestASecondSignalCancels(t *testing.T) {
	t.Parallel()
	p := piped(t, modelOf(t, slow), "run", "--durable", "--tool", "shell", "go")
	p.waitFor("begun")
	p.signal(syscall.SIGTERM)
	p.expect("Suspending: ")
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 143, p.code(), p.written())
	assert.Contains(t, p.written(), ", ended by SIGTERM")
	q := p.next("runs", "list")
	require.Equal(t, 0, q.run())
	assert.Regexp(t, `run_\w+ +cancelled `, q.written())
}

// A process that is killed in the middle of a command leaves a run of which no process
// knows how far it came: a person is asked before the command runs again.
func TestKilledInACommand(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"calls": [{"name": "bash", "arguments": {"command": "test -e begun || { echo $$ > begun; sleep 60; }; echo once >> made.txt"}}]}
{"text": "All done."}`)
	p := piped(t, s, "run", "--durable", "--tool", "shell", "go")
	killAtWork(t, p)

	q := p.next("runs", "show", "run_")
	require.Equal(t, 0, q.run(), q.written())
	assert.Contains(t, q.written(), "The call call_1 began before the run was interrupted, and its outcome is unknown.")
	q = p.next("runs", "resume", "run_")
	require.Equal(t, 6, q.run(), q.written())
	assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
	q = p.next("runs", "approve", "run_", p.card("run_"))
	require.Equal(t, 0, q.run(), q.written())
	assert.Contains(t, q.written(), "All done.")
	assert.Equal(t, "once\n", p.read("made.txt"))
}

// A rejected call does not run. The run goes on without it, unless it is to end.
func TestRejectACall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flags []string
		code  int
		want  string
	}{
		"the run goes on": {[]string{"--reason", "not today"}, 0, "All right."},
		"the run ends":    {[]string{"--reason", "not today", "--end"}, 5, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := parkedWith(t, "")
			q := p.next(append([]string{"runs", "reject", "run_", p.card("run_")}, tc.flags...)...)
			assert.Equal(t, tc.code, q.run(), q.written())
			assert.Contains(t, q.written(), tc.want)
			assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
			q = p.next("runs", "export", "run_", "state.json")
			require.Equal(t, 0, q.run(), q.written())
			assert.Contains(t, p.read("state.json"), "not today")
		})
	}
}

// killAtWork kills a process as soon as what it has started has left its id in the file
// begun, and ends that, too, if it was left behind.
func killAtWork(t *testing.T, p *program) {
	t.Helper()
	p.waitUntil("begun", func(text string) bool { return strings.HasSuffix(text, "\n") })
	p.signal(syscall.SIGKILL)
	p.code()
	process, err := strconv.Atoi(strings.TrimSpace(p.read("begun")))
	require.NoError(t, err)
	_ = syscall.Kill(-process, syscall.SIGKILL)
	_ = syscall.Kill(process, syscall.SIGKILL)
}

// A tool that says that it may be repeated is, with the same idempotency key.
func TestKilledInAToolThatMayRepeat(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"calls": [{"name": "mcp__s__put", "arguments": {}}]}
{"text": "All done."}`)
	p := command(t, s, "run", "--durable", "--agent", "mcp.yaml", "go")
	server := filepath.Join(p.cmd.Dir, "server")
	p.write("server", `#!/bin/sh
read line
echo '{"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}'
read line; read line
echo '{"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "put", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": true}}]}}'
read line
echo "$line" >> asked.txt
test -e begun || { echo $$ > begun; sleep 60; }
echo once >> made.txt
echo '{"jsonrpc": "2.0", "id": 3, "result": {"content": [{"type": "text", "text": "put"}]}}'
cat > rest
`)
	require.NoError(t, os.Chmod(server, 0o700))
	p.write("mcp.yaml", "mcp: {s: {command: ["+strconv.Quote(server)+"]}}\n")
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(t, p.cmd.Start())
	killAtWork(t, p)

	q := p.next("runs", "resume", "run_")
	require.Equal(t, 0, q.run(), q.written())
	assert.Contains(t, q.written(), "All done.")
	assert.Equal(t, "once\n", p.read("made.txt"))
	keys := regexp.MustCompile(`"grapnel/idempotency-key":"([^"]+)"`).FindAllStringSubmatch(p.read("asked.txt"), -1)
	require.Len(t, keys, 2)
	assert.Equal(t, keys[0][1], keys[1][1])
}

// The switch that denies every tool holds for runs that are under way.
func TestDenyToolsWhileARunIsUnderWay(t *testing.T) {
	t.Parallel()
	p := piped(t, modelOf(t, slow), "run", "--durable", "--tool", "shell", "go")
	p.waitFor("begun")
	q := p.next("runs", "deny-tools", "on", "--reason", "fire drill")
	require.Equal(t, 0, q.run(), q.written())
	p.write("on", "")
	assert.Equal(t, 0, p.code())
	assert.Contains(t, p.written(), "denied by deny-tools")
	assert.Equal(t, "once\n", p.read("made.txt"))
}

// A run that another process holds is cancelled there, and only there.
func TestCancelWhatAnotherProcessHolds(t *testing.T) {
	t.Parallel()
	p := piped(t, modelOf(t, slow), "run", "--durable", "--tool", "shell", "go")
	p.waitFor("begun")
	q := p.next("runs", "resume", "run_")
	assert.Equal(t, 1, q.run())
	assert.Contains(t, q.written(), " is held by ")
	q = p.next("runs", "cancel", "run_", "--reason", "enough", "--by", "ann")
	require.Equal(t, 0, q.run(), q.written())
	assert.Regexp(t, `within a second\.|is cancelled\.`, q.written())
	assert.Equal(t, 130, p.code())
	assert.Contains(t, p.written(), "enough, by ann")
	assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
}

const asking = `{"calls": [{"name": "bash", "arguments": {"command": "touch made.txt"}}]}
{"text": "All right."}`

// At a terminal the person is asked in the process; a signal parks the question, and
// a user who resumes at a terminal is asked there.
func TestKeptAtATerminal(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(p *program){
		"SIGTERM": func(p *program) { p.signal(syscall.SIGTERM) },
		"Ctrl-C":  func(p *program) { p.press("\x03") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := atTerminal(t, modelOf(t, asking), "run", "--durable", "--agent", "ask.yaml", "go")
			p.expect("or say why not: ")
			leave(p)
			assert.Equal(t, 6, p.code(), p.written())
			assert.Contains(t, p.written(), "it waits for approval of bash (call_1)")

			q := p.next("runs", "resume", "run_")
			q.atTerminal()
			q.expect("or say why not: ")
			q.press("y\r")
			q.expect("All right.")
			assert.Equal(t, 0, q.code())
			assert.FileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
		})
	}
	t.Run("yes", func(t *testing.T) {
		t.Parallel()
		p := atTerminal(t, modelOf(t, asking), "run", "--durable", "--agent", "ask.yaml", "go")
		p.expect("or say why not: ")
		p.press("y\r")
		assert.Equal(t, 0, p.code(), p.written())
	})
	t.Run("no-wait", func(t *testing.T) {
		t.Parallel()
		p := atTerminal(t, modelOf(t, asking), "run", "--durable", "--no-wait", "--agent", "ask.yaml", "go")
		assert.Equal(t, 6, p.code(), p.written())
		assert.NotContains(t, p.written(), "or say why not")
	})
}

// Programs read lists and runs as JSON, in this form.
func TestJSON(t *testing.T) {
	t.Parallel()
	p := command(t, modelOf(t, `{"text": "On it.", "calls": [{"name": "bash", "arguments": {"command": "true"}}]}
`+asking), "run", "--durable", "--agent", "ask.yaml", "go")
	p.write("ask.yaml", "tools: [shell]\nhooks:\n  - ask: {tools: [bash], argument: command, matching: touch, reason: it makes files}\n")
	require.Equal(t, 6, p.run(), p.written())
	for path, mode := range map[string]os.FileMode{"": os.ModeDir | 0o700, "runs.db": 0o600} {
		info, err := os.Stat(filepath.Join(p.cmd.Dir, ".local", "state", "grapnel", path))
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode())
	}
	account, err := user.Current()
	require.NoError(t, err)
	for name, args := range map[string][]string{"list": {"list", "--json"}, "show": {"show", "run_", "--json"}} {
		q := p.next(append([]string{"runs"}, args...)...)
		require.Equal(t, 0, q.run(), q.written())
		require.True(t, json.Valid([]byte(q.written())), q.written())
		got := strings.ReplaceAll(q.written(), p.cmd.Dir, "DIR")
		for form, word := range map[string]string{
			`run_[A-Z0-9]{26}`: "RUN", `ses_[A-Z0-9]{26}`: "SESSION", `\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`: "TIME",
			`"by": "` + regexp.QuoteMeta(account.Username) + `"`: `"by": "USER"`,
			`"events": \d+`:      `"events": 0`, // a slow disk adds one
			`"duration_ms": \d+`: `"duration_ms": 0`,
			`"[0-9a-f]{32}"`:     `"CARD"`,
		} {
			got = regexp.MustCompile(form).ReplaceAllString(got, word)
		}
		golden := filepath.Join("testdata", name+".json")
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), got)
	}
}

// A run that is kept in PostgreSQL parks, is answered and goes on as one in a file.
func TestKeptInPostgres(t *testing.T) {
	t.Parallel()
	url := parts.NewPostgres(t).Database(t)
	p := command(t, modelOf(t, asking), "run", "--durable", "--agent", "ask.yaml", "go")
	p.cmd.Env = append(p.cmd.Env, "GRAPNEL_STORE="+url)
	p.write("ask.yaml", "tools: [shell]\nhooks:\n  - ask: {tools: [bash], reason: it makes files}\n")
	require.Equal(t, 6, p.run(), p.written())
	assert.Contains(t, p.written(), "postgres")
	q := p.next("runs", "approve", "run_", p.card("run_"))
	require.Equal(t, 0, q.run(), q.written())
	assert.Contains(t, q.written(), "All right.")
	assert.FileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
}

// A store with the schema of another version is refused by every command, which says how to keep its runs.
func TestKeptByAnotherVersion(t *testing.T) {
	t.Parallel()
	p := piped(t, modelOf(t, `{"text": "All done."}`), "run", "--durable", "go")
	require.Equal(t, 0, p.code(), p.written())
	db, err := sql.Open("sqlite", filepath.Join(p.cmd.Dir, ".local", "state", "grapnel", "runs.db"))
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "PRAGMA user_version = 1")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	for _, args := range [][]string{{"runs", "list"}, {"runs", "resume", "--all"}, {"run", "--durable", "go"}} {
		q := p.next(args...)
		assert.Equal(t, 2, q.run())
		assert.Contains(t, strings.Join(strings.Fields(q.written()), " "), `export its runs with the grapnel that wrote it ("grapnel runs export ID")`)
	}
}

// What was exported with a seal is read with the same key, and only as it was written.
func TestASealedExport(t *testing.T) {
	t.Parallel()
	p := piped(t, modelOf(t, `{"text": "All done."}`), "run", "--durable", "go")
	require.Equal(t, 0, p.code(), p.written())
	key := strings.Repeat("k\n", agent.SealKeyLength/2)
	p.write("seal.key", key)
	q := p.next("runs", "export", "run_", "sealed.json", "--seal-key", "seal.key")
	require.Equal(t, 0, q.run(), q.written())
	seal, err := agent.NewSeal([]byte(key))
	require.NoError(t, err)
	s, err := seal.Unmarshal([]byte(p.read("sealed.json")))
	require.NoError(t, err)
	assert.Equal(t, "All done.", s.Answer())
	_, err = seal.Unmarshal([]byte(strings.Replace(p.read("sealed.json"), "All done.", "All gone.", 1)))
	require.ErrorIs(t, err, agent.ErrSealBroken)
}
