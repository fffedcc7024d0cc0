package hooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// powersOf returns the answers that a context can make: its methods that give a Result.
func powersOf[C hooks.Context]() []string {
	t := reflect.TypeFor[C]()
	var out []string
	for m := range t.Methods() {
		if m.Type.NumOut() == 1 && m.Type.Out(0) == reflect.TypeFor[hooks.Result]() {
			out = append(out, m.Name)
		}
	}
	return out
}

// IP-24, IP-56, IP-58, IP-59, X-05: what may be answered where is one public table,
// and the compiler holds hooks to it: a power that is not in its row has no method.
func TestPowers(t *testing.T) {
	always := "Fail Pass "
	for point, tc := range map[hooks.PointName]struct {
		got  []string
		want string
	}{
		hooks.InputSubmitted:        {powersOf[hooks.InputContext](), "Allow Deny Rewrite RewriteText"},
		hooks.ExecutionStart:        {powersOf[hooks.ExecutionContext](), "Allow Deny Rewrite RewriteText Stop"},
		hooks.StepStart:             {powersOf[hooks.StepContext](), "Allow Stop"},
		hooks.PreInference:          {powersOf[hooks.InferenceContext](), "Allow Rewrite RewriteMessages Stop"},
		hooks.PostInference:         {powersOf[hooks.ReplyContext](), "Allow Filter FilterOrWithhold Replace ReplaceText"},
		hooks.PreToolUse:            {powersOf[hooks.ToolContext](), "Allow Ask AskAbout Deny Mock MockContent MockFailure Patch Rewrite Stop"},
		hooks.ToolFailed:            {powersOf[hooks.ToolFailureContext](), "Allow Filter FilterOrWithhold Replace ReplaceContent Stop Withhold"},
		hooks.PostToolUse:           {powersOf[hooks.ToolResultContext](), "Allow Filter FilterOrWithhold Replace ReplaceContent Stop Withhold"},
		hooks.InterventionRequested: {powersOf[hooks.InterventionContext](), "Allow Approve Deny RejectAndEnd Rewrite"},
		hooks.PreCompact:            {powersOf[hooks.PreCompactContext](), "Allow Deny"},
		hooks.PostCompact:           {powersOf[hooks.PostCompactContext](), ""},
		hooks.CompactFailed:         {powersOf[hooks.CompactFailedContext](), ""},
		hooks.PreSubagent:           {powersOf[hooks.PreSubagentContext](), "Allow Deny Rewrite"},
		hooks.PostSubagent:          {powersOf[hooks.PostSubagentContext](), "Allow Filter FilterOrWithhold Replace Withhold"},
		hooks.SubagentFailed:        {powersOf[hooks.SubagentFailedContext](), ""},
		hooks.InterventionResolved:  {powersOf[hooks.InterventionResolvedContext](), ""},
		hooks.InterventionStopped:   {powersOf[hooks.InterventionStoppedContext](), ""},
		hooks.StepEnd:               {powersOf[hooks.StepEndContext](), "Allow Stop"},
		hooks.Stop:                  {powersOf[hooks.StopContext](), "Allow Continue Stop"},
		hooks.AgentFailed:           {powersOf[hooks.FailureContext](), "Allow"},
		hooks.ExecutionEnd:          {powersOf[hooks.EndContext](), ""},
	} {
		want := slices.Sorted(strings.FieldsSeq(always + tc.want))
		assert.Equal(t, want, tc.got, point)
	}
}

