package coordinator_test

import (
	"encoding/json"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// A hook at on_result sees a result before it is stored, and may replace or withhold it.
func TestResultHooks(t *testing.T) {
	hook := func(text, onError string) string {
		answer := lo.Must(json.Marshal([]string{"echo", text}))
		return `"hooks": {"on_result": {"type": "command", "argv": ` + string(answer) + `, "on_error": "` + onError + `"}}`
	}
	schema := `"output_schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}, `
	for name, c := range map[string]struct {
		blueprint, text, data, event, behaviour string
	}{
		"unchanged":             {`"command": {"argv": ["echo", "secret"]}, ` + hook(`{"action": "continue"}`, "block"), "secret\n", "", "hook_complete", ""},
		"replaced":              {`"command": {"argv": ["echo", "secret"]}, ` + hook(`{"action": "continue", "result_text": "public"}`, "block"), "public", "", "hook_complete", ""},
		"as other hooks say it": {`"command": {"argv": ["echo", "secret"]}, ` + hook(`{"decision": "replace", "result": "public"}`, "block"), "public", "", "hook_complete", ""},
		"withheld":              {`"command": {"argv": ["echo", "secret"]}, ` + hook(`{"action": "block", "block_reason": "classified"}`, "block"), "classified", "", "hook_blocked", ""},
		"failed":                {`"command": {"argv": ["echo", "secret"]}, ` + hook(`what?`, "block"), "result withheld", "", "hook_failed", "block"},
		"failed, continue":      {`"command": {"argv": ["echo", "secret"]}, ` + hook(`what?`, "continue"), "secret\n", "", "hook_failed", "continue"},
		"data":                  {`"command": {"argv": ["echo", "{\"n\": 1}"]}, ` + schema + hook(`{"action": "continue", "result_data": {"n": 2}}`, "block"), "", `{"n": 2}`, "hook_complete", ""},
		"data of another form":  {`"command": {"argv": ["echo", "{\"n\": 1}"]}, ` + schema + hook(`{"action": "continue", "result_data": {"n": "x"}}`, "continue"), "", `{"n": 1}`, "hook_failed", "continue"},
		"withheld data":         {`"command": {"argv": ["echo", "{\"n\": 1}"]}, ` + schema + hook(`{"action": "continue", "result_data": {"n": "x"}}`, "block"), "result withheld", "", "hook_failed", "block"},
		"of parameters":         {`"command": {"argv": ["echo", "secret"]}, ` + hook(`{"action": "continue", "parameters": {}}`, "block"), "result withheld", "", "hook_failed", "block"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.create(`{"name": "job", "type": "procedural", ` + c.blueprint + `}`)
			d := b.work(b.submit("job", `{"a": 1}`))
			require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
			if c.data != "" {
				assert.JSONEq(t, c.data, string(d.ResultData))
			} else if assert.NotNil(t, d.ResultText) {
				assert.Contains(t, *d.ResultText, c.text)
				assert.Nil(t, d.ResultData)
			}
			require.Len(t, d.Hooks, 2)
			last := d.Hooks[1]
			assert.Equal(t, []string{"on_result", c.event, c.behaviour}, []string{last.HookType, last.EventType, last.OnErrorBehavior})
		})
	}
}

// A hook at on_result may be an agent, of an agent, with hooks before and after; an agent's result is checked as that of a command.
func TestResultHookOfAnAgent(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "editor", "type": "autonomous", "parameters_schema": {"type": "object"}}`,
		`{"name": "writer", "type": "autonomous", "hooks": {
			"on_run_start": {"type": "command", "argv": ["echo", "{\"action\": \"continue\", \"parameters\": {\"prompt\": \"two\"}}"], "on_error": "block"},
			"on_result": {"type": "agent", "agent_name": "editor", "on_error": "block"},
			"on_run_finish": {"type": "command", "argv": ["cat"], "on_error": "continue"}}}`)
	b.answers["writer"] = func(input string) string { return input + " draft" }
	var asked string
	b.answers["editor"] = func(input string) string {
		asked = input
		return `{"action": "continue", "result_text": "final"}`
	}
	id := b.submit("writer", `{"prompt": "one"}`)
	d := b.work(id)
	require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
	assert.Equal(t, "final", *d.ResultText)
	assert.JSONEq(t, `{"parameters": {"prompt": "two"}, "result_text": "two draft", "result_data": null, "status": "completed", "error": null,
		"session_id": "`+string(d.SessionID)+`", "run_id": "`+string(id)+`", "agent_name": "writer"}`, asked)
	assert.Equal(t, []string{"on_run_start", "on_run_start", "on_result", "on_result", "on_run_finish", "on_run_finish"},
		lo.Map(d.Hooks, func(h wire.HookEvent, _ int) string { return h.HookType }))
}

// A worker whose keeper would store results that on_result hooks have not seen executes no such run.
func TestResultHooksNeedTheStore(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["true"]}, "hooks": {"on_result": {"type": "command", "argv": ["true"], "on_error": "continue"}}}`)
	id := b.submit("job", `{}`)
	k := durable.Keep(b.store, durable.Options{})
	o := b.runnerOptions(k)
	var failed error
	w, err := durable.NewWorker(b.store, durable.WorkerOptions{Runners: b.c.Runners(k, o), Labels: b.c.Labels(o, nil), Observe: func(e durable.WorkerEvent) {
		if e.Err != nil {
			failed = e.Err
		}
	}})
	require.NoError(t, err)
	require.NoError(t, w.ExecuteReady(t.Context()))
	require.ErrorContains(t, failed, "RunnerStore")
	r, err := b.store.Run(t.Context(), id)
	require.NoError(t, err)
	assert.False(t, r.Status.Ended())
}
