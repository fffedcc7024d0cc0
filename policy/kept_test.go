package policy_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/toolexec"
)

// keptRun is the id of the run in these tests.
const keptRun = agent.RunID("run_kept")

// keptRules do something at every point that a run of two calls comes to: each notes its idempotency key in a file.
const keptRules = `
policy: kept
hooks:
  ExecutionStart:
    - {id: begin, type: shell, command: 'echo "begin $GRAPNEL_IDEMPOTENCY_KEY" >> log'}
  PreInference:
    - {id: ask, type: shell, command: 'echo "ask $GRAPNEL_IDEMPOTENCY_KEY" >> log'}
  PreToolUse:
    - id: judge
      type: shell
      command: |
        echo "judge $GRAPNEL_IDEMPOTENCY_KEY" >> log
        case "$(cat)" in
        *secret*) echo '{"decision": "deny", "reason": "that is secret"}' ;;
        *) echo '{"decision": "rewrite", "arguments": {"path": "renamed"}}' ;;
        esac
    - {id: look, type: shell, observe: true, await: false, command: 'echo "look $GRAPNEL_IDEMPOTENCY_KEY" >> log'}
  PostToolUse:
    - {id: told, type: command, argv: [./told.sh], observe: true}
  StepEnd:
    - {id: note, type: shell, command: 'echo "note $GRAPNEL_IDEMPOTENCY_KEY" >> log; echo noted'}
    - {id: stop, when: 'actions.note.output.trim() != "noted"', decision: stop, reason: nobody noted it}
  Stop:
    - {id: check, type: shell, command: 'echo "check $GRAPNEL_IDEMPOTENCY_KEY" >> log'}
`

// keptWorld is where a run that is kept does something, in all its processes.
type keptWorld struct {
	dir   string
	store durable.Store
}

func newKeptWorld(t *testing.T) *keptWorld {
	t.Helper()
	parts.Command(t, "bash", "install bash")
	w := &keptWorld{dir: write(t, map[string]string{"told.sh": "#!/bin/sh\necho \"told $GRAPNEL_IDEMPOTENCY_KEY\" >> log\n"})}
	require.NoError(t, os.Chmod(filepath.Join(w.dir, "told.sh"), 0o700))
	w.store = openRuns(t, filepath.Join(w.dir, "runs.db"))
	return w
}

func openRuns(t *testing.T, path string) durable.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	return store
}

// agent is the agent as each process makes it.
func (w *keptWorld) agent(t *testing.T, k *durable.Keeper, rules string, host action.Host) *agent.Agent {
	t.Helper()
	host.Dir = w.dir
	read := toolexec.WithPolicy(echo("read"), toolexec.Policy{Doubt: toolexec.DoubtRepeat})
	model := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		calls := []string{`{"path":"a"}`, `{"path":"secret"}`}
		n := s.RunStepCount()
		if n == len(calls) {
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: fmt.Sprint("call_", n), Name: "read", Arguments: calls[n]})}, nil
	})
	a, err := builder.New().WithDriver(model).With(
		policy.Use(load(t, rules, policy.Options{Host: host})), capability.UseTools(read),
		capability.UseApproval(agent.ParkApprover), capability.UseDurability{Keeper: k},
	).Build().Get()
	require.NoError(t, err)
	return a
}

// begin runs the run until it ends or is cut off, with all that it has set off.
func (w *keptWorld) begin(t *testing.T, store durable.Store, rules string) (agent.State, error) {
	t.Helper()
	a := w.agent(t, durable.Keep(store, durable.Options{Patience: -1}), rules, action.Host{})
	s, err := a.RunWith(t.Context(), agent.RunSettings{ID: keptRun}, agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, a.Drain(t.Context()))
	return s, err
}

// goOn lets the run go on in another process.
func (w *keptWorld) goOn(t *testing.T, rules string, o durable.Options) (agent.State, error) {
	t.Helper()
	k := durable.Keep(w.store, o)
	a := w.agent(t, k, rules, action.Host{})
	s, err := k.Resume(t.Context(), a, keptRun, durable.TakeOver).Get()
	require.NoError(t, a.Drain(t.Context()))
	return s, err
}

// log is how often each thing was done: a word and a key.
func (w *keptWorld) log(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "log"))
	if errors.Is(err, os.ErrNotExist) {
		return map[string]int{}
	}
	require.NoError(t, err)
	return lo.CountValues(strings.Split(strings.TrimSpace(string(text)), "\n"))
}

