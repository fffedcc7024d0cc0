package hostgate_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/hostgate"
)

var update = flag.Bool("update", false, "write the golden files")

// recorded is an event that a host sent, as testdata has it.
type recorded struct {
	Name  string          `json:"name"`
	Stdin json.RawMessage `json:"stdin"`
}

func readRecorded(tb testing.TB, h hostgate.Host) (list []recorded) {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", string(h)+".jsonl"))
	require.NoError(tb, err)
	for line := range bytes.Lines(text) {
		var r recorded
		require.NoError(tb, json.Unmarshal(line, &r))
		list = append(list, r)
	}
	return list
}

var options = hostgate.Options{Servers: []string{"my-srv", "srv"}}

// answers lists answers to an event.
func answers(e *hostgate.Event) []hostgate.Answer {
	list := []hostgate.Answer{
		{},
		{Context: "note"},
		{Decision: hostgate.Deny, Reason: "no <b>"},
		{Decision: hostgate.Deny},
		{Decision: hostgate.Ask, Reason: "sure?"},
	}
	if len(e.Calls) > 0 && e.Point == hooks.PreToolUse {
		changed := changedArguments(e)
		list = append(list,
			hostgate.Answer{Arguments: changed},
			hostgate.Answer{Arguments: changed, Context: "note"},
			hostgate.Answer{Decision: hostgate.Deny, Reason: "no", Arguments: changed},
			hostgate.Answer{Decision: hostgate.Ask, Reason: "sure?", Arguments: changed},
		)
	}
	if e.IsResult() {
		list = append(list, hostgate.Answer{Texts: []string{"[hidden]"}}, hostgate.Answer{Texts: make([]string, len(e.Texts)), Context: "note"})
	}
	return list
}

// changedArguments returns the call's arguments with a text changed.
func changedArguments(e *hostgate.Event) string {
	for _, key := range []string{"text", "command", "old_text", "path"} {
		if old := `"` + key + `":"`; strings.Contains(e.Calls[0].Arguments, old) {
			return strings.Replace(e.Calls[0].Arguments, old, old+"CHANGED ", 1)
		}
	}
	return e.Calls[0].Arguments
}

// Every recorded event, as it is decoded, and every answer to it in the host's form.
func TestEventsAndAnswers(t *testing.T) {
	for _, h := range hostgate.Hosts {
		t.Run(string(h), func(t *testing.T) {
			var b strings.Builder
			for _, r := range readRecorded(t, h) {
				e, err := hostgate.Decode(h, r.Stdin, options)
				require.NoError(t, err, r.Name)
				fmt.Fprintf(&b, "# %s\n%s %s session=%s agent=%s dir=%s transcript=%s id=%s tool=%s", r.Name, e.Name, e.Point, e.Session, e.Agent, e.Dir, e.Transcript, e.CallID, e.HostTool)
				fmt.Fprintf(&b, " prompt=%q texts=%q failed=%t unclear=%q\n", e.Prompt, e.Texts, e.Failed, e.Unclear)
				for _, c := range e.Calls {
					fmt.Fprintf(&b, "  %s %s\n", c.Tool, c.Arguments)
				}
				for _, a := range answers(e) {
					out := e.Output(a)
					fmt.Fprintf(&b, "%s\n  -> %s\n", describe(a), strings.TrimSuffix(string(out), "\n"))
					checkForm(t, e, out)
				}
			}
			golden := filepath.Join("testdata", string(h)+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), b.String())
		})
	}
}

func describe(a hostgate.Answer) string {
	var parts []string
	add := func(format string, v any) { parts = append(parts, fmt.Sprintf(format, v)) }
	if a.Decision != "" {
		add("%s", a.Decision)
	}
	if a.Reason != "" {
		add("because %q", a.Reason)
	}
	if a.Arguments != "" {
		add("%s", "rewrite")
	}
	if a.Texts != nil {
		add("replace %q", a.Texts)
	}
	if a.Context != "" {
		add("context %q", a.Context)
	}
	return strings.Join(append(parts, ":"), " ")
}

