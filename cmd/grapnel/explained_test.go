//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// explained is a run that "runs list" and "runs show" alone must explain to an operator.
type explained struct {
	name string
	// blueprint are its members after name and type. The type is autonomous if it has no command and no pipeline.
	blueprint, params string
	request           wire.RunRequest // what else the request has
	// answer are the arguments of "grapnel runs" for the answer, and what "runs show" says about the question; nil for none.
	answer *[2][]string
	status wire.Status
	// list and show are what the lines say, as regular expressions.
	list string
	show []string
}

// hookOf returns a hook that runs a script.
func hookOf(script, onError string) string {
	argv, _ := json.Marshal([]string{"sh", "-c", script})
	return fmt.Sprintf(`{"type": "command", "argv": %s, "on_error": %q}`, argv, onError)
}

// answering returns a hook that gives an answer.
func answering(answer, onError string) string { return hookOf("echo '"+answer+"'", onError) }

const (
	catCommand = `"command": {"argv": ["cat"]}`
	shellAgent = `"agent": {"tools": ["shell"]}`
)

// explainedRuns are blocked, failed and rewritten runs.
func explainedRuns() []explained {
	start := func(hook string) string { return catCommand + `, "hooks": {"on_run_start": ` + hook + `}` }
	tool := func(hook string) string { return shellAgent + `, "hooks": {"on_tool_call": ` + hook + `}` }
	asks := answering(`{"decision": "ask", "reason": "it writes"}`, "block")
	return []explained{
		{
			name: "blocked", blueprint: start(answering(`{"action": "block", "block_reason": "May is closed"}`, "block")), status: wire.Failed,
			list: `blocked by on_run_start hook \(command sh\): May is closed`, show: []string{`on_run_start hook \(command sh\): block, \S+: May is closed`},
		}, {
			name: "blocked-silently", blueprint: start(answering(`{"action": "block"}`, "block")), status: wire.Failed,
			list: `blocked by on_run_start hook \(command sh\): No reason provided`, show: []string{`: block, \S+: No reason provided`},
		}, {
			name: "hook-fails-block", blueprint: start(hookOf("echo lost >&2; exit 3", "block")), status: wire.Failed,
			list: `on_run_start hook \(command sh\) failed: .*exit code 3.*lost`, show: []string{`on_run_start hook \(command sh\): failed, on_error block, .*lost`},
		}, {
			name: "hook-fails-continue", blueprint: start(hookOf("exit 3", "continue")), status: wire.Completed,
			list: `on_run_start hook \(command sh\) failed: .*exit code 3`, show: []string{`: failed, on_error continue, .*exit code 3`},
		}, {
			name: "hook-fails-ignore", blueprint: start(hookOf("exit 3", "ignore")), status: wire.Completed,
			list: `on_run_start hook \(command sh\) failed: .*exit code 3`, show: []string{`: failed, on_error (continue|ignore), .*exit code 3`},
		}, {
			name: "hook-times-out", blueprint: start(strings.Replace(hookOf("sleep 60", "block"), "{", `{"timeout_seconds": 1, `, 1)), status: wire.Failed,
			list: `on_run_start hook \(command sh\) failed: .*(time limit|1s)`, show: []string{`: timeout, on_error block, `},
		}, {
			name: "hook-says-nonsense", blueprint: start(hookOf("echo maybe", "block")), status: wire.Failed,
			list: `on_run_start hook \(command sh\) failed: .*maybe`, show: []string{`: failed, on_error block, .*maybe`},
		}, {
			name: "second-hook-blocks", status: wire.Failed,
			blueprint: start(`[` + answering(`{"action": "continue"}`, "block") + `, ` + answering(`{"action": "block", "block_reason": "not you"}`, "block") + `]`),
			list:      `blocked by on_run_start hook 2 \(command sh\): not you`, show: []string{`on_run_start hook \(command sh\): continue`, `on_run_start hook 2 \(command sh\): block`},
		}, {
			name: "parameters-rewritten", params: `{"amount": 1}`, status: wire.Completed,
			blueprint: start(answering(`{"action": "continue", "parameters": {"amount": 2}}`, "block")),
			list:      `on_run_start hook \(command sh\) changed the parameters`,
			show:      []string{`submitted parameters \{"amount":1\}`, `\nparameters \{"amount":2\}`, `: continue, \S+: changed \{"amount":1\} to \{"amount":2\}`},
		}, {
			name: "parameters-refused", params: `{"amount": 1}`, status: wire.Failed,
			blueprint: `"parameters_schema": {"type": "object", "properties": {"amount": {"type": "integer"}}}, ` +
				start(answering(`{"action": "continue", "parameters": {"amount": "two"}}`, "block")),
			list: `failed: .*does not accept the changed parameters`, show: []string{`: failed, on_error block, .*amount`},
		}, {
			name: "finish-hook-fails", blueprint: catCommand + `, "hooks": {"on_run_finish": ` + hookOf("exit 4", "block") + `}`, status: wire.Completed,
			list: `on_run_finish hook \(command sh\) failed: .*exit code 4`, show: []string{`on_run_finish hook \(command sh\): failed, .*exit code 4`},
		}, {
			name: "hook-agent-fails", blueprint: start(`{"type": "agent", "agent_name": "broken", "on_error": "block"}`), status: wire.Failed,
			list: `on_run_start hook \(agent broken\) failed: .*exited with code 9`, show: []string{`on_run_start hook \(agent broken\): failed, on_error block, .*exited with code 9`},
		}, {
			name: "result-withheld", status: wire.Completed,
			blueprint: catCommand + `, "hooks": {"on_result": ` + answering(`{"action": "block", "block_reason": "it has a name"}`, "block") + `}`,
			list:      `on_result hook \(command sh\) withheld the result: it has a name`,
			show:      []string{`on_result hook \(command sh\): block, \S+: it has a name`},
		}, {
			name: "result-replaced", status: wire.Completed,
			blueprint: catCommand + `, "hooks": {"on_result": ` + answering(`{"action": "continue", "result_text": "[name]"}`, "block") + `}`,
			list:      `on_result hook \(command sh\) replaced the result`, show: []string{`on_result hook \(command sh\): replace, `, `\n\[name\]\n`},
		}, {
			name: "cancelled-in-a-hook", blueprint: start(hookOf("sleep 60", "block")), answer: &[2][]string{{"cancel", "--reason", "changed my mind"}, nil},
			status: wire.Stopped, list: `cancelled: changed my mind, by [^;\n]+(\n|$)`, show: []string{`on_run_start hook \(command sh\): interrupted\n`},
		}, {
			name: "command-fails", blueprint: `"command": {"argv": ["sh", "-c", "echo sorry >&2; exit 5"]}`, status: wire.Failed,
			list: `the command exited with code 5: sorry`, show: []string{`exit code 5`},
		}, {
			name: "too-late", blueprint: `"command": {"argv": ["sleep", "60"]}`, request: wire.RunRequest{TimeoutSeconds: 1}, status: wire.Stopped,
			list: `deadline`, show: []string{`\ndeadline 20`},
		}, {
			name: "never-taken", blueprint: catCommand, status: wire.Failed,
			request: wire.RunRequest{StartWithinSeconds: 1, Demands: map[string]string{"zone": "moon"}},
			list:    `start|taken`, show: []string{`start by 20`, `zone=moon`},
		}, {
			name: "cancelled", blueprint: `"command": {"argv": ["sleep", "60"]}`, answer: &[2][]string{{"cancel", "--reason", "changed my mind"}, nil},
			status: wire.Stopped, list: `changed my mind`, show: []string{`changed my mind`},
		}, {
			name: "call-denied", blueprint: tool(answering(`{"decision": "deny", "reason": "no deploys on Friday"}`, "block")), params: `{"prompt": "echo deploy"}`,
			status: wire.Completed,
			show:   []string{`echo deploy`, `PreToolUse hook \S+ \(command sh\) about bash \(call_1\): deny, \S+: no deploys on Friday`, `✗ denied by \S+: no deploys on Friday`},
		}, {
			name: "call-hook-fails", blueprint: tool(hookOf("echo lost >&2; exit 3", "block")), params: `{"prompt": "echo seven"}`, status: wire.Completed,
			show: []string{`PreToolUse hook \S+ \(command sh\) about bash \(call_1\): failed, on_error block`, `✗ not run: \S+ could not decide: (?s:.*)exit code\s+3`},
		}, {
			name: "call-rewritten", params: `{"prompt": "echo one"}`, status: wire.Completed,
			blueprint: tool(answering(`{"decision": "rewrite", "arguments": {"command": "echo two"}}`, "block")),
			show:      []string{`▸ bash echo one`, `with changed arguments: echo two`, `PreToolUse hook \S+ \(command sh\) about bash \(call_1\): rewrite, .*echo one.* to .*echo two`},
		}, {
			name: "approved-with-changes", blueprint: tool(asks), params: `{"prompt": "echo three"}`, status: wire.Completed,
			answer: &[2][]string{{"approve", "--args", `{"command": "echo four"}`}, {"it writes"}},
			show:   []string{`▸ bash echo three`, `with changed arguments: echo four`, `PreToolUse hook \S+ \(command sh\) about bash \(call_1\): ask, \S+: it writes`},
		}, {
			name: "rejected", blueprint: tool(asks), params: `{"prompt": "echo five"}`, status: wire.Stopped,
			answer: &[2][]string{{"reject", "--end", "--reason", "not today"}, {"it writes"}}, list: `not today`, show: []string{`reject by local, .*: not today`, `not run: local rejected it: not today`, `local rejected a call: not today`},
		}, {
			name: "model-fails", blueprint: shellAgent, params: `{"prompt": "no such model"}`, status: wire.Failed,
			list: `no such model`, show: []string{`no such model`},
		}, {
			name: "out-of-steps", blueprint: `"agent": {"tools": ["shell"], "guards": {"steps": 1}}`, params: `{"prompt": "echo six"}`, status: wire.Stopped,
			list: `1 of at most 1 steps taken \(steps_limit\)`, show: []string{`1 of at most 1 steps taken`},
		}, {
			name: "stage-fails", status: wire.Failed,
			blueprint: `"pipeline": {"files": {"pipeline.yaml": "name: p\nstages:\n  - {name: check, command: {argv: [sh, -c, 'exit 6']}, termination: {type: fixed, iterations: 1}}\n"}}`,
			list:      `stage "check"`, show: []string{`stage "check"`, `\nruns\n  run_\S+  command \S+: failed: the command exited with code 6`},
		}, {
			name: "gate-rejected", status: wire.Stopped, answer: &[2][]string{{"reject", "--reason", "no budget"}, {"Is the plan good?"}},
			blueprint: `"pipeline": {"files": {"pipeline.yaml": "name: p\nstages:\n  - {name: plan, command: {argv: [echo, planned]}, termination: {type: fixed, iterations: 1}}\n` +
				`hooks:\n  on_stage_complete: {type: gate, by: person, reason: Is the plan good?, await: true}\n"}}`,
			list: `no budget`, show: []string{`StageComplete hook \S+ .*: stop, \S+: no budget`, `\nruns\n  run_\S+  command \S+: completed`},
		},
	}
}

