package condition_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
	"github.com/grapnel-go/grapnel/toolexec"
)

// AP-53
func TestEachPointHasItsValues(t *testing.T) {
	l := languageOf(t, condition.Options{Workspace: "/srv"})
	about := hooks.Pipeline{
		Name: "p", NextStage: "deploy", MaxIterations: 9, Progress: "/p", Status: "/s", Context: "/c", LastDecision: "continue",
		ChangedFiles: []string{"a", "b"}, StageOutputs: []string{"x"}, Reason: "max", Err: errors.New("broken"),
	}
	for name, tc := range map[string]struct {
		at   hookstest.Moment
		text string
	}{
		"a call":         {hookstest.ToolCall("bash", `{"command":"ls","n":1}`), `tool == "bash" && args.command == "ls" && original_args.n == 1 && call.index == 0 && call.id != "" && call.invalid == "" && point == "PreToolUse"`},
		"a run":          {hookstest.ToolCall("bash", `{}`).WithRun(agent.Run{ID: "r", Session: "s", Agent: "a", Root: "o", Parent: "p", Depth: 2, Stage: "work", Iteration: 3}), `agent == "a" && run.depth == 2 && run.parent == "p" && stage == "work" && ${ITERATION} == 3 && ${STAGE} == "work" && run.root == "o" && run.elapsed >= duration("0s") && workspace == "/srv"`},
		"metadata":       {hookstest.ToolCall("bash", `{}`).WithEffects(agent.SessionKey[string]("tier").Set("gold"), agent.RunKey[map[string]any]("m").Set(map[string]any{"n": 1})), `metadata.tier == "gold" && metadata.m.n == 1 && !has(metadata.none) && "tier" in metadata && metadata["ti" + "er"] == "gold"`},
		"input of a run": {hookstest.ToolCall("bash", `{}`).WithState(agent.NewState(agent.UserText("do it"))), `input == "do it"`},
		"input":          {hookstest.Input("hello"), `input == "hello"`},
		"start":          {hookstest.Start("hello"), `input == "hello" && step == 0`},
		"a reply":        {hookstest.Reply("done"), `reply.text == "done" && size(reply.tools) == 0`},
		"a result":       {hookstest.ToolResult("bash", `{"a":1}`, "out"), `result.text == "out" && !result.is_error && result.status == "executed" && args.a == 1 && result.reason == ""`},
		"a tool failure": {hookstest.ToolFailure("bash", `{}`, errors.New("no disk")), `error.contains("no disk") && ${ERROR} == error && result.is_error`},
		"a question":     {hookstest.Intervention("bash", `{"a":1}`), `args.a == 1 && tool == "bash" && question == question`},
		"a step":         {hookstest.StepEnd("said"), `reply.text == "said" && step_kind == "final_response"`},
		"a stop":         {hookstest.Stop("bye").WithContinuations(2), `reply.text == "bye" && continuations == 2 && end.reason == "completed"`},
		"an end":         {hookstest.End(agent.StatusDone), `end.status == "done" && error == ""`},
		"a failed run":   {hookstest.RunFailure(errors.New("gone")), `error.contains("gone")`},
		"a sub-agent":    {hookstest.Subagent("helper", "look"), `subagent.agent == "helper" && subagent.instruction == "look"`},
		"its answer":     {hookstest.SubagentResult("helper", "look", "seen"), `subagent.result == "seen"`},
		"its failure":    {hookstest.SubagentFailure("helper", "look", errors.New("lost")), `error.contains("lost")`},
		"a compaction":   {hookstest.Compact(hooks.Compaction{Messages: 5, Tokens: 70}), `compaction.messages == 5 && compaction.tokens == 70`},
		"a pipeline":     {hookstest.Pipeline(hooks.IterationComplete, about), `${NEXT_STAGE} == "deploy" && ${MAX_ITERATIONS} == 9 && ${PROGRESS} == "/p" && ${STATUS} == "/s" && ${CTX} == "/c" && ${LAST_DECISION} == "continue" && ${CHANGED_FILES} == "a\nb" && ${STAGE_OUTPUTS} == "x" && pipeline.name == "p" && pipeline.reason == "max" && "b" in pipeline.changed_files && pipeline.stage_outputs == ["x"]`},
		"its error":      {hookstest.Pipeline(hooks.IterationFailed, about), `${ERROR} == "broken" && error == "broken"`},
		"its last stage": {hookstest.Pipeline(hooks.StageComplete, hooks.Pipeline{}), `${NEXT_STAGE} == "" && ${CALLBACK_URL} == "" && ${HOOK_RESPONSE} == "" && ${SPAWN_OUTPUT} == "" && ${LAST_HOOK_STATUS} == "" && timestamp(${TIMESTAMP}) <= now`},
		"a blueprint":    {hookstest.Blueprint(hooks.RunResult, hooks.BlueprintRun{Parameters: json.RawMessage(`{"p":1}`), ResultText: "ok", ResultData: json.RawMessage(`{"n":2}`)}), `parameters.p == 1 && result.text == "ok" && result.data.n == 2`},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			watch := hooks.ObserveAll("watch", func(ctx context.Context, c hooks.Context) error {
				in := condition.Of(c)
				cond, err := l.Compile(tc.text, c.Point())
				if assert.NoError(t, err) {
					yes, err := cond.Test(ctx, in)
					assert.NoError(t, err)
					assert.True(t, yes, "%v", cond.Explain(ctx, in))
				}
				asked = true
				return nil
			})
			_, err := tc.at.Fire(t.Context(), hooks.NewSet(watch)).Get()
			require.NoError(t, err)
			assert.True(t, asked)
		})
	}
}

