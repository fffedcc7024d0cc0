package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/hostgate"
	"github.com/grapnel-go/grapnel/internal/hostgate/engine"
)

// forms are the hosts' events: before a call, after it, and a prompt. The texts are the session, the call's ID, the command, and the
// result or prompt.
var forms = map[hostgate.Host][3]string{
	hostgate.ClaudeCode: {
		`{"hook_event_name":"PreToolUse","session_id":%[1]q,"tool_use_id":%[2]q,"tool_name":"Bash","tool_input":{"command":%[3]q}}`,
		`{"hook_event_name":"PostToolUse","session_id":%[1]q,"tool_use_id":%[2]q,"tool_name":"Bash","tool_input":{"command":%[3]q},"tool_response":{"stdout":%[4]q,"stderr":""}}`,
		`{"hook_event_name":"UserPromptSubmit","session_id":%[1]q,"prompt":%[4]q}`,
	},
	hostgate.Codex: {
		`{"hook_event_name":"PreToolUse","session_id":%[1]q,"tool_use_id":%[2]q,"tool_name":"Bash","tool_input":{"command":%[3]q}}`,
		`{"hook_event_name":"PostToolUse","session_id":%[1]q,"tool_use_id":%[2]q,"tool_name":"Bash","tool_input":{"command":%[3]q},"tool_response":%[4]q}`,
		`{"hook_event_name":"UserPromptSubmit","session_id":%[1]q,"prompt":%[4]q}`,
	},
	hostgate.GeminiCLI: {
		`{"hook_event_name":"BeforeTool","session_id":%[1]q,"tool_name":"run_shell_command","tool_input":{"command":%[3]q}}`,
		`{"hook_event_name":"AfterTool","session_id":%[1]q,"tool_name":"run_shell_command","tool_input":{"command":%[3]q},"tool_response":{"llmContent":%[4]q}}`,
		`{"hook_event_name":"BeforeAgent","session_id":%[1]q,"prompt":%[4]q}`,
	},
	hostgate.Copilot: {
		`{"sessionId":%[1]q,"toolName":"bash","toolArgs":{"command":%[3]q}}`,
		`{"sessionId":%[1]q,"toolName":"bash","toolArgs":{"command":%[3]q},"toolResult":{"resultType":"success","textResultForLlm":%[4]q}}`,
		`{"sessionId":%[1]q,"prompt":%[4]q}`,
	},
	hostgate.Cursor: {
		`{"hook_event_name":"preToolUse","conversation_id":%[1]q,"tool_use_id":%[2]q,"tool_name":"Shell","tool_input":{"command":%[3]q}}`,
		`{"hook_event_name":"postToolUse","conversation_id":%[1]q,"tool_use_id":%[2]q,"tool_name":"Shell","tool_input":{"command":%[3]q},"tool_output":%[4]q}`,
		`{"hook_event_name":"beforeSubmitPrompt","conversation_id":%[1]q,"prompt":%[4]q}`,
	},
	hostgate.OpenCode: {
		`{"hook":"tool.execute.before","input":{"sessionID":%[1]q,"callID":%[2]q,"tool":"bash"},"output":{"args":{"command":%[3]q}}}`,
		`{"hook":"tool.execute.after","input":{"sessionID":%[1]q,"callID":%[2]q,"tool":"bash","args":{"command":%[3]q}},"output":{"output":%[4]q}}`,
		`{"hook":"chat.message","input":{"sessionID":%[1]q},"output":{"parts":[{"type":"text","text":%[4]q}]}}`,
	},
}

func before(h hostgate.Host, id, command string) string {
	return fmt.Sprintf(forms[h][0]+"%.0[4]s", "s1", id, command, "")
}

func after(h hostgate.Host, id, command, result string) string {
	return fmt.Sprintf(forms[h][1], "s1", id, command, result)
}