// checkForm checks what holds for all answers: one line with one JSON object, or nothing, and in Codex the closed schema.
func checkForm(t *testing.T, e *hostgate.Event, out hostgate.Output) {
	t.Helper()
	if len(out) == 0 {
		assert.NotContains(t, []hostgate.Host{hostgate.Cursor, hostgate.OpenCode}, e.Host, "these hosts need an answer always")
		return
	}
	assert.Equal(t, 1, bytes.Count(out, []byte("\n")))
	assert.Equal(t, byte('{'), out[0])
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
	require.NoError(t, err)
	if e.Host == hostgate.Codex {
		compiler := jsonschema.NewCompiler()
		schema, err := compiler.Compile("testdata/codex/" + e.Name + ".json")
		require.NoError(t, err)
		assert.NoError(t, schema.Validate(v), "%s: %s", e.Name, out)
	}
}

// One call, as each host sends it, is one call.
func TestHostsSendTheSameCall(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "calls.json"))
	require.NoError(t, err)
	var vectors []struct {
		Tool      string
		Arguments json.RawMessage
		Hosts     map[hostgate.Host][2]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(text, &vectors))
	servers := hostgate.Options{Servers: []string{"my-srv"}}
	for _, vector := range vectors {
		for h, sent := range vector.Hosts {
			for _, e := range eventsOf(t, h, sent[0], sent[1], servers) {
				if assert.Len(t, e.Calls, 1, "%s: %s", h, sent) {
					assert.Equal(t, vector.Tool, e.Calls[0].Tool, "%s", h)
					assert.Equal(t, digits(t, vector.Arguments), digits(t, []byte(e.Calls[0].Arguments)), "%s", h)
					assert.Empty(t, e.Unclear)
				}
			}
		}
	}
}

