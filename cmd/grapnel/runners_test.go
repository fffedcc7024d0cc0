//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// The runners in other languages do what docs/runner-protocol.md says, at a real coordinator.
func TestRunnersInOtherLanguages(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) []string{
		"python": func(t *testing.T) []string {
			t.Helper()
			return []string{parts.Command(t, "python3", "run apt-get install python3"), "../../examples/runners/python/runner.py"}
		},
		"node": func(t *testing.T) []string {
			t.Helper()
			return []string{parts.Command(t, "node", "run apt-get install nodejs, or install Node.js 20 from nodejs.org"), "../../examples/runners/node/runner.mjs"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			argv := start(t)
			path, err := filepath.Abs(argv[1])
			require.NoError(t, err)
			f := newForeign(t, argv[0], path)
			f.completes()
			f.stops()
			f.drains()
			f.survivesACoordinator()
			f.dies()
			f.kill(f.daemons[0])
		})
	}
}

// A client needs nothing but the OpenAPI file: the coordinator takes and sends what that describes.
func TestAClientFromTheOpenAPIFile(t *testing.T) {
	t.Parallel()
	python := parts.Command(t, "python3", "run apt-get install python3")
	f := newForeign(t)
	defer f.kill(f.daemons[0])
	out, err := exec.CommandContext(t.Context(), python, "testdata/openapi_client.py", "http://"+f.address, f.token).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "done\n", string(out))
}

// foreign is a coordinator with runners in another language.
type foreign struct {
	*fleet

	argv   []string
	runner string // the token of the runners
	number int    // of runners
}

func newForeign(t *testing.T, argv ...string) *foreign {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, "runs.db")
	store, err := sqlite.Open(t.Context(), at, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	f := &foreign{fleet: &fleet{t: t, dir: dir, store: store, address: freeAddress(), token: "secret"}, argv: argv}
	f.api, err = client.New(client.Options{URL: "http://" + f.address, Token: f.token})
	require.NoError(t, err)
	f.daemons = []*daemon{{args: []string{"serve", "--store", at, "--listen", f.address, "--no-runner"}, env: []string{"GRAPNEL_TOKEN=" + f.token}}}
	f.start(f.daemons[0])
	f.persist(func() (err error) {
		f.runner, err = f.api.NewToken(t.Context(), "runners", wire.RunnerRole, 0)
		return err
	})
	env := `"env": {"PATH": "` + os.Getenv("PATH") + `", "GREETING": "hello"}`
	for _, text := range []string{
		`{"name": "word-count", "type": "procedural"}`,
		`{"name": "show", "type": "procedural", "command": {"argv": ["sh", "-c", "cat; env"], ` + env + `}}`,
		`{"name": "fail", "type": "procedural", "command": {"argv": ["sh", "-c", "echo sorry >&2; exit 3"], ` + env + `}}`,
		`{"name": "slow", "type": "procedural", "command": {"argv": ["sh", "-c", "echo $$ > slow.pid; sleep 600"], "dir": "` + dir + `", ` + env + `}}`,
		`{"name": "wait", "type": "procedural", "output_schema": {"type": "object", "required": ["n"]},
			"command": {"argv": ["sh", "-c", "touch begun-$GRAPNEL_RUN; until test -e on-$GRAPNEL_RUN; do sleep 0.01; done; cat"], "dir": "` + dir + `", ` + env + `}}`,
	} {
		_, err := f.api.CreateBlueprint(t.Context(), json.RawMessage(text))
		require.NoError(t, err)
	}
	return f
}

// work starts a runner with a lease of so many seconds.
func (f *foreign) work(lease int) *program {
	f.t.Helper()
	f.number++
	p := command(f.t, nil)
	p.cmd.Path = f.argv[0]
	p.cmd.Args = append(append([]string{}, f.argv...), "--server", "http://"+f.address, "--name", fmt.Sprint("r", f.number), "--lease", strconv.Itoa(lease), "--label", "zone=eu")
	p.cmd.Env = append(p.cmd.Env, "GRAPNEL_TOKEN="+f.runner)
	p.start()
	p.expect("working")
	return p
}

// drain ends a runner with SIGTERM.
func (f *foreign) drain(p *program) {
	f.t.Helper()
	p.signal(syscall.SIGTERM)
	assert.Equal(f.t, 0, p.code(), p.written())
}

