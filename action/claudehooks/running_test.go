package claudehooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action/claudehooks"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/policy/recorded"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

// Scripts get the documented fields, environment and folder.
func TestInput(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "x")
	t.Setenv("OWN_VARIABLE", "own")
	w := newWorld(t, settings("PreToolUse", "Bash",
		handler(`python3 log.py; pwd > pwd; env > env; echo "${CLAUDE_PROJECT_DIR}" > project`)), claudehooks.Options{})
	w.run("ls")
	var in map[string]any
	require.NoError(t, json.Unmarshal([]byte(w.logged("log.jsonl")), &in))
	assert.Equal(t, "PreToolUse", in["hook_event_name"])
	assert.Equal(t, "Bash", in["tool_name"])
	assert.Equal(t, map[string]any{"command": "ls"}, in["tool_input"])
	for _, key := range []string{"session_id", "prompt_id", "transcript_path", "tool_use_id"} {
		assert.NotEmpty(t, in[key], key)
	}
	assert.Equal(t, w.dir, in["cwd"])
	assert.Equal(t, "default", in["permission_mode"])
	dir, err := filepath.EvalSymlinks(w.dir)
	require.NoError(t, err)
	assert.Equal(t, dir+"\n", w.logged("pwd"))
	assert.Equal(t, w.dir+"\n", w.logged("project"))
	for _, line := range []string{"CLAUDECODE=1\n", "OWN_VARIABLE=own\n", "CLAUDE_PROJECT_DIR=" + w.dir + "\n"} {
		assert.Contains(t, w.logged("env"), line)
	}
	assert.NotContains(t, w.logged("env"), "OTEL_")
	assert.NotContains(t, w.logged("env"), "CLAUDE_ENV_FILE")
}

// All tools have Claude Code's names and keys, with absolute paths.
func TestTools(t *testing.T) {
	w := newWorld(t, settings("PreToolUse", "Read|Write,Edit| Glob ", handler("python3 log.py")), claudehooks.Options{})
	var turns []agenttest.Turn
	var tools []toolexec.Tool
	for _, x := range [][2]string{
		{"read_file", `{"path":"a.txt","limit":3}`}, {"write_file", `{"path":"/x/a.txt","content":"c"}`},
		{"edit_file", `{"path":"a.txt","old_text":"o","new_text":"n"}`}, {"glob", `{"pattern":"*.go","path":"sub"}`},
	} {
		turns = append(turns, agenttest.Call(x[0], x[1]))
		tools = append(tools, toolexec.Raw(agent.ToolSpec{Name: x[0], Parameters: `{"type":"object"}`}, func(context.Context, toolexec.Call) (string, error) { return "ok", nil }))
	}
	a, _ := w.agent([]capability.Capability{capability.UseTools(tools...)}, append(turns, agenttest.Say("done"))...)
	require.NoError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
	var got []string
	for line := range strings.Lines(w.logged("log.jsonl")) {
		var in map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &in))
		input, _ := json.Marshal(in["tool_input"])
		got = append(got, fmt.Sprint(in["tool_name"], " ", strings.ReplaceAll(string(input), w.dir, "DIR")))
	}
	assert.Equal(t, []string{
		`Read {"file_path":"DIR/a.txt","limit":3}`, `Write {"content":"c","file_path":"/x/a.txt"}`,
		`Edit {"file_path":"DIR/a.txt","new_string":"n","old_string":"o"}`, `Glob {"path":"DIR/sub","pattern":"*.go"}`,
	}, got)
}

