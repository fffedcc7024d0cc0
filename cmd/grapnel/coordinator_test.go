//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/internal/answertest"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// Variables of the crash test: "make crash" sets the first.
const (
	crashRuns = "GRAPNEL_CRASH_RUNS"
	crashSeed = "GRAPNEL_CRASH_SEED"
)

// TestCoordinatorKills kills and pauses two coordinators and two runners at random moments while runs with hooks of each type go through
// them: no run is lost, none ends twice, and every decision is recorded once.
func TestCoordinatorKills(t *testing.T) {
	t.Parallel()
	sqliteKills, postgresKills := 16, 4
	switch {
	case os.Getenv(crashRuns) != "": // "make crash" says 200
		n, err := strconv.Atoi(os.Getenv(crashRuns))
		require.NoError(t, err)
		sqliteKills, postgresKills = n, n/2
	case testing.Short():
		sqliteKills, postgresKills = 6, 4
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		path := filepath.Join(dir, "runs.db")
		store, err := sqlite.Open(t.Context(), path, sqlite.Options{Sync: sqlite.SyncNormal})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		newFleet(t, dir, path, store).disturb(sqliteKills)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at := parts.NewPostgres(t, "fsync=off").Database(t)
		store, err := postgres.Open(t.Context(), at, postgres.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		newFleet(t, t.TempDir(), at, store).disturb(postgresKills)
	})
}

// fleet are two coordinators on one store and two runners, each a process, and what they talk to.
type fleet struct {
	t        *testing.T
	random   *rand.Rand
	dir      string
	store    durable.Store // the one of the coordinator
	address  string
	token    string
	api      *client.Client
	model    *httptest.Server
	receiver *hookReceiver

	daemons []*daemon // the coordinators and the runners
}

// daemon is a process that is started again when it was killed.
type daemon struct {
	args  []string
	env   []string
	door  *door // where the coordinator is reached; nil for others
	now   *program
	ended chan struct{} // closed when the process has ended
}

func newFleet(t *testing.T, dir, at string, store durable.Store) *fleet {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv(crashSeed), 10, 64); err == nil {
		seed = given
	}
	t.Logf("%s=%d chooses the same moments", crashSeed, seed)
	f := &fleet{t: t, random: rand.New(rand.NewPCG(seed, 1)), dir: dir, store: store, token: "secret", receiver: &hookReceiver{seen: map[string][]string{}}}
	door := openDoor(t)
	f.address = door.Addr().String()
	var err error
	f.api, err = client.New(client.Options{URL: "http://" + f.address, Token: f.token, HTTP: &http.Client{Timeout: 5 * time.Second}})
	require.NoError(t, err)
	f.model = httptest.NewServer(http.HandlerFunc(serveJobs))
	t.Cleanup(f.model.Close)
	hooks := httptest.NewServer(f.receiver)
	t.Cleanup(hooks.Close)

	model := []string{"OPENAI_API_KEY=sk-1", "OPENAI_BASE_URL=" + f.model.URL + "/v1"}
	serve := []string{"serve", "--store", at, "--pipelines", filepath.Join(dir, "pipelines"), "--lease", "2s"}
	f.daemons = []*daemon{
		{args: append(slices.Clone(serve), "--listen", "127.0.0.1:0", "--no-runner"), door: door, env: []string{"GRAPNEL_TOKEN=" + f.token}},
		// Another one on the same store and folder executes pipelines, and some of the other runs.
		{args: append(slices.Clone(serve), "--listen", "127.0.0.1:0", "--capacity", "2", "--model", "openai/test-model"), env: model},
	}
	for _, d := range f.daemons {
		f.start(d)
	}
	var runner string
	f.persist(func() (err error) {
		runner, err = f.api.NewToken(t.Context(), "runners", wire.RunnerRole, 0)
		return err
	})
	for i := range 2 {
		d := &daemon{
			args: []string{"runner", "--server", "http://" + f.address, "--name", fmt.Sprint("r", i+1), "--lease", "2s", "--model", "openai/test-model"},
			env:  append(slices.Clone(model), "GRAPNEL_TOKEN="+runner),
		}
		f.daemons = append(f.daemons, d)
		f.start(d)
	}
	f.createBlueprints(hooks.URL)
	return f
}