// words is how often each word is in a log.
func words(log map[string]int) map[string]int {
	out := map[string]int{}
	for line, n := range log {
		word, _, _ := strings.Cut(line, " ")
		out[word] += n
	}
	return out
}

// noted is the keys of the actions that the journal says have begun, and of those that have ended. Nothing ends that
// has not begun, and nothing that has ended begins again.
func (w *keptWorld) noted(t *testing.T) (begun, ended []string) {
	t.Helper()
	entries, err := w.store.Entries(t.Context(), keptRun, 0)
	require.NoError(t, err)
	for _, e := range entries {
		sum := sha256.Sum256([]byte(string(keptRun) + "/once/" + e.Key))
		key := hex.EncodeToString(sum[:16])
		switch e.Kind {
		case durable.EntryOnce:
			require.True(t, action.Kept(e.Key), e.Key)
			require.NotContains(t, ended, key, "%s begins again", e.Key)
			begun = append(begun, key)
		case durable.EntryDone:
			require.Contains(t, begun, key, "%s ends before it begins", e.Key)
			ended = append(ended, key)
		}
	}
	return begun, ended
}

var errDead = errors.New("the process is dead")

// brittle is the store of a process that dies after so many writes.
type brittle struct {
	durable.Store

	left atomic.Int64
}

func (s *brittle) Append(ctx context.Context, l durable.Lease, u durable.Update, entries ...durable.Entry) error {
	if s.left.Add(-1) < 0 {
		return errDead
	}
	return s.Store.Append(ctx, l, u, entries...)
}

func (s *brittle) Release(context.Context, durable.Lease) error { return errDead }

// Wherever a run is cut off, what its rules did is done: what was written down as ended once and no more, what was under
// way again, with the same key; and the run says what an undisturbed one does, decisions of actions included.
//
// AP-60, AP-61, AP-63
func TestActionsOfARunThatIsCutOff(t *testing.T) {
	whole := newKeptWorld(t)
	want, err := whole.begin(t, whole.store, keptRules)
	require.NoError(t, err)
	require.Equal(t, agent.StatusDone, want.Status())
	require.Contains(t, agenttest.Transcript(want), "denied by kept/judge: that is secret")
	once := whole.log(t)
	require.Equal(t, map[string]int{"begin": 1, "ask": 3, "judge": 2, "look": 2, "told": 2, "note": 3, "check": 1}, words(once))
	begun, ended := whole.noted(t)
	require.ElementsMatch(t, begun, ended)
	require.Len(t, ended, len(once))

	repeated, spared := 0, 0
	for writes, over := int64(1), false; !over; writes++ {
		w := newKeptWorld(t)
		dies := &brittle{Store: w.store}
		dies.left.Store(writes)
		if _, err := w.begin(t, dies, keptRules); err == nil {
			over = true
			break
		}
		begun, ended := w.noted(t)
		s, err := w.goOn(t, keptRules, durable.Options{})
		if errors.Is(err, durable.ErrNotBegun) { // there is nothing to go on from
			assert.LessOrEqual(t, writes, int64(2), "its input is let in by the third")
			continue
		}
		require.NoError(t, err, "after %d writes", writes)
		require.Equal(t, agent.StatusDone, s.Status())
		assert.Equal(t, agenttest.Transcript(want), agenttest.Transcript(s), "after %d writes", writes)
		for line, n := range w.log(t) {
			word, key, _ := strings.Cut(line, " ")
			assert.Contains(t, once, line, "after %d writes", writes)
			switch {
			case lo.Contains(ended, key):
				spared++
				assert.Equal(t, 1, n, "%s had ended, after %d writes", word, writes)
			case n > 1:
				repeated++
				assert.Equal(t, 2, n, "%s, after %d writes", word, writes)
				assert.Contains(t, begun, key, "%s was under way, after %d writes", word, writes)
			}
		}
		awaited := lo.OmitBy(once, func(line string, _ int) bool { return strings.HasPrefix(line, "look ") })
		for line := range awaited {
			assert.Contains(t, w.log(t), line, "after %d writes", writes)
		}
	}
	assert.Positive(t, repeated, "what was under way is done again")
	assert.Positive(t, spared)
}

var _ = json.Valid
var _ = http.MethodGet
var _ = httptest.NewServer
