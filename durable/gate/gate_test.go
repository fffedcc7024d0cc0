package gate_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// A file, a command and a callback open a gate, or keep it closed, in another process than the one that asked.
func TestGatesWaitOverARestart(t *testing.T) {
	parts.Command(t, "bash", "install bash")
	url, received := receiver(t, http.StatusOK)
	file := func(text string) func(*testing.T, string, string) {
		return func(t *testing.T, dir, _ string) {
			t.Helper()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "answer"), []byte(text), 0o600))
		}
	}
	post := func(body string) func(*testing.T, string, string) {
		return func(t *testing.T, _, at string) {
			t.Helper()
			hook := await(t, received)
			assert.Equal(t, "prod", hook.To)
			assert.Equal(t, "12345678901234567890", hook.N, "numbers keep their digits")
			assert.NotEmpty(t, hook.Key)
			assert.Equal(t, http.StatusOK, send(t, http.MethodPost, strings.Replace(hook.URL, "https://desk.example.com", at, 1), body))
		}
	}
	const command = `{id: wait, type: gate, by: command, every: 10ms, argv: [bash, -c, 'read -r in; [ -e answer ] || exit 1; test "$STAGE" = "" && case "$in" in *prod*) cat answer;; esac']}`
	callback := `{id: wait, type: gate, by: callback, webhook: {url: "` + url + `", body: {url: "${CALLBACK_URL}", to: "${args.To}", n: "${vars.n}"}}}`
	for name, tc := range map[string]struct {
		rule   string
		answer func(t *testing.T, dir, at string)
		ran    bool
		told   string
	}{
		"a file that approves":     {"{id: wait, type: gate, by: file, file: answer, every: 10ms}", file(""), true, "deployed"},
		"a file that rejects":      {"{id: wait, type: gate, by: file, file: answer, every: 10ms}", file(`{"action":"reject","message":"not now"}`), false, "rejected by p/wait: not now"},
		"a file without an answer": {"{id: wait, type: gate, by: file, file: answer, every: 10ms}", file("perhaps"), false, "the gate failed"},
		"the same, open":           {"{id: wait, type: gate, by: file, file: answer, every: 10ms, on_failure: open}", file("perhaps"), true, "deployed"},
		"a command that approves":  {command, file("approve"), true, "deployed"},
		"a command that rejects":   {command, file("abort"), false, "rejected by p/wait"},
		"a callback that approves": {callback, post(`{"action":"approve","message":"fine"}`), true, "deployed"},
		"a callback that rejects":  {callback, post(`{"action":"reject","message":"no"}`), false, "rejected by p/wait: no"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := start(t, dir, tc.rule)
			id := first.run()
			before := first.wait(id)
			first.end()

			second := start(t, dir, tc.rule)
			server := httptest.NewServer(gate.Handler(second.store, gate.HandlerOptions{}))
			defer server.Close()
			second.watch(gate.Options{Callbacks: "https://desk.example.com/"})
			tc.answer(t, dir, server.URL)
			s, text := second.resume(id)
			assert.Equal(t, agent.StatusDone, s.Status())
			assert.Equal(t, tc.ran, second.deployed.Load() == 1)
			assert.Contains(t, text, tc.told)
			assert.Equal(t, before.Asked.Add(time.Hour), before.Deadline, "the default of a gate")
		})
	}
}

// AP-34: the deadline of a gate passes without a watcher, and a restart does not change it.
func TestTheDeadlineOfAGate(t *testing.T) {
	const file = "{id: wait, type: gate, by: file, file: answer, timeout: 50ms"
	for name, tc := range map[string]struct {
		rule   string
		status agent.Status
		ran    bool
	}{
		"fails":                {file + "}", agent.StatusDone, false},
		"fails open":           {file + ", on_failure: open}", agent.StatusDone, true},
		"rejects":              {file + ", on_timeout: reject}", agent.StatusDone, false},
		"approves":             {file + ", on_timeout: approve}", agent.StatusDone, true},
		"ends the run":         {file + ", on_timeout: abort}", agent.StatusInterrupted, false},
		"passes without a say": {file + ", on_timeout: skip}", agent.StatusDone, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := start(t, dir, tc.rule)
			id := first.run()
			before := first.wait(id)
			first.end()
			second := start(t, dir, tc.rule)
			assert.True(t, before.Deadline.Equal(second.wait(id).Deadline))
			s, _ := second.resume(id)
			assert.Equal(t, tc.status, s.Status())
			assert.Equal(t, tc.ran, second.deployed.Load() == 1)
		})
	}
}