func prompt(h hostgate.Host, text string) string {
	return fmt.Sprintf(forms[h][2]+"%.0[2]s%.0[3]s", "s1", "", "", text)
}

// gate is a gate in a folder of its own.
type gate struct{ engine.Config }

func newGate(t *testing.T, h hostgate.Host, rules string) gate {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("policy: p\nhooks:\n"+rules), 0o600))
	return gate{engine.Config{Host: h, Policies: []string{file}, State: filepath.Join(dir, "state"), Deadline: time.Minute}}
}

func (g gate) run(t *testing.T, event string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, engine.Run(t.Context(), g.Config, strings.NewReader(event), &out))
	return out.String()
}

const allRules = `
  PreToolUse:
    - {id: no, match: {tool: bash}, when: args.command.contains("deny"), decision: deny, reason: not that}
    - {id: sure, match: {tool: bash}, when: args.command.contains("ask"), decision: ask, reason: is this meant}
    - {id: two, match: {tool: bash}, when: args.command.contains("quorum"), decision: ask, reason: two must agree, approvers: [ann, bob], quorum: 2}
    - {id: instead, match: {tool: bash}, when: args.command.contains("mock"), decision: mock, result: made up}
    - {id: other, match: {tool: bash}, when: args.command == "rewrite", decision: rewrite, set: {command: '"rewritten"'}}
    - {id: note, match: {tool: bash}, when: args.command == "note", decision: add_context, context: be careful}
    - {id: halt, match: {tool: bash}, when: args.command == "stop", decision: stop, reason: that is enough}
  PostToolUse:
    - {id: hide, decision: redact, patterns: ['key-[0-9]+']}
    - {id: forged, when: result.text.contains("withhold"), decision: replace, result: nothing to see}
`

// One policy, as each host is told about it.
func TestDecisionsInAllHosts(t *testing.T) {
	asks := map[hostgate.Host]bool{hostgate.ClaudeCode: true, hostgate.Copilot: true, hostgate.GeminiCLI: true}
	for _, h := range hostgate.Hosts {
		t.Run(string(h), func(t *testing.T) {
			g := newGate(t, h, allRules)
			allowed := map[hostgate.Host]string{hostgate.Cursor: "{\"permission\":\"allow\"}\n", hostgate.OpenCode: "{\"decision\":\"allow\"}\n"}[h]
			assert.Equal(t, allowed, g.run(t, before(h, "1", "ls")))
			denied := g.run(t, before(h, "2", "deny"))
			assert.Contains(t, denied, "not that")
			assert.Contains(t, denied, `"deny"`)
			asked := g.run(t, before(h, "3", "ask"))
			assert.Contains(t, asked, "is this meant (p/sure)")
			if asks[h] {
				assert.Contains(t, asked, `"ask"`)
			} else {
				assert.Contains(t, asked, `"deny"`)
			}
			assert.Contains(t, g.run(t, before(h, "4", "quorum")), `"deny"`, "no person of the host is ann")
			assert.Contains(t, g.run(t, before(h, "5", "mock")), "made up")
			assert.Contains(t, g.run(t, before(h, "6", "rewrite")), `{"command":"rewritten"}`)
			rewritten := g.run(t, after(h, "6", "rewritten", "the result"))
			assert.NotContains(t, rewritten, "the result", "it is not replaced")
			if h != hostgate.OpenCode {
				assert.Contains(t, rewritten, "ran with changed arguments")
			}
			if h == hostgate.ClaudeCode || h == hostgate.Codex {
				assert.Contains(t, g.run(t, before(h, "7", "note")), `"additionalContext":"be careful"`)
			}
			result := g.run(t, after(h, "1", "ls", "with key-123 in it"))
			if h == hostgate.Cursor {
				assert.Contains(t, result, "do not use")
			} else {
				assert.Contains(t, result, "in it")
				assert.NotContains(t, result, "key-123")
			}
			result = g.run(t, after(h, "1", "ls", "a plain result"))
			assert.NotContains(t, result, "plain")
			if h != hostgate.Cursor {
				assert.Contains(t, g.run(t, after(h, "1", "ls", "withhold")), "nothing to see")
			}
			assert.Contains(t, g.run(t, before(h, "8", "stop")), "that is enough")
			assert.Contains(t, g.run(t, before(h, "9", "ls")), "that is enough", "the session has stopped, also for later processes")
		})
	}
}