// door is an address that stays the same when the coordinator behind it starts again with another port, so that no other program takes it.
type door struct {
	net.Listener

	to atomic.Pointer[program] // the process of the coordinator
}

// openDoor opens a door, which is closed when the test ends.
func openDoor(t *testing.T) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it waits for nothing
	require.NoError(t, err)
	d := &door{Listener: l}
	var passing sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		passing.Wait()
	})
	passing.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { d.pass(in) })
		}
	})
	return d
}

var listensOn = regexp.MustCompile(`listens on http://(\S+),`)

// pass connects a client with the coordinator, until one of them ends the connection.
func (d *door) pass(in net.Conn) {
	defer in.Close()
	p := d.to.Load()
	if p == nil {
		return
	}
	at := listensOn.FindStringSubmatch(p.written())
	if at == nil {
		return
	}
	out, err := net.Dial("tcp", at[1]) //nolint:noctx // of this machine
	if err != nil {
		return
	}
	defer out.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out)
		_ = in.Close()
	})
	_, _ = io.Copy(out, in)
	_ = out.Close()
	back.Wait()
}

func (f *fleet) start(d *daemon) {
	f.t.Helper()
	p := command(f.t, nil, d.args...)
	p.cmd.Dir = f.dir
	p.cmd.Env = append(p.cmd.Env, d.env...)
	p.start()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.cmd.Wait()
	}()
	d.now, d.ended = p, ended
	if d.door != nil {
		d.door.to.Store(p)
	}
	f.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-ended
	})
}

// kill kills a process, which must not have ended by itself.
func (f *fleet) kill(d *daemon) {
	f.t.Helper()
	select {
	case <-d.ended:
		assert.Fail(f.t, "a process has ended by itself", "%v: %s", d.args, d.now.written())
	default:
		assert.NoError(f.t, d.now.cmd.Process.Kill())
	}
	<-d.ended
	assert.NotContains(f.t, d.now.written(), "panic: ")
	assert.NotContains(f.t, d.now.written(), "goroutine ")
}

// persist repeats a request until the coordinator answers it.
func (f *fleet) persist(do func() error) {
	f.t.Helper()
	var err error
	for until := time.Now().Add(4 * patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if err = do(); err == nil {
			return
		}
		refused, ok := errors.AsType[*client.Error](err)
		require.False(f.t, ok && refused.Status < http.StatusInternalServerError, "%v", err)
	}
	require.NoError(f.t, err, "the coordinator does not answer: %s", f.daemons[0].now.written())
}

// jobKind is a kind of runs of the crash test.
type jobKind struct {
	name string
	// ends are the statuses with which a run may end.
	ends []wire.Status
	// stop is set for a kind whose runs are stopped.
	stop bool
}

var (
	completed = []wire.Status{wire.Completed}
	jobKinds  = []jobKind{
		{name: "job-agent", ends: completed},
		{name: "job-command", ends: completed},
		{name: "job-once", ends: []wire.Status{wire.Completed, wire.Failed}}, // it fails if it is unknown what it has done
		{name: "job-blocked", ends: []wire.Status{wire.Failed}},
		{name: "job-stopped", ends: []wire.Status{wire.Stopped}, stop: true},
		{name: "job-agent", ends: []wire.Status{wire.Completed, wire.Stopped}, stop: true},
		{name: "job-pipeline", ends: completed},
		{name: "job-plain", ends: completed},
		{name: "job-pipeline", ends: []wire.Status{wire.Completed, wire.Stopped}, stop: true},
	}
)

