package claudehooks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action/claudehooks"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// sh returns a shell script that prints and exits.
func sh(stdout, stderr string, code int) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	return fmt.Sprintf("cat >/dev/null; printf %%s %s; printf %%s %s >&2; exit %d", quote(stdout), quote(stderr), code)
}

func specific(event, members string) string {
	return fmt.Sprintf(`{"hookSpecificOutput":{"hookEventName":%q,%s}}`, event, members)
}

const (
	runs = "" // the call runs
	fail = "hook error"
)

// What standard output and the exit code mean at PreToolUse: both modes, and onFailure.
func TestOutcomes(t *testing.T) {
	allow := specific("PreToolUse", `"permissionDecision":"allow"`)
	for _, x := range []struct {
		name           string
		stdout, stderr string
		code           int
		// What the model reads as an answer contains these; empty if the call runs. closed is our default.
		closed, compat string
	}{
		{"nothing", "", "", 0, runs, runs},
		{"standard error is ignored", "", "hi", 0, runs, runs},
		{"text", "hello", "", 0, runs, runs},
		{"an array is text", `[1]`, "", 0, runs, runs},
		{"a text in quotes is text", `"deny"`, "", 0, runs, runs},
		{"an open brace is text", `{"decision":"block"`, "", 0, runs, runs},
		{"a log in JSON is text", "{\"a\":1}\n{\"b\":2}", "", 0, runs, runs},
		{"a log with an answer", "{\"a\":1}\n{\"decision\":\"block\"}", "", 0, fail, runs},
		{"broken JSON", `{"decision": block}`, "", 0, fail, runs},
		{"empty object", `{}`, "", 0, runs, runs},
		{"unknown keys", `{"permission":"deny","result":"block"}`, "", 0, runs, runs},
		{"permissionDecision at the top", `{"permissionDecision":"deny"}`, "", 0, runs, runs},
		{"a wrong type", `{"continue":"no"}`, "", 0, fail, runs},
		{"null", `{"reason":null}`, "", 0, fail, runs},
		{"an unknown decision", `{"decision":"deny"}`, "", 0, fail, runs},
		{"an unknown permission", specific("PreToolUse", `"permissionDecision":"no"`), "", 0, fail, runs},
		{"another event's output", specific("PostToolUse", `"permissionDecision":"deny"`), "", 0, fail, runs},
		{"no event name", `{"hookSpecificOutput":{"permissionDecision":"deny"}}`, "", 0, fail, runs},
		{"deny", specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"because"`), "", 0, "because", "because"},
		{"deny without a reason", specific("PreToolUse", `"permissionDecision":"deny"`), "", 0, "denied", "denied"},
		{"deprecated block", `{"decision":"block","reason":"old"}`, "", 0, "old", "old"},
		{"deprecated approve", `{"decision":"approve"}`, "", 0, runs, runs},
		{"white space around", "\n\t " + specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"because"`) + " \n", "", 0, "because", "because"},
		{"allow", allow, "", 0, runs, runs},

		{"exit 2", "", "no way", 2, "no way", "no way"},
		{"exit 2 with text", "text", "no way", 2, "no way", "no way"},
		{"exit 2 with an allow", allow, "no way", 2, "no way", "no way"},
		{"exit 2 with a deny", specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"because"`), "no way", 2, "because", "because"},
		{"exit 2 with broken JSON", "{x}", "no way", 2, "no way", "no way"},
		{"exit 2 with JSON on standard error", "", `{"decision":"block"}`, 2, `{"decision":"block"}`, `{"decision":"block"}`},

		{"exit 1", "", "oops", 1, fail, runs},
		{"exit 1 with an allow", allow, "oops", 1, fail, runs},
		{"exit 1 with a deny", specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"because"`), "oops", 1, "because", "because"},
		{"exit 1 with text", "text", "oops", 1, fail, runs},
		{"exit 127", "", "", 127, fail, runs},
	} {
		t.Run(x.name, func(t *testing.T) {
			for mode, want := range map[string]string{"closed": x.closed, "compat": x.compat, "block": x.closed, "continue": x.compat} {
				more, isCompat := "", mode == "compat"
				switch mode {
				case "block":
					more, isCompat = `,"onFailure":"block"`, true
				case "continue":
					more = `,"onFailure":"continue"`
				}
				w := newWorld(t, settings("PreToolUse", "Bash", handler(sh(x.stdout, x.stderr, x.code), more)), claudehooks.Options{Compat: isCompat})
				s := w.run("ls")
				if want == runs {
					assert.Equal(t, []string{"ls"}, w.ran, mode)
					continue
				}
				assert.Empty(t, w.ran, mode)
				assert.Contains(t, answer(s), want, mode)
			}
		})
	}
}

// What cannot start fails.
func TestWhatDoesNotStart(t *testing.T) {
	for _, command := range []string{
		`{"type":"command","command":"/no/such/program","args":[]}`, handler("/no/such/program"), handler("$CLAUDE_PROJECT_DIR/settings.json"),
		`{"type":"command","command":"sleep 60","timeout":0.2}`,
	} {
		w := newWorld(t, settings("PreToolUse", "", command), claudehooks.Options{})
		assert.Contains(t, answer(w.run("ls")), fail, command)
		assert.Empty(t, w.ran)
		w = newWorld(t, settings("PreToolUse", "", command), claudehooks.Options{Compat: true})
		w.run("ls")
		assert.NotEmpty(t, w.ran, command)
		assert.Contains(t, w.noted(), fail)
	}
}