// IP-60: a hook is given values: none of a context's methods can change it, and no
// field can be written.
func TestContextsAreValues(t *testing.T) {
	for _, c := range []reflect.Type{
		reflect.TypeFor[hooks.ToolContext](), reflect.TypeFor[hooks.ToolResultContext](), reflect.TypeFor[hooks.ToolFailureContext](),
	} {
		assert.Equal(t, c.NumMethod(), reflect.PointerTo(c).NumMethod(), "%s has a method that needs a pointer", c)
		for f := range c.Fields() {
			assert.False(t, f.IsExported(), "%s.%s can be written", c, f.Name)
		}
	}
	var kept hooks.ToolContext
	var keptResult hooks.ToolResultContext
	asked := false
	workWith(t, []hooks.Hook{
		before("keeps", func(c hooks.ToolContext) hooks.Result {
			if !asked { // else it is asked again, about the rewrite
				kept, asked = c, true
			}
			call := c.Call()
			call.Arguments, call.Name = "changed", "changed"
			return c.Allow(note.Set("x"))
		}).WithPriority(1),
		before("rewrites", rewriteTo(map[string]any{"command": "pwd"})),
		after("replaces", func(c hooks.ToolResultContext) hooks.Result { return c.Replace("replaced") }).WithPriority(1),
		after("keeps-too", func(c hooks.ToolResultContext) hooks.Result {
			keptResult = c
			r := c.Result()
			r.Content, r.Status = agent.TextContent("changed"), agent.ToolFailed
			return c.Allow()
		}),
	}, wants("bash", ls))
	assert.Equal(t, ls, kept.Call().Arguments, "what was kept stays as it was")
	assert.Equal(t, "bash", kept.Tool())
	_, there := note.From(kept.State())
	assert.False(t, there)
	assert.Equal(t, "ran pwd", keptResult.Text())
	assert.Equal(t, agent.ToolExecuted, keptResult.Status())
}

// IP-57, IP-58, X-05: an answer that was made for another point is a failure that
// names the hook and both points; it is never dropped in silence.
func TestAnswersOfAnotherPoint(t *testing.T) {
	var stepAnswer hooks.Result
	w := workWith(t, []hooks.Hook{
		hooks.On(hooks.AtStepStart, "maker", func(_ context.Context, c hooks.StepContext) hooks.Result {
			stepAnswer = c.Allow()
			return c.Pass()
		}),
		before("mixed-up", func(hooks.ToolContext) hooks.Result { return stepAnswer }),
	}, wants("bash", ls))
	assert.Empty(t, w.ran)
	assert.Equal(t, `tool "bash": not executed: mixed-up: the hook could not decide: `+
		`the answer was made for StepStart and cannot be given at PreToolUse`, w.result(0).Text())
	require.Len(t, w.events(hooks.HookFailed), 1)
	assert.Equal(t, "mixed-up", w.events(hooks.HookFailed)[0].Hook)
}

// An outcome that no context made says nothing that counts.
func TestOutcomeOfNobody(t *testing.T) {
	w := workWith(t, []hooks.Hook{before("bare", func(hooks.ToolContext) hooks.Result { return okOutcome(&hooks.Outcome{}) })}, wants("bash", ls))
	assert.Empty(t, w.ran)
	assert.Equal(t, `tool "bash": not executed: bare: the hook could not decide: `+
		`the answer was not made by a method of the hook's context`, w.result(0).Text())
}

// IP-61: all that may be answered before and after a call works without complaint.
func TestAllToolPowers(t *testing.T) {
	do := func(c any, power string) hooks.Result {
		m := reflect.ValueOf(c).MethodByName(power)
		var args []reflect.Value
		for i := range m.Type().NumIn() {
			switch in := m.Type().In(i); {
			case m.Type().IsVariadic() && i == m.Type().NumIn()-1:
			case in.Kind() == reflect.String:
				args = append(args, reflect.ValueOf("text"))
			case in == reflect.TypeFor[agent.Content]():
				args = append(args, reflect.ValueOf(agent.TextContent("content")))
			case in == reflect.TypeFor[agent.Question]():
				args = append(args, reflect.ValueOf(agent.Question{Reason: "text"}))
			case in == reflect.TypeFor[func(string) string]():
				args = append(args, reflect.ValueOf(strings.ToUpper))
			case in == reflect.TypeFor[func(string) (string, error)]():
				args = append(args, reflect.ValueOf(func(text string) (string, error) { return text, nil }))
			default: // the arguments of a rewrite
				args = append(args, reflect.ValueOf(map[string]any{"command": "pwd"}))
			}
		}
		return m.Call(args)[0].Interface().(hooks.Result)
	}
	pre, post := powersOf[hooks.ToolContext](), powersOf[hooks.ToolResultContext]()
	for _, power := range lo.Uniq(append(pre, post...)) {
		if power == "Fail" {
			continue
		}
		t.Run(power, func(t *testing.T) {
			var list []hooks.Hook
			if slices.Contains(pre, power) {
				list = append(list, before("pre", func(c hooks.ToolContext) hooks.Result { return do(c, power) }))
			}
			if slices.Contains(post, power) {
				list = append(list, after("post", func(c hooks.ToolResultContext) hooks.Result { return do(c, power) }))
			}
			w := workWith(t, list, wants("bash", ls), approving(agent.Approve))
			require.NoError(t, w.err)
			assert.Empty(t, w.events(hooks.HookFailed))
			assert.NotEmpty(t, agenttest.Of[hooks.Event](w.recorder))
		})
	}
}