func (f *fleet) createBlueprints(receiver string) {
	f.t.Helper()
	env := `"env": {"PATH": "` + os.Getenv("PATH") + `"}`
	program := func(script string, repeat bool) string {
		argv, err := json.Marshal([]string{"sh", "-c", script})
		require.NoError(f.t, err)
		return fmt.Sprintf(`"type": "procedural", "command": {"argv": %s, "repeat": %t, %s}`, argv, repeat, env)
	}
	hook := func(script string) string {
		argv, err := json.Marshal([]string{"sh", "-c", script})
		require.NoError(f.t, err)
		return fmt.Sprintf(`{"type": "command", "argv": %s, "on_error": "block"}`, argv)
	}
	web := `{"type": "http", "url": "` + receiver + `", "on_error": "block"}`
	add := func(name string) string { // which adds a parameter once
		return `in=$(cat); case "$in" in *'"` + name + `":true'*) echo '{"action":"continue"}';; *) echo "$in" | ` +
			`sed 's/.*"parameters":{\([^}]*\)}.*/{"action":"continue","parameters":{\1,"` + name + `":true}}/';; esac`
	}
	stages, err := json.Marshal(map[string]string{
		"note.sh": "#!/bin/sh\nsleep 0.1\necho \"$1\"\n",
		"pipeline.yaml": `
name: p
stages:
  - {name: a, command: {argv: [./note.sh, one]}, termination: {type: fixed, iterations: 2}}
  - {name: b, command: {argv: [./note.sh, two]}, termination: {type: fixed, iterations: 1}}
hooks:
  on_iteration_complete:
    - {type: shell, command: "echo hook >> iterations.log", await: true, on_failure: abort}
`,
	})
	require.NoError(f.t, err)
	for _, text := range []string{
		`{"name": "check", ` + program(add("checked"), true) + `}`,
		`{"name": "audit", ` + program("cat >> audit.log; echo >> audit.log", true) + `}`,
		`{"name": "job-agent", "type": "autonomous", "agent": {"tools": ["shell"]}, "parameters_schema": {"type": "object"}, "hooks": {
			"on_run_start": {"type": "agent", "agent_name": "check", "on_error": "block"},
			"on_tool_call": ` + hook(`case "$(cat)" in *forbidden*) echo '{"decision": "deny", "reason": "no"}';; *) echo '{"decision": "ask"}';; esac`) + `,
			"on_run_finish": ` + web + `}}`,
		`{"name": "job-command", ` + program(`echo "$GRAPNEL_IDEMPOTENCY_KEY" >> command.log; sleep 0.1; cat`, true) + `, "hooks": {
			"on_run_start": [` + web + `, ` + hook(add("local")) + `], "on_run_finish": {"type": "agent", "agent_name": "audit", "on_error": "continue"}}}`,
		`{"name": "job-once", ` + program(`echo "$GRAPNEL_IDEMPOTENCY_KEY" >> once.log; sleep 0.1; cat`, false) + `, "hooks": {
			"on_run_start": ` + hook(`echo '{"action": "continue"}'`) + `, "on_error": ` + hook(`cat > /dev/null`) + `, "on_run_finish": ` + hook(`cat > /dev/null`) + `}}`,
		`{"name": "job-blocked", ` + program(`echo "$GRAPNEL_RUN" >> blocked.log`, true) + `, "hooks": {"on_run_start": ` + web + `, "on_run_finish": ` + web + `}}`,
		`{"name": "job-stopped", ` + program(`sleep 600`, true) + `, "hooks": {"on_run_finish": ` + web + `}}`,
		`{"name": "job-plain", ` + program(`cat`, true) + `}`,
		`{"name": "job-pipeline", "type": "pipeline", "pipeline": {"files": ` + string(stages) + `}, "hooks": {
			"on_run_start": ` + hook(add("local")) + `, "on_result": ` + hook(`echo '{"action": "continue", "result_text": "sealed"}'`) + `,
			"on_run_finish": ` + web + `}}`,
	} {
		_, err := f.api.CreateBlueprint(f.t.Context(), json.RawMessage(text))
		require.NoError(f.t, err)
	}
}

