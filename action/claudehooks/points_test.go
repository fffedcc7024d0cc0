package claudehooks_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/action/claudehooks"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// A run that fails is StopFailure, whose output is discarded.
func TestStopFailure(t *testing.T) {
	w := newWorld(t, settings("StopFailure", "server_error|unknown", handler(`python3 log.py; echo '{"systemMessage":"M"}'`)), claudehooks.Options{})
	a, _ := w.agent(nil, agenttest.Fail(errors.New("no service")))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	assert.Error(t, err)
	assert.NotContains(t, text(s), "M")
	assert.Contains(t, w.logged("log.jsonl"), "no service")
	assert.NotContains(t, w.noted(), ": M")
}

// Long context is put in a file, and the model sees its beginning.
func TestLongContext(t *testing.T) {
	w := newWorld(t, settings("UserPromptSubmit", "", handler(`python3 -c "print('x' * 20000)"`)), claudehooks.Options{})
	s := w.run("ls")
	assert.Less(t, len(text(s)), 5000)
	assert.Contains(t, text(s), "20000 characters")
}

// Echoed input, JSON on standard error, and input that nothing reads do nothing.
func TestHarmlessShapes(t *testing.T) {
	for _, command := range []string{"cat", `echo '{"decision":"block"}' >&2`, "true", "# a comment\ntrue\n\n# another\ntrue", `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"x"}}'`} {
		w := newWorld(t, settings("PreToolUse", "", handler(command)), claudehooks.Options{})
		w.run("ls")
		assert.Len(t, w.ran, 1, command)
	}
	// A warning points at the shape, once.
	w := newWorld(t, settings("PreToolUse", "", handler(`echo '{"permission":"deny"}'`)), claudehooks.Options{})
	w.run("ls")
	w.run("ls")
	assert.Len(t, w.notices, 1)
	assert.Contains(t, w.noted(), "hookSpecificOutput.permissionDecision")
}

// disableAllHooks switches everything off.
func TestDisabled(t *testing.T) {
	w := newWorld(t, `{"disableAllHooks":true,`+strings.TrimPrefix(settings("PreToolUse", "", handler("exit 2")), "{"), claudehooks.Options{})
	w.run("ls")
	assert.Len(t, w.ran, 1)
}

// A plugin's hooks know its folder.
func TestPlugin(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	w := newPlugin(t, settings("PreToolUse", "", handler(`echo "$CLAUDE_PLUGIN_ROOT|${CLAUDE_PLUGIN_ROOT}|$(test -d "$CLAUDE_PLUGIN_DATA" && echo data)" > "$CLAUDE_PROJECT_DIR"/out`)))
	w.run("ls")
	root := w.dir + "/plugin"
	assert.Equal(t, root+"|"+root+"|data\n", w.logged("out"))
}