// IP-18, IP-19, IP-20, IP-21, IP-23: what an outcome says of itself, in code and as JSON.
func TestOutcomes(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(c hooks.ToolContext) hooks.Result
		json   string
		check  func(t *testing.T, o *hooks.Outcome)
	}{
		"zero": {func(hooks.ToolContext) hooks.Result { return hooks.Result{} }, `{"type":"pass","has_effects":false}`, func(t *testing.T, o *hooks.Outcome) { // IP-23
			t.Helper()
			assert.Nil(t, o)
			assert.Equal(t, hooks.Pass, o.Decision())
			assert.Empty(t, o.Reason())
			assert.Empty(t, o.Hook())
			assert.Empty(t, o.Arguments())
			assert.Zero(t, o.Effects().Len())
			assert.Nil(t, o.MockResult())
			assert.Equal(t, agent.Content{}, o.Content())
			assert.False(t, o.HookFailed())
			_, changed := o.Request()
			assert.False(t, changed)
			assert.Empty(t, o.Input())
			assert.Equal(t, agent.Step{}, o.Reply())
		}},
		"pass":  {func(c hooks.ToolContext) hooks.Result { return c.Pass() }, `{"type":"pass","has_effects":false}`, nil},
		"allow": {allow, `{"type":"allow","has_effects":false}`, nil},
		"allow and add": {func(c hooks.ToolContext) hooks.Result { return c.Allow(note.Set("x")) }, `{"type":"allow","hook":"h","has_effects":true}`, func(t *testing.T, o *hooks.Outcome) {
			t.Helper()
			assert.Equal(t, 1, o.Effects().Len())
			for _, e := range o.Effects().All() {
				assert.Equal(t, "h", e.Source())
			}
		}},
		"deny": {deny("no"), `{"type":"deny","reason":"no","hook":"h","has_effects":false}`, nil},     // IP-19
		"stop": {stop("halt"), `{"type":"stop","reason":"halt","hook":"h","has_effects":false}`, nil}, // IP-20
		"ask":  {ask("sure?"), `{"type":"ask","reason":"sure?","hook":"h","has_effects":false}`, nil},
		"mock": {mock("mocked"), `{"type":"mock","hook":"h","has_effects":false}`, func(t *testing.T, o *hooks.Outcome) {
			t.Helper()
			assert.Nil(t, o.MockResult(), "the hooks after the call have yet to see it")
		}},
		"rewrite": {rewriteTo(map[string]any{"command": "pwd"}), `{"type":"rewrite","hook":"h","has_effects":false}`, func(t *testing.T, o *hooks.Outcome) {
			t.Helper()
			assert.JSONEq(t, `{"command":"pwd"}`, o.Arguments())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := workWith(t, []hooks.Hook{before("h", tc.answer)}, wants("bash", ls), approving(agent.Approve))
			answered := w.events(hooks.HookComplete, hooks.HookBlocked)
			require.Len(t, answered, 1)
			text, err := json.Marshal(answered[0].Outcome)
			require.NoError(t, err)
			if answered[0].Outcome == nil {
				text, err = answered[0].Outcome.MarshalJSON()
				require.NoError(t, err)
			}
			assert.JSONEq(t, tc.json, string(text)) // IP-21
			assert.Equal(t, answered[0].Outcome.Decision(), answered[0].Decision)
			assert.Equal(t, answered[0].Outcome.Reason(), answered[0].Reason)
			if tc.check != nil {
				tc.check(t, answered[0].Outcome)
			}
		})
	}
	t.Run("failed", func(t *testing.T) {
		var frozen *hooks.Outcome
		workWith(t, []hooks.Hook{
			before("h", func(c hooks.ToolContext) hooks.Result { return c.Fail(errPaper) }),
			hooks.Observe(hooks.AtPreToolUse, "spy", func(_ context.Context, c hooks.ToolContext) error { frozen = c.Frozen(); return nil }),
		}, wants("bash", ls))
		text, err := json.Marshal(frozen)
		require.NoError(t, err)
		assert.JSONEq(t, `{"type":"deny","reason":"the hook could not decide: out of paper","hook":"h","hook_failed":true,"has_effects":false}`, string(text))
		assert.True(t, frozen.HookFailed())
	})
}

