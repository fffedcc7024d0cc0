package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/policy"
)

// A command decides about calls of a real agent, and observers are told.
func TestACommandDecides(t *testing.T) {
	dir := write(t, map[string]string{"judge.sh": `#!/bin/sh
request=$(cat)
case "$request" in
*secret*) echo '{"decision":"deny","reason":"that is secret"}' ;;
*rename*) echo '{"decision":"rewrite","arguments":{"path":"renamed"}}' ;;
*odd*) echo 'not a decision' ;;
*crash*) exit 3 ;;
*) echo '{}' ;;
esac
`})
	p := load(t, `
policy: guard
hooks:
  PreToolUse:
    - {id: judge, match: {tool: read}, type: command, argv: [./judge.sh]}
  PostToolUse:
    - {id: log, type: shell, command: 'cat > told-$$.json', await: false}
`, policy.Options{Host: action.Host{Dir: dir}})
	final, _ := run(t, p, []string{"read"}, agenttest.Call("read", `{"path":"secret"}`).Call("read", `{"path":"rename"}`).
		Call("read", `{"path":"odd"}`).Call("read", `{"path":"crash"}`).Call("read", `{"path":"fine"}`), agenttest.Say("done"))
	lines := strings.Split(agenttest.Transcript(final), "\n")
	results := lo.Filter(lines, func(line string, _ int) bool { return strings.HasPrefix(line, "tool ") })
	require.Len(t, results, 5)
	assert.Equal(t, `tool read (not_executed): tool "read": denied by guard/judge: that is secret`, results[0])
	assert.Equal(t, `tool read (executed): ran with changed arguments: {"path":"renamed"}`, results[1])
	assert.Contains(t, results[2], `not executed: guard/judge: the hook could not decide: command: invalid decision`)
	assert.Contains(t, results[3], `not executed: guard/judge: the hook could not decide: command:`)
	assert.Equal(t, `tool read (executed): ran {"path":"fine"}`, results[4])

	told, err := filepath.Glob(filepath.Join(dir, "told-*.json"))
	require.NoError(t, err)
	assert.Len(t, told, 5, "denied calls are told of, too")
}

// receiver is a web service that remembers what it was sent.
type receiver struct {
	mu     sync.Mutex
	bodies []map[string]any
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	text, err := io.ReadAll(req.Body)
	body := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, body)
	if callback, ok := body["callback"].(string); ok {
		ctx := context.WithoutCancel(req.Context()) // it is answered when this is over
		go func() {
			answered, err := http.NewRequestWithContext(ctx, http.MethodPost, callback, strings.NewReader(`{"action":"approve","message":"fine"}`))
			if err != nil {
				return
			}
			answered.Header.Set("Content-Type", "application/json")
			if answer, err := http.DefaultClient.Do(answered); err == nil {
				_ = answer.Body.Close()
			}
		}()
	}
}

func (r *receiver) sent() []map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies
}