// serveExplained is a model that calls bash with the prompt as the command, and then is done.
func serveExplained(w http.ResponseWriter, r *http.Request) {
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
	prompt, answered := "", false
	for _, m := range in.Messages {
		switch m.Role {
		case "tool":
			answered = true
		case "user":
			prompt = fmt.Sprint(m.Content)
		}
	}
	switch arguments, _ := json.Marshal(map[string]string{"command": prompt}); {
	case strings.Contains(prompt, "no such model"):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error": {"message": "no such model", "type": "test"}}`))
	case answered:
		whole(w, turn{Text: "done"})
	default:
		whole(w, turn{Calls: []call{{Name: "bash", Arguments: arguments}}})
	}
}

// newExplained returns a fleet without processes, the file of its store, and the address of its model.
func newExplained(t *testing.T) (f *fleet, at, model string) {
	t.Helper()
	dir := t.TempDir()
	at = filepath.Join(dir, "runs.db")
	store, err := sqlite.Open(t.Context(), at, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	server := httptest.NewServer(http.HandlerFunc(serveExplained))
	t.Cleanup(server.Close)
	f = &fleet{t: t, dir: dir, store: store, address: freeAddress(), token: "secret"}
	f.api, err = client.New(client.Options{URL: "http://" + f.address, Token: f.token})
	require.NoError(t, err)
	return f, at, server.URL + "/v1"
}

// CO-08, CO-09, CO-24: the document's first day: each run that was blocked, has failed or was rewritten is explained by "grapnel runs list" and "grapnel runs
// show" alone.
func TestRunsAreExplained(t *testing.T) {
	t.Parallel()
	f, at, model := newExplained(t)
	serve := &daemon{
		args: []string{"serve", "--store", at, "--listen", f.address, "--pipelines", filepath.Join(f.dir, "pipelines"), "--model", "openai/test-model"},
		env:  []string{"GRAPNEL_TOKEN=" + f.token, "OPENAI_API_KEY=sk-1", "OPENAI_BASE_URL=" + model},
	}
	f.daemons = []*daemon{serve}
	f.start(serve)
	var runners string
	f.persist(func() (err error) {
		runners, err = f.api.NewToken(t.Context(), "runners", wire.RunnerRole, 0)
		return err
	})
	viewer, err := f.api.NewToken(t.Context(), "viewers", wire.Viewer, 0)
	require.NoError(t, err)
	f.start(&daemon{
		args: []string{"runner", "--server", "http://" + f.address, "--name", "r1", "--model", "openai/test-model"},
		env:  []string{"GRAPNEL_TOKEN=" + runners, "OPENAI_API_KEY=sk-1", "OPENAI_BASE_URL=" + model},
	})
	grapnel := func(token string, args ...string) string {
		t.Helper()
		p := command(t, nil, append(args, "--server", "http://"+f.address)...)
		p.cmd.Env = append(p.cmd.Env, "GRAPNEL_TOKEN="+token)
		code := p.run()
		require.Zero(t, code, "%v: %s", args, p.written())
		return p.written()
	}
	create := func(name, members string) {
		t.Helper()
		kind := wire.Autonomous
		switch {
		case strings.Contains(members, `"command": {"argv"`) && !strings.Contains(members, shellAgent):
			kind = wire.Procedural
		case strings.Contains(members, `"pipeline": {`):
			kind = wire.Pipeline
		}
		members = strings.ReplaceAll(members, `"command": {"argv"`, `"command": {"env": {"PATH": "`+os.Getenv("PATH")+`"}, "argv"`)
		_, err := f.api.CreateBlueprint(t.Context(), json.RawMessage(fmt.Sprintf(`{"name": %q, "type": %q, %s}`, name, kind, members)))
		require.NoError(t, err, name)
	}
	create("broken", `"command": {"argv": ["sh", "-c", "exit 9"]}`)
	all := explainedRuns()
	ids := map[string]agent.RunID{}
	for _, e := range all {
		create(e.name, e.blueprint)
		request := e.request
		request.AgentName, request.Parameters = e.name, json.RawMessage(e.params)
		s, err := f.api.Submit(t.Context(), request)
		require.NoError(t, err, e.name)
		ids[e.name] = s.RunID
	}
	for _, e := range all {
		if e.answer == nil {
			continue
		}
		require.Eventually(t, func() bool {
			d, err := f.api.Run(t.Context(), ids[e.name])
			return err == nil && (d.Status == wire.Waiting || e.answer[0][0] == "cancel" && (d.Status == wire.Running || len(d.Hooks) > 0))
		}, patience, 20*time.Millisecond, e.name)
		args := []string{"runs", e.answer[0][0], string(ids[e.name])}
		if len(e.answer[1]) > 0 {
			waits, err := f.store.OpenWaits(t.Context(), durable.WaitFilter{Run: ids[e.name]})
			require.NoError(t, err)
			require.Len(t, waits, 1)
			args = append(args, waits[0].ID)
			shown := grapnel(f.token, "runs", "show", string(ids[e.name]))
			assert.Contains(t, shown, "asks for approval: "+e.answer[1][0])
			assert.Contains(t, shown, "  grapnel runs approve "+string(ids[e.name])[:12]+" "+waits[0].ID[:12])
		}
		grapnel(f.token, append(args, e.answer[0][1:]...)...)
	}
	require.Eventually(t, func() bool {
		live, err := f.store.List(t.Context(), durable.Filter{Limit: 1, Status: []durable.Status{
			durable.StatusPending, durable.StatusReady, durable.StatusRunning, durable.StatusWaiting,
		}})
		return err == nil && len(live) == 0
	}, 2*patience, 50*time.Millisecond, "all runs end: %s", grapnel(f.token, "runs", "list", "--hooks", "--limit", "100"))

	list := grapnel(viewer, "runs", "list", "--limit", "100") // viewers may list
	t.Log("\n" + list)
	assert.NotContains(t, list, "run_hooks", "runs of hooks are hidden")
	assert.NotContains(t, list, " broken ", "runs of hooks are hidden")
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			row := regexp.MustCompile(`(?m)^run_\S+ +\S+ +\S+ +` + e.name + ` .*$`).FindString(list)
			assert.Regexp(t, e.list, row)
			d, err := f.api.Run(t.Context(), ids[e.name])
			require.NoError(t, err)
			assert.Equal(t, e.status, d.Status)
			shown := grapnel(f.token, "runs", "show", string(ids[e.name]))
			for _, want := range append(e.show, e.list) {
				assert.Regexp(t, want, shown)
			}
			assert.NotContains(t, shown, "coordinator.", "labels of the coordinator")
			if t.Failed() {
				t.Log("\n" + shown)
			}
		})
	}
	checked := grapnel(viewer, "runs", "check")
	assert.Contains(t, checked, "no problem")
	assert.Contains(t, checked, "finish-hook-fails: on_run_finish hook (command sh) failed: ")
	assert.Contains(t, grapnel(viewer, "runs", "watch", string(ids["finish-hook-fails"])), "on_run_finish hook (command sh): failed, on_error ")
	assert.Contains(t, serve.now.written(), "on_run_finish hook (command sh) failed: ", "the log")
	assert.Contains(t, grapnel(viewer, "runs", "list", "--kind", "run_hooks"), "finish-hook-fails")
	assert.Contains(t, grapnel(viewer, "runs", "list", "--hooks", "--limit", "100"), " broken ")
	assert.Contains(t, grapnel(viewer, "runs", "show", string(ids["blocked"])), "May is closed", "viewers see why")
}