// An outcome may be kept and given again; it is then the answer of who gave it.
func TestOutcomesMayBeKept(t *testing.T) {
	var kept hooks.Result
	w := workWith(t, []hooks.Hook{
		before("first", func(c hooks.ToolContext) hooks.Result { kept = c.Deny("no"); return c.Pass() }),
		before("second", func(hooks.ToolContext) hooks.Result { return kept }),
	}, wants("bash", ls, "read_file", file))
	assert.Equal(t, "second", w.result(0).DecidedBy)
	assert.Equal(t, "second", w.result(1).DecidedBy)

	var frozen *hooks.Outcome
	w = workWith(t, []hooks.Hook{
		before("failing", func(c hooks.ToolContext) hooks.Result { return c.Fail(errPaper) }, hooks.ToolNamed("bash")),
		hooks.Observe(hooks.AtPreToolUse, "spy", func(_ context.Context, c hooks.ToolContext) error { frozen = c.Frozen(); return nil }),
		before("copycat", func(c hooks.ToolContext) hooks.Result {
			return lo.Ternary(frozen == nil, c.Pass(), okOutcome(frozen))
		}, hooks.ToolNamed("read_file")),
	}, wants("bash", ls, "read_file", file))
	assert.Equal(t, "copycat", w.result(1).DecidedBy)
	assert.Equal(t, agent.ReasonDenied, w.result(1).Reason, "copycat did decide")
}

// What hooks did is told as it happens, with all that there is to know.
func TestEventsOfToolHooks(t *testing.T) {
	w := workWith(t, []hooks.Hook{
		before("first", allow),
		before("passes", func(hooks.ToolContext) hooks.Result { return hooks.Result{} }),
		before("guard", deny("no")),
		before("never", allow),
		hooks.Observe(hooks.AtPreToolUse, "told", func(context.Context, hooks.ToolContext) error { return errPaper }),
		after("keeper", func(c hooks.ToolResultContext) hooks.Result { return c.Withhold("secret") }),
	}, wants("bash", ls))
	var lines []string
	for _, e := range agenttest.Of[hooks.Event](w.recorder) {
		assert.Equal(t, string(e.Kind), e.EventName())
		assert.Equal(t, w.Run().ID, e.Run.ID)
		assert.Zero(t, e.Step)
		assert.Equal(t, "call_1_1", e.Call.ID)
		assert.Equal(t, 1, e.Attempt)
		assert.False(t, e.Detached)
		assert.Equal(t, e.Hook != "told", e.Control)
		assert.True(t, e.Kind != hooks.HookStart || e.Duration == 0)
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s@%s %s %s %s", e.Kind, e.Hook, e.Point, e.Decision, e.Reason, e.Policy)))
	}
	assert.Equal(t, []string{
		"hook.start first@PreToolUse", "hook.complete first@PreToolUse allow",
		"hook.start passes@PreToolUse", "hook.complete passes@PreToolUse pass",
		"hook.start guard@PreToolUse", "hook.blocked guard@PreToolUse deny no",
		"hook.start told@PreToolUse", "hook.failed told@PreToolUse   open",
		"hook.start keeper@PostToolUse", "hook.blocked keeper@PostToolUse withhold secret",
	}, lines)
}