// Rewrites apply in configuration order, each handler sees the earlier result, and a guard before them sees the last.
func TestRewrites(t *testing.T) {
	w := newWorld(t, settings("PreToolUse", "Bash", handler("sh no-push.sh"), handler("node rewrite.js one"), handler("node rewrite.js two")), claudehooks.Options{})
	s := w.run("echo")
	assert.Equal(t, []string{"echo one two"}, w.ran, answer(s))

	w = newWorld(t, settings("PreToolUse", "Bash", handler("sh no-push.sh"), handler("node rewrite.js push")), claudehooks.Options{})
	assert.Contains(t, answer(w.run("git")), "pushing is done by CI")
	assert.Empty(t, w.ran)

	// An input that violates the schema: neither the original nor the rewrite runs.
	for _, isCompat := range []bool{false, true} {
		w = newWorld(t, settings("PreToolUse", "Bash", handler(sh(specific("PreToolUse", `"updatedInput":{"cmd":"x"}`), "", 0))), claudehooks.Options{Compat: isCompat})
		w.run("ls")
		assert.Empty(t, w.ran)
	}

	// Known keys of Claude Code's shell that the tool does not have.
	w = newWorld(t, settings("PreToolUse", "Bash", handler(sh(specific("PreToolUse",
		`"updatedInput":{"command":"pwd","description":"where","timeout":1500,"run_in_background":false}`), "", 0))), claudehooks.Options{})
	w.run("ls")
	assert.Equal(t, []string{"pwd"}, w.ran)
}

// deny > defer > ask > allow, all contexts and messages arrive, and the same handler runs once.
func TestSeveralHandlers(t *testing.T) {
	say := func(members string) string { return handler(sh(specific("PreToolUse", members), "", 0)) }
	deny, ask := `"permissionDecision":"deny","permissionDecisionReason":"NO"`, `"permissionDecision":"ask","permissionDecisionReason":"SURE?"`
	allow, put := `"permissionDecision":"allow"`, `"permissionDecision":"defer"`
	for _, x := range []struct {
		list []string
		want string
	}{
		{[]string{allow, deny, ask}, "NO"}, {[]string{deny, put}, "NO"}, {[]string{put, ask}, "run stopped"}, {[]string{allow, ask}, "SURE?"}, {[]string{allow}, ""},
		{[]string{ask + `,"updatedInput":{"command":"pwd"}`}, "SURE?"},
	} {
		var list []string
		for i, members := range x.list {
			list = append(list, say(fmt.Sprintf(`%s,"additionalContext":"context %d"`, members, i)))
		}
		w := newWorld(t, settings("PreToolUse", "", list...), claudehooks.Options{})
		s := w.run("ls")
		if x.want == "" {
			assert.Len(t, w.ran, 1)
		} else {
			assert.Empty(t, w.ran, x.list)
			assert.Contains(t, answer(s), x.want, x.list)
		}
	}
	w := newWorld(t, settings("PreToolUse", "", handler("echo x >> ran"), handler("echo x >> ran"), handler("echo x >> ran; sleep 0")), claudehooks.Options{})
	w.run("ls")
	assert.Equal(t, "x\nx\n", w.logged("ran"))

	w = newWorld(t, settings("PreToolUse", "", handler(sh(specific("PreToolUse", deny+`,"additionalContext":"A"`), "", 0)),
		handler(sh(`{"systemMessage":"M1"}`, "", 0)), handler(sh(specific("PreToolUse", `"additionalContext":"B"`), "", 0))), claudehooks.Options{})
	s := w.run("ls")
	assert.Contains(t, text(s), "A\n\nB")
	assert.Contains(t, w.noted(), "M1")
}

