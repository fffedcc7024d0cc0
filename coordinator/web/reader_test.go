package web_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// In the reader's mode a run is told in sentences, without JSON, and leads back to the details.
func TestReader(t *testing.T) {
	run := wire.RunDetail{Run: wire.Run{RunID: "run_1", AgentName: "tidier", Status: wire.Completed}}
	r := newRoom(t, &stored{run: run, events: told("")})
	r.signIn(secret)
	assert.Contains(t, r.get("/ui/runs/run_1").body, `href="/ui/runs/run_1?read=1"`)
	body := r.get("/ui/runs/run_1?read=1").body
	page := text(body)
	for _, want := range []string{
		"Before the run, the hook “agent checker” changed what the run works with: month from “May” to “June”.",
		"It was told: “Tidy”",
		"The agent said: “I remove it.”",
		"The agent wanted to use bash, with command “rm -rf build”. A rule that is being tried out, the hook “offline”, would have objected, because: no network. " +
			"Stopped, because: it deletes files.",
		"The agent wanted to use bash, with command “ls”. This was changed: command from “ls” to “ls -1”, by the hook “inside”. It happened, and the answer was: a.txt.",
		"The agent wanted to use mail. People were asked, because: it publishes. Ann agreed, because: fine. It happened, and the agent was not shown the answer, because: a key.",
		"The rule “judge” could not decide: no answer.",
		"On the result, the hook “command sh” held the result back, because: it has a name.",
		"The run waits, and no process holds it.",
	} {
		assert.Contains(t, page, want)
	}
	_, what, ok := strings.Cut(page, "What happened")
	assert.True(t, ok)
	assert.NotContains(t, what, "{")
	assert.NotContains(t, what, "PreToolUse")
	assert.Contains(t, body, `href="/ui/runs/run_1"`)
	assert.Contains(t, body, `data-live="/ui/runs/run_1/live?after=27&amp;read=1"`)
}