// A file that exists when the gate begins does not count until it changes, also if that happens between two processes.
func TestAnOldFileDoesNotCount(t *testing.T) {
	const rule = "{id: wait, type: gate, by: file, file: answer, every: 5ms, timeout: 2m}"
	dir := t.TempDir()
	path := filepath.Join(dir, "answer")
	require.NoError(t, os.WriteFile(path, []byte("approve"), 0o600))
	first := start(t, dir, rule)
	old, changed := first.run(), first.run()
	first.end()
	second := start(t, dir, rule)
	about, err := durable.InterventionOf(second.wait(old))
	require.NoError(t, err)
	q, ok := durable.GateOf(second.wait(old), about)
	require.True(t, ok)
	waits, err := action.ReadWaitingGate(q.Gate, action.Host{})
	require.NoError(t, err)
	for range 3 {
		answer, err := waits.Check(t.Context())
		require.NoError(t, err)
		require.Nil(t, answer, "it is as it was")
	}
	require.NoError(t, os.WriteFile(path, []byte(`{"action":"reject","message":"changed"}`), 0o600))
	second.watch(gate.Options{})
	for _, id := range []agent.RunID{old, changed} {
		_, text := second.resume(id)
		assert.Contains(t, text, "changed")
	}
	assert.Zero(t, second.deployed.Load())
}

// Two watchers never run the command of a gate at the same time, and when one stops, the other goes on.
func TestTwoWatchers(t *testing.T) {
	parts.Command(t, "bash", "install bash")
	parts.Command(t, "flock", "install util-linux") // a lock that ends with its process: the first watcher ends its command
	const rule = `{id: wait, type: gate, by: command, every: 5ms, argv: [bash, -c, 'exec 9> lock; flock -n 9 || echo x >> overlaps; echo x >> runs; [ -e answer ] || exit 1']}`
	dir := t.TempDir()
	first, second := start(t, dir, rule), start(t, dir, rule)
	id := first.run()
	count := func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "runs"))
		return strings.Count(string(text), "x")
	}
	beyond := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return count() > n }, patience, 5*time.Millisecond)
	}
	stop := first.watch(gate.Options{Claim: 15 * time.Second})
	second.watch(gate.Options{Claim: 15 * time.Second})
	beyond(5)
	stop()
	beyond(count() + 3)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "answer"), nil, 0o600))
	second.resume(id)
	assert.EqualValues(t, 1, second.deployed.Load())
	assert.NoFileExists(t, filepath.Join(dir, "overlaps"))
}

// When its watcher stops, the processes of a command end.
func TestAWatcherThatStopsEndsItsCommands(t *testing.T) {
	parts.Command(t, "bash", "install bash")
	dir := t.TempDir()
	p := start(t, dir, `{id: wait, type: gate, by: command, argv: [bash, -c, 'echo x > began; sleep 600 & wait']}`)
	id := p.run()
	stop := p.watch(gate.Options{})
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, "began")); return err == nil }, patience, 5*time.Millisecond)
	stop() // returns when the processes have ended
	assert.Nil(t, p.wait(id).Answer, "ending a check decides nothing")
}