// A person is asked after a rewrite, too, and PermissionRequest answers for the person.
func TestAskAndPermissionRequest(t *testing.T) {
	var asked []string
	approver := capability.UseApproval(agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
		asked = append(asked, p.Call.Arguments)
		return agent.Approval{Verdict: agent.Approve}, nil
	}))
	run := func(text string) (*world, agent.State) {
		w := newWorld(t, text, claudehooks.Options{})
		a, _ := w.agent([]capability.Capability{approver}, agenttest.Call("bash", `{"command":"ls"}`), agenttest.Say("done"))
		asked = nil
		s, _ := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		return w, s
	}
	ask := `"PreToolUse":[{"hooks":[` + handler(sh(specific("PreToolUse", `"permissionDecision":"ask","updatedInput":{"command":"pwd"}`), "", 0)) + `]}]`
	w, _ := run(`{"hooks":{` + ask + `,"Notification":[{"matcher":"permission_prompt","hooks":[` + handler("python3 log.py") + `]}]}}`)
	assert.Equal(t, []string{"pwd"}, w.ran)
	assert.Equal(t, []string{`{"command":"pwd"}`}, asked)
	assert.Contains(t, w.logged("log.jsonl"), "permission_prompt")

	for answer, want := range map[string][]string{
		`"decision":{"behavior":"allow"}`:                                   {"ls"},
		`"decision":{"behavior":"allow","updatedInput":{"command":"date"}}`: {"date"},
		`"decision":{"behavior":"deny","message":"no"}`:                     nil,
		`"decision":{"behavior":"deny","message":"no","interrupt":true}`:    nil,
	} {
		ask := strings.Replace(ask, `,\"updatedInput\":{\"command\":\"pwd\"}`, "", 1)
		w, s := run(`{"hooks":{` + ask + `,"PermissionRequest":[{"matcher":"Bash","hooks":[` + handler(sh(specific("PermissionRequest", answer), "", 0)) + `]}]}}`)
		assert.Equal(t, want, w.ran, "%s: %s", answer, text(s))
		if want == nil {
			assert.Empty(t, asked, answer)
		}
		if strings.Contains(answer, "interrupt") {
			assert.Equal(t, agent.StatusInterrupted, s.Status())
		}
	}
	// Exit code 2 is ignored there, and permissionDecision does nothing; a failure denies.
	for command, isRun := range map[string]bool{sh("", "no", 2): true, sh(specific("PermissionRequest", `"permissionDecision":"deny"`), "", 0): true, "exit 1": false} {
		w, _ := run(`{"hooks":{` + ask + `,"PermissionRequest":[{"hooks":[` + handler(command) + `]}]}}`)
		assert.Equal(t, isRun, len(w.ran) == 1, command)
	}
}

// At the time limit all processes end, also one that holds the output open.
func TestTimeout(t *testing.T) {
	w := newWorld(t, settings("PreToolUse", "", handler("sleep 300 & echo $! > pid; sleep 300", `,"timeout":0.3`)), claudehooks.Options{})
	assert.Contains(t, answer(w.run("ls")), "timed out")
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(w.logged("pid")) + "/stat")
	assert.True(t, err != nil || strings.Contains(string(stat), ") Z "), "the process is still there: %s", stat)

	// A process that a hook leaves behind is not waited for, and goes on.
	w = newWorld(t, settings("PreToolUse", "", handler("(while [ ! -e go ]; do sleep 0.05; done; echo later > later) & exit 0", `,"timeout":60`)), claudehooks.Options{})
	w.run("ls")
	assert.Len(t, w.ran, 1)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600))
	assert.Eventually(t, func() bool { return w.logged("later") != "" }, time.Minute, 20*time.Millisecond)
}

// Handlers in the background decide nothing; what they say arrives at the next turn.
func TestBackground(t *testing.T) {
	later := `{"systemMessage":"SAID",` + strings.TrimPrefix(specific("PreToolUse", `"additionalContext":"LATER","permissionDecision":"deny"`), "{")
	for name, h := range map[string]string{
		"async": handler(sh(later, "", 0), `,"async":true`), "on the first line": handler(`echo '{"async":true}'; ` + sh(later, "", 0)),
	} {
		w := newWorld(t, settings("PreToolUse", "", h), claudehooks.Options{})
		a, _ := w.agent(nil, agenttest.Call("bash", `{"command":"ls"}`), agenttest.Play(func(context.Context, agent.State) (agent.Step, error) {
			require.Eventually(t, func() bool { return strings.Contains(w.noted(), "SAID") }, time.Minute, 10*time.Millisecond)
			return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "2", Name: "bash", Arguments: `{"command":"pwd"}`})}, nil
		}), agenttest.Say("done"))
		s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, []string{"ls", "pwd"}, w.ran, name)
		assert.Contains(t, text(s), "LATER", name)
	}
	w := newWorld(t, settings("PreToolUse", "", handler("echo WAKE >&2; exit 2", `,"asyncRewake":true`)), claudehooks.Options{})
	a, _ := w.agent(nil, agenttest.Call("bash", `{"command":"ls"}`), agenttest.Play(func(context.Context, agent.State) (agent.Step, error) {
		require.NoError(t, w.set.Close(t.Context())) // waits for it
		return agent.Step{Message: agent.Assistant("done")}, nil
	}), agenttest.Say("woken"))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, "woken", s.Answer())
	assert.Contains(t, text(s), "WAKE")
}