// AP-53
func TestGivenNamesWin(t *testing.T) {
	l := languageOf(t, condition.Options{})
	in := callOf(t, `{}`).With(condition.Values{
		Names:   map[string]string{"ITERATION": "20", "LAST_HOOK_STATUS": "failed", "STAGE": "' || true", "NOTHING": "x", "MAX_ITERATIONS": "many"},
		Actions: map[string]condition.Action{"scan-1": {Status: "success", Output: `{"found":[1,2]}`}, "plain": {Status: "failed", Output: "x{"}},
	})
	hold(t, l, in, map[string]bool{
		"${ITERATION} % 10 == 0": true, "${LAST_HOOK_STATUS} == 'failed'": true, `${STAGE} == "' || true"`: true,
		"actions['scan-1'].response.found[1] == 2": true, "actions.plain.response == 'x{'": true, "has(actions.other)": false,
		"actions.plain.status == 'failed' && actions.plain.output == 'x{'": true,
	})
	_, err := compiled(t, l, "${MAX_ITERATIONS} > 1").Test(t.Context(), in)
	assert.ErrorContains(t, err, `MAX_ITERATIONS is "many" and not a whole number`)
	assert.Equal(t, condition.Input{}, condition.Input{}.With(condition.Values{}))
}

func TestCostsThatNobodyKnows(t *testing.T) {
	l := languageOf(t, condition.Options{})
	unknown := event(t, map[string]any{"usage": map[string]any{"input_tokens": 5, "tokens": 9}})
	_, err := compiled(t, l, "usage.cost > 1.0").Test(t.Context(), unknown)
	assert.ErrorContains(t, err, "the cost of the run is unknown")
	hold(t, l, unknown, map[string]bool{"usage.tokens == 9 && usage.output_tokens == 4": true})
	hold(t, l, event(t, map[string]any{}), map[string]bool{"usage.cost == 0.0": true})
}