// hookReceiver is a web service that is called by hooks.
type hookReceiver struct {
	mu   sync.Mutex
	seen map[string][]string // the idempotency keys, by run and callback
}

// ServeHTTP notes the key, and answers as a hook before a run or after it.
func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var in struct {
		Parameters map[string]any `json:"parameters"`
		AgentName  string         `json:"agent_name"`
		RunID      string         `json:"run_id"`
		Status     string         `json:"status"`
	}
	if err := json.NewDecoder(request.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	callback := in.AgentName + " " + in.RunID + " start"
	var answer any = map[string]any{}
	switch {
	case in.Status != "":
		callback = in.AgentName + " " + in.RunID + " finish"
	case in.AgentName == "job-blocked":
		answer = map[string]any{"action": "block", "block_reason": "closed"}
	default:
		in.Parameters["seen"] = true
		answer = map[string]any{"action": "continue", "parameters": in.Parameters}
	}
	r.mu.Lock()
	if key := request.Header.Get("Idempotency-Key"); !slices.Contains(r.seen[callback], key) {
		r.seen[callback] = append(r.seen[callback], key)
	}
	r.mu.Unlock()
	_ = json.NewEncoder(w).Encode(answer)
}

// keys returns the number of different keys of a callback.
func (r *hookReceiver) keys(name string, run agent.RunID, callback string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen[name+" "+string(run)+" "+callback])
}

// serveJobs is a model without memory: its agent writes two lines to a file and tries what is forbidden, one call after the other.
func serveJobs(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answered, prompt := 0, ""
	for _, m := range in.Messages {
		switch m.Role {
		case "tool":
			answered++
		case "user":
			prompt = fmt.Sprint(m.Content)
		}
	}
	_, n, _ := strings.Cut(prompt, `"n":`)
	n, _, _ = strings.Cut(n, ",")
	say := func(command string) turn {
		arguments, _ := json.Marshal(map[string]string{"command": command})
		return turn{Calls: []call{{Name: "bash", Arguments: arguments}}}
	}
	switch answered {
	case 0:
		whole(w, say("echo "+n+" one >> agent.log"))
	case 1:
		whole(w, say("echo forbidden >> agent.log"))
	case 2:
		whole(w, say("echo "+n+" two >> agent.log"))
	default:
		whole(w, turn{Text: "done " + n})
	}
}

// job is a run of the crash test.
type job struct {
	jobKind

	n  int
	id agent.RunID
}

// maxOpen is the number of runs that are under way at a time.
const maxOpen = 10

// disturb kills and pauses processes a number of times while runs are under way, waits until all runs have ended, and checks them.
func (f *fleet) disturb(times int) {
	f.t.Helper()
	began := time.Now()
	var jobs []*job
	var working sync.WaitGroup
	defer working.Wait()
	ctx, stop := context.WithCancel(f.t.Context())
	defer stop()
	working.Go(func() { f.answerAll(ctx) })
	submit := func() {
		for range max(0, maxOpen-f.open(jobs)) {
			j := f.submit(len(jobs))
			if jobs = append(jobs, j); len(jobs) <= maxOpen {
				working.Go(func() { f.follow(j) })
			}
			if j.stop {
				moment := time.Duration(f.random.IntN(1500)) * time.Millisecond
				working.Go(func() {
					time.Sleep(moment)
					f.stop(j)
				})
			}
		}
	}
	kills, pauses := 0, 0
	for kills+pauses < times {
		submit()
		time.Sleep(time.Duration(f.random.IntN(400)) * time.Millisecond)
		d := f.daemons[f.random.IntN(len(f.daemons))]
		if f.random.IntN(3) == 0 {
			pauses++
			assert.NoError(f.t, d.now.cmd.Process.Signal(syscall.SIGSTOP), "%v: %s", d.args, d.now.written())
			time.Sleep(time.Duration(f.random.IntN(3000)) * time.Millisecond) // sometimes longer than a lease
			assert.NoError(f.t, d.now.cmd.Process.Signal(syscall.SIGCONT))
			continue
		}
		kills++
		f.kill(d)
		f.start(d)
	}
	for _, j := range jobs {
		f.await(j)
	}
	f.awaitHooks()
	stop()
	working.Wait()
	f.check(jobs)
	for _, d := range f.daemons {
		f.kill(d)
	}
	f.t.Logf("%d kills and %d pauses, %d runs, in %s", kills, pauses, len(jobs), time.Since(began).Round(time.Second))
}