func digits(t *testing.T, raw []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

// eventsOf returns the host's events before and after a call.
func eventsOf(t *testing.T, h hostgate.Host, tool, input json.RawMessage, o hostgate.Options) (events []*hostgate.Event) {
	t.Helper()
	forms := map[hostgate.Host][]string{
		hostgate.ClaudeCode: {`{"hook_event_name":"PreToolUse","tool_name":%s,"tool_input":%s}`, `{"hook_event_name":"PostToolUse","tool_name":%s,"tool_input":%s}`},
		hostgate.Codex:      {`{"hook_event_name":"PreToolUse","tool_name":%s,"tool_input":%s}`, `{"hook_event_name":"PermissionRequest","tool_name":%s,"tool_input":%s}`},
		hostgate.GeminiCLI:  {`{"hook_event_name":"BeforeTool","tool_name":%s,"tool_input":%s}`, `{"hook_event_name":"AfterTool","tool_name":%s,"tool_input":%s}`},
		hostgate.Copilot:    {`{"toolName":%s,"toolArgs":%s}`, `{"hook_event_name":"PreToolUse","tool_name":%s,"tool_input":%s}`, `{"hookName":"permissionRequest","toolName":%s,"toolInput":%s}`},
		hostgate.Cursor:     {`{"hook_event_name":"preToolUse","tool_name":%s,"tool_input":%s}`},
		hostgate.OpenCode:   {`{"hook":"tool.execute.before","input":{"tool":%s},"output":{"args":%s}}`, `{"hook":"tool.execute.after","input":{"tool":%s,"args":%s},"output":{}}`},
	}
	for _, form := range forms[h] {
		e, err := hostgate.Decode(h, fmt.Appendf(nil, form, tool, input), o)
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

// What cannot be judged is not passed on as if it could.
func TestUnclearCalls(t *testing.T) {
	line := func(command string) string {
		raw, err := json.Marshal(map[string]string{"command": command})
		require.NoError(t, err)
		return string(raw)
	}
	for _, tc := range []struct {
		host        hostgate.Host
		tool, input string
		unclear     string
	}{
		{hostgate.Codex, "Bash", line("ls; cat a | grep b"), ""},
		{hostgate.Codex, "Bash", line("bash -c 'ls'"), ""},
		{hostgate.Codex, "Bash", line("python3 -m pytest; python3 x.py; node -e 1; bash script.sh"), ""},
		{hostgate.Codex, "Bash", line("python3 - <<'E'\nprint(1)\nE"), ""},
		{hostgate.Codex, "Bash", line("grep -rn apply_patch ."), ""},
		{hostgate.Codex, "Bash", line("bash"), "no hook sees"},
		{hostgate.Codex, "Bash", line("env X=1 bash -i"), "no hook sees"},
		{hostgate.Codex, "Bash", line("sudo python3 -i"), "no hook sees"},
		{hostgate.Codex, "Bash", line("vim a.go"), "no hook sees"},
		{hostgate.Codex, "Bash", line("apply_patch \"$(cat p)\""), "does not show"},
		{hostgate.Codex, "Bash", line("cd x && applypatch < p.patch"), "does not show"},
		{hostgate.Codex, "apply_patch", line("no patch"), "which files"},
		{hostgate.Codex, "shell", `{"command":["bash","-lc","python"]}`, "no hook sees"},
		{hostgate.Codex, "shell", `{"command":[1]}`, "neither a line"},
		{hostgate.Codex, "write_stdin", `{"session_id":1,"chars":"rm -r x\n"}`, ""},
		{hostgate.Codex, "write_stdin", `{"session_id":1,"chars":"rm -"}`, "whole lines"},
		{hostgate.Copilot, "write_bash", `{"input":"ls{enter}"}`, ""},
		{hostgate.Copilot, "write_bash", `{"input":"{up}{enter}"}`, "no text"},
		{hostgate.ClaudeCode, "Read", `{"file_path":"/etc/passwd","path":"ok"}`, "twice"},
		{hostgate.ClaudeCode, "Bash", `"ls"`, "no JSON object"},
		{hostgate.Cursor, "MCP:ping", `"{\"text\":\"hi\"}"`, ""},
	} {
		e := eventsOf(t, tc.host, json.RawMessage(`"`+tc.tool+`"`), json.RawMessage(tc.input), hostgate.Options{})[0]
		if tc.unclear == "" {
			assert.Empty(t, e.Unclear, "%s %s", tc.tool, tc.input)
		} else {
			assert.Contains(t, e.Unclear, tc.unclear, "%s %s", tc.tool, tc.input)
		}
	}
}

// Whatever arrives in place of an event before a call, the answer is a denial in the host's form.
func TestRefusal(t *testing.T) {
	for _, h := range hostgate.Hosts {
		first := readRecorded(t, h)
		for _, stdin := range []string{"", "{", "[]", "null", `{"tool_input":`, "\xff\xfe", `{"hook_event_name":7}`, `{"hook_event_name":"PreToolUse","tool_input":{"a":1,"a":2}}`, string(first[0].Stdin[:len(first[0].Stdin)/2])} {
			out := hostgate.Refusal(h, []byte(stdin), "the gate failed")
			assert.Contains(t, string(out), "the gate failed", "%s %q", h, stdin)
		}
		for _, r := range first {
			e, err := hostgate.Decode(h, r.Stdin, options)
			require.NoError(t, err)
			out := string(hostgate.Refusal(h, r.Stdin, "the gate failed"))
			if e.Point == hooks.PreToolUse || e.Point == hooks.InterventionRequested {
				assert.Contains(t, out, "the gate failed", r.Name)
			}
			if !e.IsTool() {
				assert.NotContains(t, out, "the gate failed", r.Name)
			}
		}
	}
}

// A rewritten call goes back with the host's names, whole, and with all digits.
func TestRewrittenArgumentsAreTheHosts(t *testing.T) {
	e := eventsOf(t, hostgate.ClaudeCode, json.RawMessage(`"Edit"`),
		json.RawMessage(`{"file_path":"a","old_string":"1","new_string":"2","n":12345678901234567890}`), hostgate.Options{})[0]
	out := e.Output(hostgate.Answer{Arguments: `{"path":"b","old_text":"1","new_text":"2","n":12345678901234567890,"more":[1]}`})
	assert.JSONEq(t, `{"hookSpecificOutput":{"hookEventName":"PreToolUse",
		"updatedInput":{"file_path":"b","old_string":"1","new_string":"2","n":12345678901234567890,"more":[1]}}}`, string(out))
	assert.Contains(t, string(out), "12345678901234567890")
}

func FuzzDecode(f *testing.F) {
	for i, h := range hostgate.Hosts {
		for _, r := range readRecorded(f, h) {
			f.Add(i, []byte(r.Stdin))
		}
	}
	f.Fuzz(func(t *testing.T, host int, stdin []byte) {
		h := hostgate.Hosts[uint(host)%uint(len(hostgate.Hosts))]
		assert.True(t, valid(hostgate.Refusal(h, stdin, "no")))
		e, err := hostgate.Decode(h, stdin, options)
		if err != nil {
			return
		}
		for _, a := range answers(e) {
			out := e.Output(a)
			assert.True(t, valid(out), "%s", out)
			if e.Point == hooks.PreToolUse && a.Decision == hostgate.Deny {
				assert.NotEmpty(t, out)
			}
		}
	})
}

func valid(out hostgate.Output) bool { return len(out) == 0 || json.Valid(out) && out[0] == '{' }
