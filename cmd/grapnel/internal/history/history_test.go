package history_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/history"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// told is a run as the API has it.
type told struct {
	wire.RunDetail

	events []wire.EventView
}

// hook returns the event of a hook.
func hook(event, kind, name string, change ...func(h *wire.HookEvent)) wire.HookEvent {
	h := wire.HookEvent{EventType: event, RunID: "run_1", SessionID: "ses_1", HookType: kind, Hook: name}
	for _, c := range change {
		c(&h)
	}
	return h
}

func transform(before, after string) func(h *wire.HookEvent) {
	return func(h *wire.HookEvent) {
		h.ParametersTransformed, h.Before, h.After = true, json.RawMessage(before), json.RawMessage(after)
	}
}

// newRun returns a completed run with a hook before it, an agent that has called a tool, and a hook after it.
func newRun() told {
	r := told{RunDetail: wire.RunDetail{
		Run:        wire.Run{RunID: "run_1", SessionID: "ses_1", AgentName: "report", Status: wire.Completed},
		Parameters: json.RawMessage(`{"a":2}`), OriginalParameters: json.RawMessage(`{"a":1}`), ResultText: new("done"),
	}}
	r.Hooks = []wire.HookEvent{
		hook("hook_start", "on_run_start", "check"), hook("hook_complete", "on_run_start", "check", transform(`{"a": 1}`, `{"a":2}`)),
		hook("hook_start", "on_run_finish", "note"), hook("hook_complete", "on_run_finish", "note"),
	}
	r.number(r.Hooks[0], r.Hooks[1], "run.started", `tool_call.completed {"step":1,"call":{"id":"c1"}}`, "run.completed")
	return r
}

// number sets the events: those of hooks, and others as text.
func (r *told) number(all ...any) {
	r.events = nil
	for i, e := range all {
		v := wire.EventView{Seq: int64(i + 1)}
		switch e := e.(type) {
		case wire.HookEvent:
			v.Type = e.EventType
			v.Data, _ = json.Marshal(e)
		case string:
			data := "{}"
			if _, err := fmt.Sscanf(e, "%s %s", &v.Type, &data); err != nil {
				v.Type = e
			}
			v.Data = json.RawMessage(data)
		}
		r.events = append(r.events, v)
	}
}