// Transcripts are readable by scripts and by our reader of Claude Code's sessions.
func TestTranscript(t *testing.T) {
	w := newWorld(t, settings("Stop", "", handler("cp \"$(python3 -c 'import json,sys; print(json.load(sys.stdin)[\"transcript_path\"])')\" copy.jsonl"), handler("python3 transcript.py")), claudehooks.Options{})
	s := w.run("ls")
	assert.Contains(t, text(s), "seen: text tool_use tool_result text")
	reader, err := recorded.Open(filepath.Join(w.dir, "copy.jsonl"))
	require.NoError(t, err)
	defer reader.Close()
	var n int
	for r, err := range reader.Runs() {
		require.NoError(t, err)
		n++
		assert.Len(t, r.Messages, 5)
	}
	assert.Equal(t, 1, n)
}

// SessionStart exports variables to later shell calls, and begins and ends with the session.
func TestSession(t *testing.T) {
	w := newWorld(t, `{"hooks":{"SessionStart":[{"matcher":"startup","hooks":[`+handler(`python3 log.py; echo "export GREETING='hi there'" >> "$CLAUDE_ENV_FILE"`)+`]}],
		"SessionEnd":[{"hooks":[`+handler("python3 log.py", `,"timeout":60`)+`]}]}}`, claudehooks.Options{})
	tool, err := shell.Tool(shell.Config{Dir: w.dir, Name: "sh"})
	require.NoError(t, err)
	a, _ := w.agent([]capability.Capability{capability.UseTools(tool)}, agenttest.Call("sh", `{"command":"echo \"$GREETING\""}`), agenttest.Say("done"))
	conversation := a.Session(agent.NewState())
	s, err := conversation.Run(t.Context(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Contains(t, answer(s), "hi there")
	require.NoError(t, conversation.Close(t.Context()))
	lines := strings.Split(strings.TrimSpace(w.logged("log.jsonl")), "\n")
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0], `"source": "startup"`)
	assert.Contains(t, lines[1], `"reason": "other"`)
	assert.NotContains(t, lines[1], "permission_mode")
}

// A sub-agent's start and end are events, and its calls pass the hooks.
func TestSubagents(t *testing.T) {
	w := newWorld(t, `{"hooks":{"SubagentStart":[{"matcher":"helper","hooks":[`+handler(sh(specific("SubagentStart", `"additionalContext":"BE BRIEF"`), "", 0))+`]}],
		"SubagentStop":[{"hooks":[`+handler("python3 log.py; echo 'check it' >&2; exit 2")+`]}],
		"PreToolUse":[{"matcher":"Bash","hooks":[`+handler("python3 log.py")+`]}]}}`, claudehooks.Options{})
	var task agent.State
	helper := builder.New().WithName("helper").WithDriver(agenttest.Script(agenttest.Call("bash", `{"command":"find"}`),
		agenttest.Play(func(_ context.Context, s agent.State) (agent.Step, error) {
			task = s
			return agent.Step{Message: agent.Assistant("found")}, nil
		}))).With(capability.UseTools(w.bash()))
	a, _ := w.agent([]capability.Capability{capability.UseSubagents{Agents: []capability.Subagent{{Agent: helper}}}},
		agenttest.Call("task", `{"agent":"helper","instruction":"look"}`), agenttest.Say("done"))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Contains(t, answer(s), "found\n\n")
	assert.Contains(t, answer(s), "check it")
	assert.Contains(t, text(task), "BE BRIEF")
	assert.Contains(t, w.logged("log.jsonl"), `"agent_type": "helper"`)
	assert.Contains(t, w.logged("log.jsonl"), `"hook_event_name": "SubagentStop"`)
}