// AP-28: a webhook is sent again after a restart: with the same idempotency key, and with the same secret to the same URL.
func TestACallbackIsAnnouncedAtLeastOnce(t *testing.T) {
	url, received := receiver(t, http.StatusOK)
	rule := `{id: wait, type: gate, by: callback, webhook: {url: "` + url + `", body: {url: "${CALLBACK_URL}"}}}`
	dir := t.TempDir()
	secret := []byte("0123456789abcdef")
	first := start(t, dir, rule)
	id := first.run()
	assert.Zero(t, first.wait(id).TokenHash)
	stop := first.watch(gate.Options{Callbacks: "https://desk.example.com", Key: secret, Owner: "one"})
	sent := await(t, received)
	stop()
	first.end()

	second := start(t, dir, rule)
	stop = second.watch(gate.Options{Callbacks: "https://desk.example.com", Key: secret, Owner: "one"})
	assert.Equal(t, sent, await(t, received))
	stop()

	// A watcher that has another key, such as a random one, sends another URL. Both are valid until the gate is decided.
	other := second.watch(gate.Options{Callbacks: "https://desk.example.com", Owner: "one"})
	again := await(t, received)
	other()
	assert.Equal(t, sent.Key, again.Key, "a receiver may ignore it")
	assert.NotEqual(t, sent.URL, again.URL)
	server := httptest.NewServer(gate.Handler(second.store, gate.HandlerOptions{}))
	defer server.Close()
	for name, use := range map[string]told{"the first": sent, "the second": again} {
		assert.Equal(t, http.StatusOK, send(t, http.MethodGet, at(server, use.URL), ""), name)
	}
	assert.Equal(t, http.StatusOK, send(t, http.MethodPost, at(server, sent.URL), "approve"))
	used := func(when string) {
		for _, url := range []string{sent.URL, again.URL} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				assert.Equal(t, http.StatusConflict, send(t, method, at(server, url), "approve"), when)
			}
		}
		assert.Equal(t, http.StatusNotFound, send(t, http.MethodPost, at(server, sent.URL)+"x", "approve"), when)
	}
	used("decided")
	second.resume(id)
	assert.EqualValues(t, 1, second.deployed.Load())
	used("the run has ended")
	require.NoError(t, second.store.Delete(t.Context(), id))
	assert.Equal(t, http.StatusNotFound, send(t, http.MethodPost, at(server, sent.URL), "approve"), "deleted")
}

// at returns a callback URL at the address of a server.
func at(server *httptest.Server, url string) string {
	return strings.Replace(url, "https://desk.example.com", server.URL, 1)
}

// A webhook that fails denies the call.
func TestAGateWhoseWebhookFails(t *testing.T) {
	url, _ := receiver(t, http.StatusForbidden)
	p := start(t, t.TempDir(), `{id: wait, type: gate, by: callback, webhook: {url: "`+url+`", body: {url: "${CALLBACK_URL}"}}}`)
	id := p.run()
	p.watch(gate.Options{Callbacks: "https://desk.example.com"})
	s, text := p.resume(id)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Contains(t, text, "rejected by p/wait: the gate failed")
	assert.Contains(t, text, "status 403")
}