func (f *fleet) submit(n int) *job {
	f.t.Helper()
	j := &job{jobKind: jobKinds[n%len(jobKinds)], n: n}
	f.persist(func() error {
		s, err := f.api.Submit(f.t.Context(), wire.RunRequest{
			AgentName: j.name, Parameters: json.RawMessage(fmt.Sprintf(`{"n":%d,"z":0}`, n)), IdempotencyKey: fmt.Sprint("job ", n),
		})
		j.id = s.RunID
		return err
	})
	return j
}

// open returns how many runs have not ended.
func (f *fleet) open(jobs []*job) (n int) {
	f.t.Helper()
	for _, j := range jobs {
		if r, err := f.store.Run(f.t.Context(), j.id); assert.NoError(f.t, err) && !r.Status.Ended() {
			n++
		}
	}
	return n
}

// stop stops a run.
func (f *fleet) stop(j *job) {
	f.t.Helper()
	for f.t.Context().Err() == nil {
		err := f.api.Stop(f.t.Context(), j.id, "enough")
		if err == nil || errors.Is(err, durable.ErrEnded) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// answerAll answers what agents wait for, and repeats the answers, until ctx is done. It rejects the second line of runs with odd
// numbers. A call that was interrupted is not repeated.
func (f *fleet) answerAll(ctx context.Context) {
	store := f.api.OperatorStore()
	var answered []agent.RunID // once for each answer
	for i := 0; ctx.Err() == nil; i++ {
		waits, _ := store.OpenWaits(ctx, durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitApproval, durable.WaitDoubt}})
		for _, w := range waits {
			about, err := durable.InterventionOf(w)
			assert.NoError(f.t, err)
			answer := agent.Approval{Verdict: agent.RejectAndContinue}
			if w.Kind == durable.WaitApproval && !oddLine.MatchString(about.Call.Arguments) {
				answer.Verdict = agent.Approve
			}
			f.hasReached(answertest.Repeat(ctx, store, w.Run)) // earlier answers are not for this question
			if err := answertest.Decide(ctx, store, w, answer); f.hasReached(err) {
				answered = append(answered, w.Run)
			}
		}
		if len(answered) > 0 {
			f.hasReached(answertest.Repeat(ctx, store, answered[i%len(answered)]))
		}
		time.Sleep(50 * time.Millisecond)
	}
	assert.NotEmpty(f.t, answered)
	for _, run := range lo.Uniq(answered) {
		f.persist(func() error {
			err := answertest.Repeat(f.t.Context(), store, run)
			f.hasReached(err)
			return err
		})
	}
}

// oddLine matches the arguments of the second call in a run with an odd number.
var oddLine = regexp.MustCompile(`echo \d*[13579] two`)

// hasReached reports whether the coordinator decided about an answer that ended in err. A killed coordinator does not.
func (f *fleet) hasReached(err error) bool {
	assert.NotErrorIs(f.t, err, answertest.ErrCounted)
	refused, ok := errors.AsType[*client.Error](err)
	assert.False(f.t, ok && refused.Status < http.StatusInternalServerError, "%v", err)
	return err == nil || errors.As(err, new(*durable.NotOpenError))
}