func (f *foreign) submitRun(name, params string) agent.RunID {
	f.t.Helper()
	s, err := f.api.Submit(f.t.Context(), wire.RunRequest{AgentName: name, Parameters: json.RawMessage(params)})
	require.NoError(f.t, err)
	return s.RunID
}

// ended waits until a run has ended.
func (f *foreign) ended(id agent.RunID, p *program) wire.RunDetail {
	f.t.Helper()
	f.await(&job{id: id})
	d, err := f.api.Run(f.t.Context(), id)
	require.NoError(f.t, err, p.written())
	return d
}

// completes lets a runner execute runs to their ends.
func (f *foreign) completes() {
	p := f.work(30)
	id := f.submitRun("word-count", `{"text": "one two three"}`)
	assert.JSONEq(f.t, `{"words": 3}`, string(f.ended(id, p).ResultData), p.written())
	events, err := f.api.Events(f.t.Context(), id, 0, 10)
	require.NoError(f.t, err)
	assert.Equal(f.t, []string{"run_start", "counted", "run_completed"}, lo.Map(events, func(e wire.EventView, _ int) string { return e.Type }))
	assert.JSONEq(f.t, `{"words": 3}`, string(events[1].Data))

	id = f.submitRun("show", `{"a": 1}`)
	shown := lo.FromPtr(f.ended(id, p).ResultText)
	assert.Contains(f.t, shown, "GREETING=hello")
	assert.Contains(f.t, shown, "GRAPNEL_IDEMPOTENCY_KEY="+string(id)+"/command")
	for _, secret := range []string{"HOME=", "GRAPNEL_TOKEN", f.runner} {
		assert.NotContains(f.t, shown, secret, "a program gets its environment and no other")
	}
	failed := f.ended(f.submitRun("fail", `{}`), p)
	assert.Equal(f.t, wire.Failed, failed.Status)
	assert.Contains(f.t, lo.FromPtr(failed.Error), "3: sorry")
	f.drain(p)
}

// stops lets a runner stop a run: its program ends.
func (f *foreign) stops() {
	p := f.work(30)
	id := f.submitRun("slow", `{}`)
	q := &program{t: f.t, cmd: command(f.t, nil).cmd}
	q.cmd.Dir = f.dir
	q.waitUntil("slow.pid", func(text string) bool { return strings.HasSuffix(text, "\n") })
	pid, err := strconv.Atoi(strings.TrimSpace(q.read("slow.pid")))
	require.NoError(f.t, err)
	require.NoError(f.t, f.api.Stop(f.t.Context(), id, "enough"))
	d := f.ended(id, p)
	assert.Equal(f.t, wire.Stopped, d.Status)
	assert.Equal(f.t, "enough", lo.FromPtr(d.Error))
	assert.Error(f.t, syscall.Kill(pid, 0), "the program has ended")
	f.drain(p)
}

// begin submits a run, and waits until its program has begun. The returned func lets the program end.
func (f *foreign) begin() (id agent.RunID, end func()) {
	f.t.Helper()
	id = f.submitRun("wait", `{"n": 1}`)
	q := &program{t: f.t, cmd: command(f.t, nil).cmd}
	q.cmd.Dir = f.dir
	q.waitFor("begun-" + string(id))
	return id, func() { q.write("on-"+string(id), "") }
}

// drains ends a runner in the middle of a run, which it finishes.
func (f *foreign) drains() {
	p := f.work(30)
	id, end := f.begin()
	p.signal(syscall.SIGTERM)
	end()
	assert.JSONEq(f.t, `{"n": 1}`, string(f.ended(id, p).ResultData))
	assert.Equal(f.t, 0, p.code(), p.written())
}

// survivesACoordinator kills the coordinator in the middle of a run: the runner finishes the run when there is one again.
func (f *foreign) survivesACoordinator() {
	p := f.work(30)
	id, end := f.begin()
	f.kill(f.daemons[0])
	end()
	f.start(f.daemons[0])
	assert.Equal(f.t, wire.Completed, f.ended(id, p).Status, p.written())
	f.drain(p)
}

// dies kills a runner in the middle of a run. Another one gets the run, and does not run the program again.
func (f *foreign) dies() {
	p := f.work(2)
	id, end := f.begin()
	defer end()
	p.signal(syscall.SIGKILL)
	p.code()
	next := f.work(30)
	d := f.ended(id, next)
	assert.Equal(f.t, wire.Failed, d.Status)
	assert.Contains(f.t, lo.FromPtr(d.Error), "may not run again")
	f.drain(next)
}