// A person can reject a gate, and not open it.
func TestAPersonAndAGate(t *testing.T) {
	p := start(t, t.TempDir(), "{id: wait, type: gate, by: file, file: answer}")
	id := p.run()
	w := p.wait(id)
	_, refused := durable.Decide(t.Context(), p.store, w, agent.Approval{Verdict: agent.Approve, By: "ann", Identity: "ann"})
	var not *durable.NotAdmittedError
	require.ErrorAs(t, refused, &not)
	assert.Equal(t, "it waits for a file (gate p/wait): people can only reject it", not.Why)
	_, err := durable.Decide(t.Context(), p.store, w, agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"})
	require.NoError(t, err)
	p.resume(id)
	assert.Zero(t, p.deployed.Load())
}

// The ID of the call stands for its gates: a rejection answers all of them, an approval says what it waits for.
func TestAPersonRejectsACallWithGates(t *testing.T) {
	const first, second = "{id: one, type: gate, by: file, file: one}", "{id: two, type: gate, by: command, argv: ['false']}"
	for _, verdict := range []agent.ApprovalVerdict{agent.RejectAndContinue, agent.RejectAndEnd} {
		p := start(t, t.TempDir(), first+"\n    - "+second)
		id := p.run()
		waits, err := p.store.Waits(t.Context(), id)
		require.NoError(t, err)
		require.Len(t, waits, 2)
		about, err := durable.InterventionOf(waits[0])
		require.NoError(t, err)
		call := about.CallID()

		err = durabletest.Approve(t.Context(), p.store, id, call, agent.Approval{Verdict: agent.Approve, By: "ann"})
		require.ErrorContains(t, err, "it waits for a file (gate p/one): people can only reject it")
		require.ErrorAs(t, err, new(*durable.NotAdmittedError))
		require.ErrorIs(t, durabletest.Approve(t.Context(), p.store, id, call+"x", agent.Approval{By: "ann"}), durable.ErrChanged)
		require.NoError(t, durabletest.Approve(t.Context(), p.store, id, call, agent.Approval{Verdict: verdict, By: "ann", Reason: "not now"}))
		waits, err = p.store.Waits(t.Context(), id)
		require.NoError(t, err)
		for _, w := range waits {
			assert.NotNil(t, w.Answer, w.ID)
		}
		require.ErrorIs(t, durabletest.Approve(t.Context(), p.store, id, call, agent.Approval{By: "ann"}), durable.ErrAnswered)
		s, text := p.resume(id)
		assert.Equal(t, verdict == agent.RejectAndEnd, s.Status() == agent.StatusInterrupted)
		assert.Contains(t, text, "not now")
		assert.Zero(t, p.deployed.Load())
	}
}

// Sessions that wait for gates hold no goroutine, neither where they ran nor where their gates are watched.
func TestWaitingGatesHoldNoGoroutine(t *testing.T) {
	const n = 1000
	p := start(t, t.TempDir(), "{id: wait, type: gate, by: file, file: 'answer-${args.To}', every: 1h}")
	w := p.wait(p.run())
	before := runtime.NumGoroutine()
	// The others are stored as the first is: the agent need not run for each.
	var group sync.WaitGroup
	for part := range 50 {
		group.Go(func() {
			for i := part; i < n-1; i += 50 {
				job := durable.Job{ID: agent.RunID(fmt.Sprint("run_", i)), Session: agent.SessionID(fmt.Sprint("ses_", i)), Name: "clerk"}
				l, err := p.store.Begin(t.Context(), job, "one", time.Hour)
				update := durable.Update{Status: durable.StatusWaiting, Steps: 1, Waits: []durable.Wait{w}}
				if assert.NoError(t, err) && assert.NoError(t, p.store.Commit(t.Context(), l, durable.Commit{Update: update})) {
					assert.NoError(t, p.store.Release(t.Context(), l, 0))
				}
			}
		})
	}
	group.Wait()
	counted := &countingStore{Store: p.store}
	p.store = counted
	p.watch(gate.Options{})
	require.Eventually(t, func() bool { return counted.claimed.Load() == n }, patience, 10*time.Millisecond)
	const few = 16 // of the store and the watcher
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+few }, patience, 10*time.Millisecond,
		"%d goroutines before", before)
}

// countingStore counts the gates that a watcher has.
type countingStore struct {
	durable.Store

	claimed atomic.Int64
}

func (s *countingStore) ClaimChecks(
	ctx context.Context, owner string, ttl time.Duration, limit int, kinds []durable.WaitKind, hosts ...string,
) ([]durable.Wait, error) {
	waits, err := s.Store.ClaimChecks(ctx, owner, ttl, limit, kinds, hosts...)
	if err == nil {
		s.claimed.Store(int64(len(waits)))
	}
	return waits, err
}

// Where the run cannot wait in a store, the gate blocks.
func TestOtherGatesBlock(t *testing.T) {
	const rule = "{id: wait, type: gate, by: file, file: answer, existing: true, every: 1ms}"
	for name, tc := range map[string]struct{ parks, durably bool }{"no durable run": {true, false}, "no host that parks": {false, true}} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "answer"), nil, 0o600))
		p := startWith(t, dir, rule, action.Host{Dir: dir, Parks: tc.parks}, tc.durably)
		s, err := p.agent.Run(t.Context(), agent.NewState(), agent.UserText("Deploy.")).Get()
		require.NoError(t, err, name)
		assert.Equal(t, agent.StatusDone, s.Status(), name)
		assert.EqualValues(t, 1, p.deployed.Load(), name)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := gate.NewWatcher(nil, gate.Options{Key: []byte("short")})
	assert.ErrorContains(t, err, "the key has 5 bytes")
	assert.PanicsWithValue(t, fmt.Sprintf("gate: HandlerOptions.Origins: %s", `invalid origin "desk": scheme is required`), func() {
		gate.Handler(nil, gate.HandlerOptions{Origins: []string{"desk"}})
	})
}