// What exit code 2, failures and text do, event by event.
func TestEvents(t *testing.T) {
	for _, x := range []struct {
		event string
		// shown is what the model is shown after exit code 2 with "STDERR", noted what the user is told. ended is the run's status.
		shown, noted string
		ended        agent.Status
		// text is whether plain text reaches the model, context whether additionalContext does.
		text, context bool
	}{
		{event: "SessionStart", noted: "STDERR", ended: agent.StatusDone, text: true, context: true},
		{event: "SessionEnd", noted: "STDERR", ended: agent.StatusDone},
		{event: "UserPromptSubmit", ended: agent.StatusDenied, text: true, context: true},
		{event: "PreToolUse", shown: "STDERR", ended: agent.StatusDone, context: true},
		{event: "PostToolUse", shown: "STDERR", ended: agent.StatusDone, context: true},
		{event: "PostToolBatch", ended: agent.StatusStopped, context: true},
		{event: "Stop", shown: "STDERR", ended: agent.StatusDone, context: true},
	} {
		t.Run(x.event, func(t *testing.T) {
			w := newWorld(t, settings(x.event, "", handler(sh("", "STDERR", 2))), claudehooks.Options{})
			s := w.run("ls")
			assert.Equal(t, x.ended, s.Status())
			if x.shown != "" {
				assert.Contains(t, text(s), x.shown)
			} else {
				assert.NotContains(t, text(s), "STDERR")
			}
			assert.Contains(t, w.noted(), x.noted)

			w = newWorld(t, settings(x.event, "", handler(sh("PLAIN", "", 0))), claudehooks.Options{})
			assert.Equal(t, x.text, strings.Contains(text(w.run("ls")), "PLAIN"))

			w = newWorld(t, settings(x.event, "", handler(sh(specific(x.event, `"additionalContext":"CONTEXT"`), "", 0))), claudehooks.Options{})
			assert.Equal(t, x.context, strings.Contains(text(w.run("ls")), "CONTEXT"))

			w = newWorld(t, settings(x.event, "", handler(sh(`{"systemMessage":"MESSAGE"}`, "", 0))), claudehooks.Options{})
			w.run("ls")
			assert.Equal(t, x.event != "SessionEnd", strings.Contains(w.noted(), "MESSAGE"))
		})
	}
}

// continue: false ends the run and beats any other field.
func TestContinue(t *testing.T) {
	for event, status := range map[string]agent.Status{
		"UserPromptSubmit": agent.StatusDenied, "PreToolUse": agent.StatusStopped, "PostToolUse": agent.StatusStopped,
		"PostToolBatch": agent.StatusStopped, "Stop": agent.StatusStopped, "SessionStart": agent.StatusDone, "SessionEnd": agent.StatusDone,
	} {
		w := newWorld(t, settings(event, "", handler(sh(`{"continue":false,"stopReason":"enough","decision":"approve"}`, "", 0))), claudehooks.Options{})
		s := w.run("ls")
		assert.Equal(t, status, s.Status(), event)
		if status == agent.StatusStopped {
			assert.Contains(t, s.StopSignal().Message, "enough", event)
		}
	}
}

// A failed call is PostToolUseFailure, and a block there is feedback beside the error.
func TestFailedCalls(t *testing.T) {
	w := newWorld(t, settings("PostToolUseFailure", "Bash", handler("python3 log.py; echo '{\"decision\":\"block\",\"reason\":\"try make\"}'")), claudehooks.Options{})
	w.result = "fail"
	s := w.run("ls")
	assert.Contains(t, text(s), "try make")
	assert.Equal(t, "fail", answer(s))
	assert.Contains(t, w.logged("log.jsonl"), `"error": "fail"`)

	w = newWorld(t, settings("PostToolUse", "", handler("python3 log.py")), claudehooks.Options{})
	w.result = "fail"
	w.run("ls")
	assert.Empty(t, w.logged("log.jsonl"))
}

// Stop continues a run, at most eight times, and tells that it has done so.
func TestStopCap(t *testing.T) {
	w := newWorld(t, settings("Stop", "", handler("python3 log.py; echo again >&2; exit 2")), claudehooks.Options{})
	turns := []agenttest.Turn{}
	for range 12 {
		turns = append(turns, agenttest.Say("done"))
	}
	a, _ := w.agent(nil, turns...)
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, 9, s.StepCount())
	lines := strings.Split(strings.TrimSpace(w.logged("log.jsonl")), "\n")
	require.Len(t, lines, 9)
	assert.Contains(t, lines[0], `"stop_hook_active": false`)
	assert.Contains(t, lines[1], `"stop_hook_active": true`)
	assert.Contains(t, lines[1], `"last_assistant_message": "done"`)

	// A missing script does not continue the run, though its interpreter exits with 2.
	w = newWorld(t, settings("Stop", "", handler("python3 missing.py")), claudehooks.Options{})
	assert.Equal(t, agent.StatusDone, w.run("ls").Status())
	assert.Contains(t, w.noted(), "missing.py")
}

// Results are replaced in the tool's form only.
func TestUpdatedOutput(t *testing.T) {
	for output, want := range map[string]string{
		`{"stdout":"clean","stderr":"","interrupted":false,"isImage":false}`: "clean", `"clean"`: "exit code 0\nno output", `{"x":1}`: "exit code 0\nno output",
	} {
		w := newWorld(t, settings("PostToolUse", "Bash", handler(sh(specific("PostToolUse", `"updatedToolOutput":`+output), "", 0))), claudehooks.Options{})
		assert.Equal(t, want, answer(w.run("ls")), output)
	}
}
