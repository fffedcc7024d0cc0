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
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
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
	waits, err := action.ReadWaitingGate(q.Gate.Data, action.Host{})
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
	const rule = `{id: wait, type: gate, by: command, every: 5ms, argv: [bash, -c, 'mkdir lock || echo x >> overlaps; echo x >> runs; rmdir lock; [ -e answer ] || exit 1']}`
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
	stop := first.watch(gate.Options{Claim: 4 * time.Second})
	second.watch(gate.Options{Claim: 4 * time.Second})
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

// AP-28: a webhook is sent again after a restart: with the same URL and the same key. A watcher with another secret does not
// announce the gate again, so the URL that was sent stays valid.
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
	assert.NotZero(t, first.wait(id).TokenHash, "the callback can be answered when it is announced")
	stop()
	first.end()

	second := start(t, dir, rule)
	stop = second.watch(gate.Options{Callbacks: "https://desk.example.com", Key: secret, Owner: "one"})
	assert.Equal(t, sent, await(t, received))
	stop()
	other := second.watch(gate.Options{Callbacks: "https://desk.example.com", Owner: "one"})
	server := httptest.NewServer(gate.Handler(second.store, gate.HandlerOptions{}))
	defer server.Close()
	assert.Equal(t, http.StatusOK, send(t, http.MethodPost, strings.Replace(sent.URL, "https://desk.example.com", server.URL, 1), "approve"))
	other()
	assert.Empty(t, received)
	second.resume(id)
	assert.EqualValues(t, 1, second.deployed.Load())
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
	assert.Equal(t, "it waits for a file", not.Why)
	_, err := durable.Decide(t.Context(), p.store, w, agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"})
	require.NoError(t, err)
	p.resume(id)
	assert.Zero(t, p.deployed.Load())
}

// Gates that wait hold no goroutine.
func TestWaitingGatesHoldNoGoroutine(t *testing.T) {
	const n = 100
	p := start(t, t.TempDir(), "{id: wait, type: gate, by: file, file: 'answer-${args.To}', every: 1h}")
	for range n {
		p.run()
	}
	before := runtime.NumGoroutine()
	counted := &countingStore{Store: p.store}
	p.store = counted
	p.watch(gate.Options{})
	require.Eventually(t, func() bool { return counted.claimed.Load() == n }, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+n/4 }, patience, 10*time.Millisecond)
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