// Web services answer like commands.
func TestHTTP(t *testing.T) {
	t.Setenv("TOKEN_A", "secret")
	t.Setenv("TOKEN_B", "hidden")
	deny := specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"because"`)
	for _, x := range []struct {
		name           string
		status         int
		body           string
		closed, compat string
	}{
		{"empty", 200, "", runs, runs}, {"an object", 200, deny, "because", "because"}, {"text", 200, "deny", fail, runs}, {"an array", 200, "[]", fail, runs},
		{"an error", 500, deny, fail, runs}, {"another place", 302, "", fail, runs}, {"created", 201, deny, "because", "because"}, {"broken", 200, "{x}", fail, runs},
	} {
		for _, isCompat := range []bool{false, true} {
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
				assert.Equal(t, "Bearer secret//", r.Header.Get("Authorization"))
				var in map[string]any
				assert.NoError(t, json.NewDecoder(r.Body).Decode(&in))
				assert.Equal(t, "Bash", in["tool_name"])
				rw.WriteHeader(x.status)
				_, _ = rw.Write([]byte(x.body))
			}))
			w := newWorld(t, settings("PreToolUse", "", fmt.Sprintf(
				`{"type":"http","url":%q,"headers":{"Authorization":"Bearer $TOKEN_A/${TOKEN_B}/$TOKEN_C"},"allowedEnvVars":["TOKEN_A"]}`, server.URL+"/hook")),
				claudehooks.Options{Compat: isCompat})
			s := w.run("ls")
			server.Close()
			want := x.closed
			if isCompat {
				want = x.compat
			}
			if want == runs {
				assert.Len(t, w.ran, 1, x.name)
			} else {
				assert.Contains(t, answer(s), want, x.name)
			}
		}
	}
	// A connection that is refused, and a service that does not answer.
	ready := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ready }))
	defer server.Close()
	defer close(ready)
	for url, want := range map[string]string{"http://127.0.0.1:1/": fail, server.URL: "timed out"} {
		w := newWorld(t, settings("PreToolUse", "", fmt.Sprintf(`{"type":"http","url":%q,"timeout":0.3}`, url)), claudehooks.Options{})
		assert.Contains(t, answer(w.run("ls")), want)
	}
	w := newWorld(t, `{"allowedHttpHookUrls":["https://hooks.example.com/*"],`+strings.TrimPrefix(
		settings("PreToolUse", "", fmt.Sprintf(`{"type":"http","url":%q}`, server.URL)), "{"), claudehooks.Options{})
	assert.Contains(t, answer(w.run("ls")), "allowedHttpHookUrls")
}

// A model judges prompt handlers, and tools answer mcp_tool handlers.
func TestModelsAndTools(t *testing.T) {
	for verdict, isRun := range map[string]bool{`{"verdict":"allow","reason":"fine"}`: true, `{"verdict":"deny","reason":"not fine"}`: false} {
		w := newWorld(t, settings("PreToolUse", "", `{"type":"prompt","prompt":"Only reading. $ARGUMENTS"}`), claudehooks.Options{})
		a, _ := w.agent(nil, agenttest.Play(func(_ context.Context, s agent.State) (agent.Step, error) {
			if s.Request().Output != nil { // the judge
				return agent.Step{Message: agent.Assistant(verdict)}, nil
			}
			return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "1", Name: "bash", Arguments: `{"command":"ls"}`})}, nil
		}), agenttest.Say("done"))
		s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, isRun, len(w.ran) == 1, text(s))
	}
	var got string
	guard := toolexec.Raw(agent.ToolSpec{Name: "mcp__guard__check", Parameters: `{"type":"object"}`}, func(_ context.Context, c toolexec.Call) (string, error) {
		got = c.Arguments
		return specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"guarded"`), nil
	})
	w := newWorld(t, settings("PreToolUse", "Bash", `{"type":"mcp_tool","server":"guard","tool":"check","input":{"line":"run ${tool_input.command}","x":"${none.y}"}}`), claudehooks.Options{})
	a, _ := w.agent([]capability.Capability{capability.UseTools(guard)}, agenttest.Call("bash", `{"command":"ls"}`), agenttest.Say("done"))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Contains(t, answer(s), "guarded")
	assert.JSONEq(t, `{"line":"run ls","x":""}`, got)
}