func TestCountersOfARun(t *testing.T) {
	l := languageOf(t, condition.Options{})
	few := compiled(t, l, "calls('look') < 3 && calls() >= calls('look') && denied('look') == 0")
	var seen []bool
	hook := hooks.On(hooks.AtPreToolUse, "few", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		yes, err := few.Test(ctx, condition.Of(c))
		if err != nil {
			return c.Fail(err)
		}
		if seen = append(seen, yes); !yes {
			return c.Deny("enough")
		}
		return c.Allow()
	})
	var end string
	after := hooks.Observe(hooks.AtExecutionEnd, "after", func(ctx context.Context, c hooks.EndContext) error {
		count, err := l.Expression("string(calls('look')) + ' ' + string(calls_ok('look')) + ' ' + string(denied('look')) + ' ' + string(calls('nap'))", hooks.ExecutionEnd)
		require.NoError(t, err)
		v, err := count.Value(ctx, condition.Of(c))
		require.NoError(t, err)
		end, _ = condition.Text(v)
		return nil
	})
	look := toolexec.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	a, err := builder.New().WithDriver(agenttest.Script(
		agenttest.Call("look", "{}").Call("look", "{}"),
		agenttest.Call("look", "{}").Call("look", "{}").Call("look", "{}"), agenttest.Say("done"),
	)).With(capability.UseTools(look), capability.UseHooks(hook, after)).Build().Get()
	require.NoError(t, err)
	a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
	assert.Equal(t, []bool{true, true, true, false, false}, seen, "calls of the step under way count, too")
	assert.Equal(t, "5 3 2 0", end)
}

// A condition that judges a call again, after another hook has changed the arguments, counts the call once.
func TestACallThatIsAskedAboutAgainCountsOnce(t *testing.T) {
	l := languageOf(t, condition.Options{})
	few := compiled(t, l, "calls('look') < 3 && calls() < 3")
	asked := 0
	limit := hooks.On(hooks.AtPreToolUse, "limit", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		asked++
		if yes, err := few.Test(ctx, condition.Of(c)); err != nil {
			return c.Fail(err)
		} else if !yes {
			return c.Deny("enough")
		}
		return c.Allow()
	})
	rewrite := hooks.On(hooks.AtPreToolUse, "rewrite", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		var in struct {
			N float64 `json:"n"`
		}
		if err := c.Call().Decode(&in); err != nil {
			return c.Fail(err)
		}
		if in.N < 2 {
			in.N++
			return c.Rewrite(in)
		}
		return c.Allow()
	})
	looks := 0
	look := toolexec.Func("look", "Looks.", func(context.Context, struct {
		N float64 `json:"n"`
	}) (string, error) {
		looks++
		return "seen", nil
	})
	a, err := builder.New().WithDriver(agenttest.Script(
		agenttest.Call("look", `{"n":0}`).Call("look", `{"n":0}`), agenttest.Call("look", `{"n":0}`), agenttest.Call("look", `{"n":0}`), agenttest.Say("done"),
	)).With(capability.UseTools(look), capability.UseHooks(limit, rewrite)).Build().Get()
	require.NoError(t, err)
	a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
	assert.Equal(t, 3, looks, "the fourth is denied, and none before it")
	assert.Greater(t, asked, 4, "the limit is asked about a call again after it was changed")
}