// A pipeline's quality gate: tests fail, and a webhook with a callback asks a person. AP-07, AP-12, AP-13, AP-54: later rules
// know an action's status, and a skipped action does not change it.
func TestAQualityGate(t *testing.T) {
	to := &receiver{}
	server := httptest.NewServer(to)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	t.Setenv("GATE_URL", server.URL)
	dir := t.TempDir()
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	p, err := policy.ParseKind(policy.Pipelines, "pipeline.yaml", fmt.Appendf(nil, `
hooks:
  on_iteration_complete:
    - {id: tests, type: shell, command: 'echo broken; exit 1', await: true}
    - {type: shell, command: 'touch skipped', await: true, when: "${ITERATION} == 99"}
    - id: gate
      type: webhook
      url: "${GATE_URL}/gate"
      body: {text: "Tests of ${SESSION} in ${STAGE} failed: ${missing}", iteration: "${ITERATION}", callback: "${CALLBACK_URL}"}
      await: true
      callback_port: %d
      when: "${LAST_HOOK_STATUS} == 'failed'"
    - {type: shell, command: 'printf "%%s %%s %%s" "$LAST_HOOK_STATUS" "$ITERATION" "$HOOK_RESPONSE" > seen', await: true, when: 'actions.gate.status == "success"'}
    - {type: shell, command: 'touch never', await: true, when: "${LAST_HOOK_STATUS} == 'failed'"}
`, port), policy.Options{Host: action.Host{Dir: dir}})
	require.NoError(t, err)
	at := hookstest.Pipeline(hooks.IterationComplete, hooks.Pipeline{}).WithRun(agent.Run{Stage: "work", Iteration: 3})
	f := fire(t, p, at)
	assert.Equal(t, "open", f.Policy, "on_failure is continue where nothing is said: %s", f)
	assert.Equal(t, hooks.Allow, f.Decision, "the callback approves: %s", f)
	require.Len(t, to.sent(), 1)
	assert.Equal(t, "Tests of "+string(f.State.Session())+" in work failed: ${missing}", to.sent()[0]["text"], "what has no value stays")
	assert.Equal(t, "3", to.sent()[0]["iteration"])
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(seen), "success 3 "), "%s", seen)
	assert.Contains(t, string(seen), "fine")
	for _, name := range []string{"skipped", "never"} {
		assert.NoFileExists(t, filepath.Join(dir, name))
	}

	// AP-54: a new occasion begins with no status.
	first := load(t, `
policy: p
hooks:
  IterationComplete:
    - {type: shell, command: 'touch once', await: true, when: "LAST_HOOK_STATUS == ''"}
    - {type: shell, command: 'test ! -e twice && touch twice', await: true}
`, policy.Options{Host: action.Host{Dir: dir}})
	for range 2 {
		fire(t, first, at)
		assert.FileExists(t, filepath.Join(dir, "once"))
		require.NoError(t, os.Remove(filepath.Join(dir, "once")))
	}
}

// AP-53: all names have a value in a process, and AP-55: values arrive as they are.
func TestNamesOfThePipeline(t *testing.T) {
	dir := t.TempDir()
	p, err := policy.ParseKind(policy.Pipelines, "pipeline.yaml", []byte(`
hooks:
  on_error: [{type: shell, await: true, command: 'printf "%s|" "$SESSION" "$STAGE" "$NEXT_STAGE" "$ITERATION" "$MAX_ITERATIONS" "$PROGRESS" "$STATUS" "$CTX" "$LAST_DECISION" "$CHANGED_FILES" "$STAGE_OUTPUTS" "$ERROR" > seen'}]
`), policy.Options{Host: action.Host{Dir: dir}})
	require.NoError(t, err)
	nasty := "$(touch x) `touch x` '; touch x; \" \n {\"a\":${STAGE}} && true"
	f := fire(t, p, hookstest.Pipeline(hooks.IterationFailed, hooks.Pipeline{
		NextStage: "", MaxIterations: 9, Progress: "/p", Status: "/s", Context: "/c", LastDecision: "continue",
		ChangedFiles: []string{"a", "b c"}, StageOutputs: []string{"o"}, Err: textError(nasty),
	}).WithRun(agent.Run{Stage: "work", Iteration: 1}))
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	require.NoError(t, err)
	assert.Equal(t, string(f.State.Session())+"|work||1|9|/p|/s|/c|continue|a\nb c|o|"+nasty+"|", string(seen))
	assert.NoFileExists(t, filepath.Join(dir, "x"))
}

type textError string

func (e textError) Error() string { return string(e) }

// What the host lacks for an action is told with the place of the action.
func TestActionsThatNobodyCanDo(t *testing.T) {
	p := load(t, `
policy: p
hooks:
  PreToolUse:
    - {id: a, type: agent, agent_name: helper}
    - {id: f, type: func, func: nope}
`)
	_, err := p.Hooks()
	require.Error(t, err)
	assert.Contains(t, err.Error(), `policy.yaml:5:`)
	assert.Contains(t, err.Error(), `rule "p/a": type: no agent starter configured`)
	assert.Contains(t, err.Error(), `policy.yaml:6:`)
	assert.Contains(t, err.Error(), `rule "p/f": func: unknown func "nope"`)
}