// Whatever fails, the answer is a denial in the host's form.
func TestFailuresDeny(t *testing.T) {
	for _, h := range hostgate.Hosts {
		t.Run(string(h), func(t *testing.T) {
			event := before(h, "1", "ls")
			denies := func(g gate, stdin io.Reader, cause string) {
				t.Helper()
				var out bytes.Buffer
				require.NoError(t, engine.Run(t.Context(), g.Config, stdin, &out))
				require.True(t, json.Valid(out.Bytes()), "%s", out.String())
				assert.Contains(t, out.String(), `"deny"`)
				assert.Contains(t, out.String(), "grapnel gate: not executed: ")
				assert.Contains(t, out.String(), cause)
			}
			text := func() io.Reader { return strings.NewReader(event) }
			g := newGate(t, h, allRules)

			broken := newGate(t, h, "  PreToolUse: [{id: x, decision: maybe}]")
			denies(broken, text(), "maybe")
			broken = newGate(t, h, "  PostToolUse: [{id: x, decision: maybe}]")
			denies(broken, text(), "maybe")
			withheld := broken.run(t, after(h, "1", "ls", "key-123"))
			if h != hostgate.Cursor {
				assert.Contains(t, withheld, "withheld")
			}
			assert.NotContains(t, withheld, "key-123")
			missing := g
			missing.Policies = []string{filepath.Join(t.TempDir(), "gone.yaml")}
			denies(missing, text(), "gone.yaml")
			missing.Policies = nil
			denies(missing, text(), "--policy")

			for _, stdin := range []string{"", "{", "[1]", "\xff", event[:len(event)/2], event + event} {
				denies(g, strings.NewReader(stdin), "reading the event")
			}
			denies(g, strings.NewReader(event[:len(event)-1]+strings.Repeat(" ", 33<<20)+"}"), "more than")
			denies(g, brokenPipe{}, "the pipe broke")
			denies(g, panicking{}, "panic")

			endless, w := io.Pipe()
			defer w.Close()
			slow := g
			slow.Deadline = time.Millisecond
			denies(slow, endless, "in time")

			full := g
			full.State = filepath.Join(g.Policies[0], "state") // below a file
			denies(full, text(), "opening its state")
			full.State = t.TempDir()
			require.NoError(t, os.Chmod(full.State, 0o755))
			denies(full, text(), "other users")
		})
	}
}

type brokenPipe struct{}

func (brokenPipe) Read([]byte) (int, error) { return 0, fmt.Errorf("the pipe broke") }

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("broken") }