func TestEventsAsJSON(t *testing.T) {
	l := languageOf(t, condition.Options{})
	in, err := condition.FromJSON([]byte(`{"version":1,"point":"PreToolUse","hook":"p/x","decides":true,"decisions":["deny"],"attempt":1,
		"run":{"id":"r","session":"s","agent":"a","root":"r","number":1,"started":"2026-01-01T00:00:00Z"},"step":2,"elapsed":"3s",
		"tool":"bash","call_id":"c","call_index":1,"arguments":{"a":1},"original_arguments":{"a":2},"input":"hi",
		"calls":{"bash":{"calls":3,"ok":2,"denied":1}},"metadata":{"k":[1]},"now":"2026-02-03T04:05:06Z",
		"variables":{"ITERATION":4,"STAGE":"work"},"vars":{"x":1}}`), hooks.PreToolUse)
	require.NoError(t, err)
	hold(t, l, in, map[string]bool{
		`tool == "bash" && call.id == "c" && call.index == 1 && args.a == 1 && original_args.a == 2`:                     true,
		`agent == "a" && run.id == "r" && step == 2 && run.elapsed == duration("3s") && input == "hi"`:                   true,
		`calls("bash") == 3 && calls_ok("bash") == 2 && denied() == 1 && calls("x") == 0 && metadata.k[0] == 1`:          true,
		`now.getFullYear() == 2026 && ${TIMESTAMP} == "2026-02-03T04:05:06Z" && ${ITERATION} == 4 && ${STAGE} == "work"`: true,
	})
	for text, want := range map[string]string{
		`{}`:                               "names no hook point",
		`{"point":"Lunch"}`:                `hook point "Lunch"`,
		`{"point":"Stop"}`:                 "the event is for Stop, not for PreToolUse",
		`{"point":"PreToolUse","tol":"x"}`: "tol",
		`{"point":"PreToolUse","tool":1}`:  "tool",
		`{"point":"PreToolUse","tool":"a","tool":"b"}`: "tool",
		`{"point":"PreToolUse","variables":{"X":1}}`:   `unknown variable "X"`,
		`{"point":"PreToolUse","elapsed":"soon"}`:      "soon",
		`[]`: "object", ``: "reading the event", `{"point":"PreToolUse"} x`: "reading the event",
	} {
		at := hooks.PreToolUse
		if text == "{}" {
			at = ""
		}
		_, err := condition.FromJSON([]byte(text), at)
		assert.ErrorContains(t, err, want, text)
	}
	broken, err := condition.FromJSON([]byte(`{"tool":"bash","arguments":"{\"a\": nonsense"}`), hooks.PostToolUse)
	require.NoError(t, err)
	c, err := l.Compile("has(args.a)", hooks.PostToolUse)
	require.NoError(t, err)
	_, err = c.Test(t.Context(), broken)
	assert.ErrorContains(t, err, "reading the arguments")
}

func TestUsageOfARun(t *testing.T) {
	l := languageOf(t, condition.Options{})
	c, err := l.Compile("usage.tokens == 15 && usage.input_tokens == 10 && usage.cost > 0.2 && now - run.elapsed < now + duration('1s')", hooks.StepEnd)
	require.NoError(t, err)
	checked := false
	hook := hooks.Observe(hooks.AtStepEnd, "usage", func(ctx context.Context, at hooks.StepEndContext) error {
		yes, err := c.Test(ctx, condition.Of(at))
		checked = assert.NoError(t, err) && assert.True(t, yes, "%v", c.Explain(ctx, condition.Of(at)))
		return nil
	})
	step := agent.Step{Message: agent.Assistant("x"), Usage: agent.Usage{InputTokens: 10, OutputTokens: 5, Cost: mo.Some(0.25)}}
	hookstest.Fire(t, hook, hookstest.StepEnd("x").WithReply(step))
	assert.True(t, checked)
}

// A run's usage includes its sub-agents' usage.
func TestUsageOfSubagents(t *testing.T) {
	e, err := languageOf(t, condition.Options{}).Expression("usage.tokens", hooks.StepEnd)
	require.NoError(t, err)
	var seen []any
	look := hooks.Observe(hooks.AtStepEnd, "usage", func(ctx context.Context, at hooks.StepEndContext) error {
		v, err := e.Value(ctx, condition.Of(at))
		if assert.NoError(t, err) {
			seen = append(seen, v.Value())
		}
		return nil
	})
	scout := builder.New().WithName("scout").WithDriver(agenttest.Script(agenttest.Say("nothing").WithTokens(3, 4)))
	main := builder.New().WithDriver(agenttest.Script(
		agenttest.Call("task", `{"agent":"scout","instruction":"look"}`).WithTokens(10, 10), agenttest.Say("done").WithTokens(1, 1),
	)).With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: scout}}}, capability.UseHooks(look)).Build().MustGet()
	require.NoError(t, main.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
	assert.Equal(t, []any{int64(27), int64(29)}, seen)
}

func TestTimeIsThatOfTheOccasion(t *testing.T) {
	in := callOf(t, `{}`)
	e, err := languageOf(t, condition.Options{}).Expression("now", hooks.PreToolUse)
	require.NoError(t, err)
	first, err := e.Value(t.Context(), in)
	require.NoError(t, err)
	again, err := e.Value(t.Context(), in.With(condition.Values{}))
	require.NoError(t, err)
	assert.Equal(t, first.Value(), again.Value())
	assert.WithinDuration(t, time.Now(), first.Value().(time.Time), time.Hour)
}