// Each history that cannot be is a problem, and one that can be is not.
func TestProblems(t *testing.T) {
	blocked := func(r *told) {
		r.Status, r.Blocked, r.ResultText, r.Error = wire.Failed, true, nil, new("Blocked by on_run_start hook: closed")
		r.Parameters, r.OriginalParameters = json.RawMessage(`{"a":1}`), nil
		r.Hooks[1] = hook("hook_blocked", "on_run_start", "check", func(h *wire.HookEvent) { h.BlockReason = "closed" })
		r.number(r.Hooks[0], r.Hooks[1])
	}
	for name, c := range map[string]struct {
		change func(r *told)
		want   string // empty means no problem
	}{
		"a whole run": {func(*told) {}, ""},
		"blocked":     {blocked, ""},
		"a result was withheld": {func(r *told) {
			withheld := []wire.HookEvent{hook("hook_start", "on_result", "mask"), hook("hook_blocked", "on_result", "mask")}
			r.Hooks = append(r.Hooks[:2:2], append(withheld, r.Hooks[2:]...)...)
			r.number(r.Hooks[0], r.Hooks[1], "run.started", "run.completed", withheld[0], withheld[1])
		}, ""},
		"callbacks of a session": {func(r *told) {
			r.Parameters = json.RawMessage(`{"a":2,"callbacks":[{}]}`)
		}, ""},
		"an event is missing":        {func(r *told) { r.events = append(r.events[:2], r.events[3:]...) }, "event 4 (tool_call.completed) follows event 2: events are missing"},
		"an event is there twice":    {func(r *told) { r.events = append(r.events, r.events[4]) }, "event 5 (run.completed) follows event 5"},
		"the first event is gone":    {func(r *told) { r.events = r.events[1:] }, "follows event 0"},
		"a decision is there twice":  {func(r *told) { r.Hooks = append(r.Hooks, r.Hooks[3]) }, "on_run_finish hook note: hook_complete without a beginning"},
		"a hook is told twice":       {func(r *told) { r.Hooks = append(r.Hooks, r.Hooks[2], r.Hooks[3]) }, "was told 2 times"},
		"a hook begins twice":        {func(r *told) { r.Hooks = append(r.Hooks[:3], r.Hooks[2], r.Hooks[3]) }, "begins twice"},
		"no decision":                {func(r *told) { r.Hooks = append(r.Hooks[:1], r.Hooks[2:]...) }, "has no outcome"},
		"an event of another run":    {func(r *told) { r.Hooks[2].RunID = "run_2" }, "about run run_2"},
		"timeline and events":        {func(r *told) { r.number("run.started") }, "the run has 0 events of hooks before it, and its timeline 2"},
		"a hook after the start":     {func(r *told) { r.number(r.Hooks[0], "run.started", r.Hooks[1]) }, "a hook before the run comes after run.started"},
		"other parameters":           {func(r *told) { r.Parameters = json.RawMessage(`{"a":3}`) }, `its hooks have returned {"a":2}`},
		"parameters from nowhere":    {func(r *told) { r.Hooks[1].Before = json.RawMessage(`{"a":0}`) }, "parameters that the run did not have"},
		"changed without a hook":     {func(r *told) { r.Hooks[1].ParametersTransformed = false }, "no hook has changed them"},
		"blocked, and it ran":        {func(r *told) { blocked(r); r.number(r.Hooks[0], r.Hooks[1], "run.started") }, "has the event run.started"},
		"blocked, and completed":     {func(r *told) { blocked(r); r.Status = wire.Completed }, "the run is completed"},
		"blocked for another reason": {func(r *told) { blocked(r); r.Error = new("?") }, "has not the reason"},
		"blocked by no hook":         {func(r *told) { blocked(r); r.Hooks[1].EventType = "hook_complete"; r.number(r.Hooks[0], r.Hooks[1]) }, "no hook has blocked it"},
		"two results":                {func(r *told) { r.ResultData = json.RawMessage(`{}`) }, "expected one result"},
		"no error":                   {func(r *told) { r.Status, r.ResultText = wire.Failed, nil }, "expected an error"},
		"a result too early":         {func(r *told) { r.Status = wire.Running }, "the run is running, and has a result"},
		"a hook too early":           {func(r *told) { r.Status, r.ResultText = wire.Running, nil }, "hooks after the run were called"},
		"on_error of a success":      {func(r *told) { r.Hooks[2].HookType, r.Hooks[3].HookType = "on_error", "on_error" }, "on_error hook note was called"},
		"wrong order": {func(r *told) {
			r.Hooks = append(r.Hooks, hook("hook_start", "on_timeout", "late"), hook("hook_complete", "on_timeout", "late"))
		}, "was called after those of on_run_finish"},
		"the agent ends twice": {func(r *told) { r.number(r.Hooks[0], r.Hooks[1], "run.completed", "run.completed") }, "has ended 2 times"},
		"a call ends twice": {func(r *told) {
			call := `tool_call.completed {"step":1,"call":{"id":"c1"}}`
			r.number(r.Hooks[0], r.Hooks[1], call, call)
		}, "step 1, call c1 has ended 2 times"},
		"a call of a sub-agent": {func(r *told) {
			r.number(r.Hooks[0], r.Hooks[1], `tool_call.completed {"run":"run_9","step":1,"call":{"id":"c1"}}`, `tool_call.completed {"step":1,"call":{"id":"c1"}}`)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun()
			c.change(&r)
			var checker history.Checker
			checker.Add(r.RunDetail, r.events)
			all := lo.Map(checker.Problems(), func(p history.Problem, _ int) string { return p.Text })
			if c.want == "" {
				assert.Empty(t, all)
				return
			}
			require.NotEmpty(t, all)
			assert.Contains(t, fmt.Sprint(all), c.want)
		})
	}
}

// Runs that hooks have started are those that the events of hooks name.
func TestRunsOfHooks(t *testing.T) {
	parent := newRun()
	parent.Hooks[1].HookRunID = "run_2"
	parent.number(parent.Hooks[0], parent.Hooks[1], "run.started")
	child := func(id agent.RunID) told {
		r := newRun()
		r.RunID, r.ParentRunID, r.Hook, r.Hooks, r.OriginalParameters = id, "run_1", "on_run_start", nil, nil
		r.number("run.started")
		return r
	}
	var checker history.Checker
	for _, r := range []told{child("run_2"), parent, child("run_3")} {
		checker.Add(r.RunDetail, r.events)
	}
	require.Len(t, checker.Problems(), 1)
	assert.Equal(t, agent.RunID("run_3"), checker.Problems()[0].Run)

	open := newRun()
	open.Status = wire.Waiting
	checker = history.Checker{}
	checker.RequireEnds(open.Run)
	assert.Equal(t, "the run has not ended: it is waiting", checker.Problems()[0].Text)
}