// follow reads the stream of a run to its end, across deaths of the coordinator: its events come in order, without gaps.
func (f *fleet) follow(j *job) {
	last, done := "", false
	for !done && f.t.Context().Err() == nil {
		last, done = f.readStream(j, last)
		time.Sleep(20 * time.Millisecond)
	}
	assert.True(f.t, strings.HasPrefix(last, "end-") || strings.HasPrefix(last, "hooks-"), "the stream of run %s has ended after %s", j.id, last)
}

// readStream reads a stream until it ends, and reports whether it is complete.
func (f *fleet) readStream(j *job, after string) (last string, complete bool) {
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://"+f.address+"/runs/"+string(j.id)+"/stream", http.NoBody)
	if !assert.NoError(f.t, err) {
		return after, true
	}
	r.Header.Set("Authorization", "Bearer "+f.token)
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return after, false
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return after, false
	}
	in := bufio.NewReader(response.Body)
	for last = after; ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return last, errors.Is(err, io.EOF)
		}
		if id, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "id: "); ok {
			assert.Contains(f.t, nextIDs(last), id, "after %q", last)
			last = id
		}
	}
}

// nextIDs returns the ids that may follow an event in a stream.
func nextIDs(last string) []string {
	part, number, _ := strings.Cut(last, "-")
	seq, _ := strconv.Atoi(number)
	switch part {
	case "":
		return []string{"run-1", "end-0"}
	case "run":
		return []string{fmt.Sprint("run-", seq+1), "end-0"}
	case "end":
		return []string{"hooks-1"}
	}
	return []string{fmt.Sprint("hooks-", seq+1)}
}

// await waits until a run has ended.
func (f *fleet) await(j *job) {
	f.t.Helper()
	var r durable.Run
	require.Eventually(f.t, func() bool {
		var err error
		r, err = f.store.Run(f.t.Context(), j.id)
		return err == nil && r.Status.Ended()
	}, 6*patience, 20*time.Millisecond, "%s %d has not ended: %+v", j.name, j.n, &r)
}

// awaitHooks waits until nothing is left to do.
func (f *fleet) awaitHooks() {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		open, err := f.store.List(f.t.Context(), durable.Filter{Status: []durable.Status{
			durable.StatusPending, durable.StatusReady, durable.StatusRunning, durable.StatusWaiting,
		}})
		return err == nil && len(open) == 0
	}, 6*patience, 20*time.Millisecond)
}