// A ledger that cannot be written, was changed, or belongs to another session is a denial.
func TestLedgerFailuresDeny(t *testing.T) {
	g := newGate(t, hostgate.Codex, allRules)
	require.Empty(t, g.run(t, before(g.Host, "1", "ls")))
	files, err := filepath.Glob(filepath.Join(g.State, "*.lock"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	path := strings.TrimSuffix(files[0], ".lock")
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, bad := range []string{"", "{", string(good) + "A", string(good[:len(good)-1]), strings.Replace(string(good), "\n", "\nA", 1)} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		assert.Contains(t, g.run(t, before(g.Host, "2", "ls")), "grapnel gate: not executed: ")
	}
	require.NoError(t, os.WriteFile(path, good, 0o600))
	require.Empty(t, g.run(t, before(g.Host, "3", "ls")))
	require.NoError(t, os.Mkdir(path+".new", 0o700))
	assert.Contains(t, g.run(t, before(g.Host, "4", "ls")), "writing the session's ledger")
}

const threeCalls = `
  PreToolUse:
    - {id: three, match: {tool: bash}, when: calls("bash") >= 3, decision: deny, reason: three are enough}
`

// Processes of one session that decide at the same time do not lose each other's calls.
func TestProcessesCountTogether(t *testing.T) {
	for _, h := range hostgate.Hosts {
		g := newGate(t, h, threeCalls)
		var wait sync.WaitGroup
		denied := make(chan bool, 10)
		for i := range 10 {
			wait.Go(func() {
				id := fmt.Sprint("call", i)
				out := g.run(t, before(h, id, "ls "+id))
				refused := strings.Contains(out, "three are enough")
				if !refused && strings.Contains(out, `"deny"`) {
					t.Error(out)
				}
				if !refused {
					g.run(t, after(h, id, "ls "+id, "done"))
				}
				denied <- refused
			})
		}
		wait.Wait()
		close(denied)
		n := 0
		for refused := range denied {
			if refused {
				n++
			}
		}
		assert.Equal(t, 7, n, "%s", h)
	}
}

const onlyUsersWord = `
  PreToolUse:
    - {id: word, match: {tool: bash}, when: '!from_user(args.command)', decision: deny, reason: the user did not say so}
`

// The user's words come from the events, and from the transcript of Claude Code.
func TestUsersWords(t *testing.T) {
	for _, h := range hostgate.Hosts {
		g := newGate(t, h, onlyUsersWord)
		assert.Contains(t, g.run(t, before(h, "1", "make-it-so")), "did not say so", "%s", h)
		assert.NotContains(t, g.run(t, prompt(h, "run make-it-so now")), "deny")
		assert.NotContains(t, g.run(t, before(h, "2", "make-it-so")), "deny", "%s", h)
	}
}

func TestTranscriptOfClaudeCode(t *testing.T) {
	g := newGate(t, hostgate.ClaudeCode, onlyUsersWord+`
    - {id: two, match: {tool: bash}, when: 'calls() >= 2', decision: deny, reason: too many calls}
`)
	transcript := filepath.Join(t.TempDir(), "session.jsonl")
	written := ""
	add := func(lines ...string) {
		written += strings.Join(lines, "\n") + "\n"
		require.NoError(t, os.WriteFile(transcript, []byte(written), 0o600))
	}
	event := func(id, command string) string {
		return strings.Replace(before(g.Host, id, command), "{", fmt.Sprintf(`{"transcript_path":%q,`, transcript), 1)
	}
	assert.Contains(t, g.run(t, event("1", "make-it-so")), "did not say so", "there is no transcript yet")
	add(
		`{"type":"user","isMeta":true,"message":{"role":"user","content":"run meta-command"}}`,
		`{"type":"user","isSidechain":true,"message":{"role":"user","content":"run side-command"}}`,
		`{"type":"user","message":{"role":"user","content":"<local-command-stdout>run generated-command</local-command-stdout>"}}`,
		`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"run make-it-so"}]}}`,
		`{"type":"summary","summary":"run summed-command"}`, `not JSON`,
		`{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"bad","name":"Nope","input":{}}]}}`,
		`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"bad","is_error":true,"content":"run answered-command: no such tool"}]}}`,
	)
	for _, command := range []string{"meta", "side", "generated", "summed", "answered"} {
		assert.Contains(t, g.run(t, event(command, command+"-command")), "did not say so")
	}
	written += `{"type":"user","message":{"role":"user","content":"run half-of-it"}}`
	add()
	written = strings.TrimSuffix(written, "\n")
	require.NoError(t, os.WriteFile(transcript, []byte(written), 0o600))
	assert.Contains(t, g.run(t, event("2", "half-of-it")), "did not say so", "the line is not complete")
	add("")
	assert.Contains(t, g.run(t, event("3", "half-of-it")), "too many calls", "seven were denied")
}
