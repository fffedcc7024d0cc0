package coordinator_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator/wire"
)

const validator = `{"name": "validator", "type": "autonomous", "parameters_schema": {"type": "object", "required": ["parameters", "agent_name"]}}`

const report = `{
	"name": "report", "type": "procedural", "command": {"argv": ["cat"]},
	"parameters_schema": {"type": "object", "required": ["month"], "properties": {"month": {"type": "string"}}},
	"hooks": {"on_run_start": {"type": "agent", "agent_name": "validator", "on_error": "block", "timeout_seconds": 60}}
}`

// CO-03: a run without hooks goes to a runner unchanged.
func TestRunWithoutHooks(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "echo", "type": "procedural", "command": {"argv": ["cat"]}}`)
	d := b.work(b.submit("echo", `{"a": 1}`))
	assert.Equal(t, wire.Completed, d.Status)
	assert.JSONEq(t, `{"a": 1}`, string(d.ResultData))
	assert.Empty(t, d.Hooks)
}

// CO-04, CO-05, CO-07, CO-08, CO-09, CO-12: what a hook that starts an agent answers.
func TestStartHookOfAgent(t *testing.T) {
	for name, c := range map[string]struct {
		answer, result, failure string
		blocked                 bool
		events                  []string
	}{
		"continue":      {`{"action": "continue"}`, `{"month": "May"}`, "", false, []string{"hook_start", "hook_complete"}},
		"transform":     {`{"action": "continue", "parameters": {"month": "June"}}`, `{"month": "June"}`, "", false, []string{"hook_start", "hook_complete"}},
		"block":         {`{"action": "block", "block_reason": "no budget"}`, "", "Blocked by on_run_start hook: no budget", true, []string{"hook_start", "hook_blocked"}},
		"no reason":     {`{"action": "block"}`, "", "Blocked by on_run_start hook: No reason provided", true, []string{"hook_start", "hook_blocked"}},
		"malformed":     {`what?`, "", "on_run_start hook", false, []string{"hook_start", "hook_failed"}},
		"bad transform": {`{"action": "continue", "parameters": {}}`, "", "does not accept", false, []string{"hook_start", "hook_failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.create(validator, report)
			var got string
			b.answers["validator"] = func(input string) string { got = input; return c.answer }
			id := b.submit("report", `{"month": "May"}`)
			d := b.work(id)
			assert.JSONEq(t, `{"parameters": {"month": "May"}, "agent_name": "report", "session_id": "`+string(d.SessionID)+`", "run_id": "`+string(id)+`"}`, got)
			var events []string
			for _, e := range d.Hooks {
				events = append(events, e.EventType)
			}
			assert.Equal(t, c.events, events)
			if c.failure != "" {
				assert.Equal(t, wire.Failed, d.Status)
				require.NotNil(t, d.Error)
				assert.Contains(t, *d.Error, c.failure)
				assert.Equal(t, c.blocked, d.Blocked)
				return
			}
			assert.Equal(t, wire.Completed, d.Status)
			assert.JSONEq(t, c.result, string(d.ResultData))
			if c.result != `{"month": "May"}` {
				assert.JSONEq(t, `{"month": "May"}`, string(d.OriginalParameters))
			}
		})
	}
}