// check compares what has become of the runs with what they did.
func (f *fleet) check(jobs []*job) {
	f.t.Helper()
	checker := command(f.t, nil, "runs", "check", "--server", "http://"+f.address, "--ended")
	checker.cmd.Env = append(checker.cmd.Env, "GRAPNEL_TOKEN="+f.token)
	assert.Equal(f.t, 0, checker.run(), checker.written())
	f.t.Log(strings.TrimSpace(checker.written()))

	ended := map[string]int{}
	lines := map[string]int{}
	for _, name := range []string{"agent.log", "command.log", "once.log"} {
		for _, line := range f.lines(name) {
			lines[name+" "+line]++
		}
	}
	assert.Empty(f.t, f.lines("blocked.log"))
	assert.NotContains(f.t, lines, "agent.log forbidden")
	for _, j := range jobs {
		d, err := f.api.Run(f.t.Context(), j.id)
		require.NoError(f.t, err)
		about := fmt.Sprintf("%s %d, run %s: %+v", j.name, j.n, j.id, d)
		assert.Contains(f.t, j.ends, d.Status, about)
		ended[j.name]++
		switch j.name {
		case "job-agent":
			times := func(line string) int { return lines[fmt.Sprintf("agent.log %d %s", j.n, line)] }
			assert.LessOrEqual(f.t, times("one"), 1, about)
			assert.LessOrEqual(f.t, times("two"), (j.n+1)%2, about)
			if d.Status == wire.Completed {
				assert.Equal(f.t, fmt.Sprint("done ", j.n), *d.ResultText)
				f.checkCalls(j.id, times("one"), 0, times("two"))
			}
			if !j.stop {
				assert.JSONEq(f.t, fmt.Sprintf(`{"n":%d,"z":0,"checked":true}`, j.n), string(d.Parameters))
			}
			assert.Equal(f.t, 1, f.receiver.keys(j.name, j.id, "finish"), about)
		case "job-command":
			assert.JSONEq(f.t, fmt.Sprintf(`{"n":%d,"z":0,"seen":true,"local":true}`, j.n), string(d.ResultData), about)
			assert.Positive(f.t, lines["command.log "+string(j.id)+"/command"], about)
		case "job-once":
			times := lines["once.log "+string(j.id)+"/command"]
			assert.LessOrEqual(f.t, times, 1, about)
			if d.Status == wire.Completed {
				assert.Equal(f.t, 1, times, about)
			}
		case "job-blocked":
			assert.Equal(f.t, "Blocked by on_run_start hook: closed", *d.Error)
			assert.Equal(f.t, 1, f.receiver.keys(j.name, j.id, "start"), about)
			assert.Equal(f.t, 1, f.receiver.keys(j.name, j.id, "finish"), about)
		case "job-stopped":
			assert.Equal(f.t, 1, f.receiver.keys(j.name, j.id, "finish"), about)
		case "job-pipeline":
			assert.Equal(f.t, 1, f.receiver.keys(j.name, j.id, "finish"), about)
			if d.Status == wire.Completed {
				assert.Equal(f.t, "sealed", *d.ResultText, about)
				iterations, err := f.store.List(f.t.Context(), durable.Filter{Parent: j.id, Kind: durable.KindCommand})
				require.NoError(f.t, err)
				assert.Len(f.t, iterations, 3, about)
			}
		case "job-plain":
			assert.JSONEq(f.t, fmt.Sprintf(`{"n":%d,"z":0}`, j.n), string(d.ResultData), about)
		}
	}
	for name, n := range ended {
		assert.Len(f.t, f.list(name), n, "runs of %s", name)
	}
	assert.Len(f.t, f.list("audit"), ended["job-command"], "one run of the hook for each")
	assert.LessOrEqual(f.t, len(f.list("check")), ended["job-agent"], "at most one run of the hook for each")
}

// checkCalls compares the outcome of each call of a run with how often it ran: once if it was executed, and never if a hook or a person
// denied it.
func (f *fleet) checkCalls(id agent.RunID, ran ...int) {
	f.t.Helper()
	events, err := f.api.Events(f.t.Context(), id, 0, 1000)
	require.NoError(f.t, err)
	checked := map[int]bool{}
	for _, e := range events {
		var call struct {
			Step   int
			Status agent.ToolStatus
			Text   string
		}
		if e.Type != (agent.ToolCallCompleted{}).EventName() {
			continue
		}
		require.NoError(f.t, json.Unmarshal(e.Data, &call))
		about := fmt.Sprintf("run %s, step %d: %s: %s", id, call.Step, call.Status, call.Text)
		checked[call.Step] = true
		switch call.Status {
		case agent.ToolExecuted:
			assert.Equal(f.t, 1, ran[call.Step], about)
		case agent.ToolUnknown:
		default:
			assert.Zero(f.t, ran[call.Step], about)
			assert.Regexp(f.t, `(denied|rejected) by (agent\.job-agent/|local: )`, call.Text, about)
		}
	}
	assert.Len(f.t, checked, len(ran))
}

// list returns all runs of a blueprint.
func (f *fleet) list(name string) (all []wire.Run) {
	f.t.Helper()
	query := url.Values{"agent_name": {name}}
	for {
		page, err := f.api.Runs(f.t.Context(), query)
		require.NoError(f.t, err)
		all = append(all, page.Runs...)
		if page.Next == "" {
			return all
		}
		query.Set("before", page.Next)
	}
}

// lines returns the lines of a file that programs have written.
func (f *fleet) lines(name string) []string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(f.t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
