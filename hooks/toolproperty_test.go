package hooks_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// drawnHook is a hook that the property draws: its action, and its failure policy.
type drawnHook struct {
	name     string
	does     string
	policy   string
	tool     string // empty: all of them
	priority int
	limited  bool
}

var policies = map[string]hooks.FailurePolicy{
	"default": {}, "closed": hooks.Closed, "open": hooks.Open, "abort": hooks.Abort, "retry": hooks.Retry(2, time.Second, hooks.Open),
}

var (
	beforeDoes = []string{"pass", "allow", "add", "deny", "stop", "ask", "mock", "rewrite well", "rewrite badly", "fail", "panic", "hang", "foreign"}
	afterDoes  = []string{"pass", "allow", "add", "replace", "withhold", "stop", "fail", "panic", "hang", "foreign"}
	toolNames  = []string{"bash", "read_file", "write_file", "broken", "explodes", "unknown"}
)

// fitting returns arguments that a tool takes.
func fitting(tool string) string {
	switch tool {
	case "bash":
		return `{"command":"ls"}`
	case "read_file", "write_file":
		return `{"path":"a.txt"}`
	}
	return `{}`
}

func drawHook(t *rapid.T, i int, does []string) drawnHook {
	return drawnHook{
		name:     fmt.Sprint("h", i),
		does:     rapid.SampledFrom(does).Draw(t, "does"),
		policy:   rapid.SampledFrom([]string{"default", "default", "closed", "open", "retry", "abort"}).Draw(t, "policy"),
		tool:     rapid.SampledFrom(append([]string{"", "", ""}, toolNames...)).Draw(t, "tool"),
		priority: rapid.IntRange(-1, 1).Draw(t, "priority"),
		limited:  rapid.Bool().Draw(t, "limited"),
	}
}

func (d drawnHook) finishDrawn(h hooks.Hook) hooks.Hook {
	h = h.WithPriority(d.priority)
	if d.policy != "default" {
		h = h.WithFailure(policies[d.policy])
	}
	if d.tool != "" {
		h = h.Matching(hooks.ToolNamed(d.tool))
	}
	if d.limited {
		h = h.WithTimeout(time.Second)
	}
	return h
}

func (d drawnHook) before() hooks.Hook {
	return d.finishDrawn(hooks.On(hooks.AtPreToolUse, d.name, func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		switch d.does {
		case "allow":
			return c.Allow()
		case "add":
			return c.Allow(agent.AddMessage(agent.UserText("note")))
		case "deny":
			return c.Deny("denied by " + d.name)
		case "stop":
			return c.Stop("stopped by " + d.name)
		case "ask":
			return c.Ask("asked by " + d.name)
		case "mock":
			return c.Mock("mocked by " + d.name)
		case "rewrite well":
			return c.Rewrite(json.RawMessage(fitting(c.Tool())))
		case "rewrite badly":
			return c.Rewrite(map[string]any{"no such": "member"})
		case "fail":
			return c.Fail(errPaper)
		case "panic":
			panic("boom")
		case "hang":
			<-ctx.Done()
		case "foreign":
			return foreign
		}
		return c.Pass()
	}))
}

func (d drawnHook) after() hooks.Hook {
	return d.finishDrawn(hooks.On(hooks.AtPostToolUse, d.name, func(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
		switch d.does {
		case "allow":
			return c.Allow()
		case "add":
			return c.Allow(agent.AddMessage(agent.UserText("note")))
		case "replace":
			return c.Replace("replaced by " + d.name)
		case "withhold":
			return c.Withhold("withheld by " + d.name)
		case "stop":
			return c.Stop("stopped by " + d.name)
		case "fail":
			return c.Fail(errPaper)
		case "panic":
			panic("boom")
		case "hang":
			<-ctx.Done()
		case "foreign":
			return foreign
		}
		return c.Pass()
	}))
}

func (d drawnHook) concerns(tool string) bool { return d.tool == "" || d.tool == tool }

// fails returns the effect of a failure of the hook: "closed", "open" or "abort".
func (d drawnHook) fails() string {
	switch {
	case d.policy == "abort":
		return "abort"
	case d.does == "rewrite badly": // what it wanted is not what would run
		return "closed"
	case d.policy == "open" || d.policy == "retry":
		return "open"
	}
	return "closed"
}

// drawnCall is a call of the model.
type drawnCall struct {
	tool, arguments string
	malformed       bool
	invalid         bool
}

func drawCall(t *rapid.T) drawnCall {
	c := drawnCall{tool: rapid.SampledFrom(toolNames).Draw(t, "tool")}
	c.arguments, c.invalid = fitting(c.tool), c.tool == "unknown"
	switch rapid.IntRange(0, 7).Draw(t, "arguments") {
	case 0:
		c.arguments, c.malformed = `{"x":1,"x":2}`, true
	case 1:
		c.arguments, c.invalid = `{"surprise":true}`, true
	}
	return c
}

// fate is a call's expected outcome.
type fate struct {
	what string // run, answer, ask, stop, abort
	by   string
	mock string // who answers in the tool's place
	code agent.ReasonCode
}

// fateOf returns the rules, written again: Stop > Deny > Ask > Mock > Allow, in turn.
func fateOf(c drawnCall, controls []drawnHook) fate {
	if c.malformed {
		return fate{what: "answer", code: agent.ReasonMalformed}
	}
	f, invalid := fate{what: "run"}, c.invalid
	for _, h := range controls {
		if !h.concerns(c.tool) {
			continue
		}
		outcome := h.does
		if outcome == "rewrite well" && c.tool == "unknown" {
			outcome = "rewrite badly"
			h.does = outcome
		}
		if slices.Contains([]string{"rewrite badly", "fail", "panic", "hang", "foreign"}, outcome) {
			outcome = h.fails()
		}
		switch outcome {
		case "deny":
			return fate{what: "answer", by: h.name, code: agent.ReasonDenied}
		case "closed":
			return fate{what: "answer", by: h.name, code: agent.ReasonHookFailed}
		case "stop", "abort":
			return fate{what: outcome, by: h.name}
		case "ask":
			f.by, f.what = cmp.Or(f.by, h.name), "ask"
		case "mock":
			f.mock = cmp.Or(f.mock, h.name)
		case "rewrite well":
			invalid = false
		}
	}
	switch {
	case invalid && c.tool == "unknown":
		return fate{what: "answer", code: agent.ReasonUnknownTool}
	case invalid:
		return fate{what: "answer", code: agent.ReasonInvalid}
	}
	return f
}

// scene is a step of a model with all hooks that decide in it.
type scene struct {
	before, after []drawnHook
	calls         []drawnCall
	ids           []string // as the model gave them
	verdict       agent.ApprovalVerdict
	noApprover    bool
	observed      bool
	width         int
}

func drawScene(t *rapid.T) scene {
	var s scene
	for i := range rapid.IntRange(0, 4).Draw(t, "hooks before") {
		s.before = append(s.before, drawHook(t, i, beforeDoes))
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "hooks after") {
		s.after = append(s.after, drawHook(t, 10+i, afterDoes))
	}
	for range rapid.IntRange(1, 4).Draw(t, "calls") {
		s.calls = append(s.calls, drawCall(t))
		s.ids = append(s.ids, rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "id"))
	}
	s.verdict = rapid.SampledFrom([]agent.ApprovalVerdict{agent.Approve, agent.RejectAndContinue, agent.RejectAndEnd}).Draw(t, "verdict")
	s.noApprover = rapid.Bool().Draw(t, "no approver")
	s.observed = rapid.Bool().Draw(t, "observed")
	s.width = rapid.IntRange(0, 4).Draw(t, "parallel")
	return s
}

// play returns how a run of the scene ends, and the ids of the calls whose tools ran.
func (s scene) play(t *testing.T, rt *rapid.T) (final agent.State, ran []string, err error) {
	t.Helper()
	t.Helper()
	list := append(lo.Map(s.before, func(h drawnHook, _ int) hooks.Hook { return h.before() }),
		lo.Map(s.after, func(h drawnHook, _ int) hooks.Hook { return h.after() })...)
	var shop workshop
	more := []capability.Capability{parallel(s.width), shop.capability()}
	if !s.noApprover {
		more = append(more, approving(s.verdict))
	}
	var recorder *agenttest.Recorder
	if s.observed {
		recorder = agenttest.Record()
	}
	calls := lo.Map(s.calls, func(c drawnCall, i int) agent.ToolCall {
		return agent.ToolCall{ID: s.ids[i], Name: c.tool, Arguments: c.arguments}
	})
	driver := agenttest.Script(agenttest.Reply(agent.Step{Message: agent.Assistant("", calls...)})).Then(agenttest.Say("done"))
	more = append(more, capability.UseLater(capability.Later{Tools: []string{"unknown"}})) // hooks are drawn for it, too
	a := hookedAgent(rt, driver, recorder, list, more...)
	inBubble(t, func() { final, err = a.Run(context.Background(), agent.NewState(), agent.UserText("go")).Get() })
	if failed, ok := errors.AsType[*agent.RunError](err); ok {
		final = failed.State
	}
	return final, shop.ids, err
}

// fates returns what must become of the calls, and which of them ended it; -1 is none.
func (s scene) fates() (fates []fate, end int) {
	controls := slices.Clone(s.before)
	slices.SortStableFunc(controls, func(a, b drawnHook) int { return b.priority - a.priority })
	fates = lo.Map(s.calls, func(c drawnCall, _ int) fate { return fateOf(c, controls) })
	end = slices.IndexFunc(fates, func(f fate) bool { return f.what == "stop" || f.what == "abort" })
	for i, f := range fates {
		switch {
		case end >= 0 && (i > end || i < end && f.what != "answer"):
			fates[i] = fate{what: "answer", code: agent.ReasonRunStopped}
		case f.what == "ask" && s.noApprover:
			fates[i] = fate{what: "answer", code: agent.ReasonNobodyToAsk}
		case f.what == "ask" && s.verdict != agent.Approve:
			fates[i] = fate{what: "answer", code: agent.ReasonRejected}
		}
	}
	return fates, end
}

// losesResults reports whether a hook after a call may fail the run, and the result
// with it.
func (s scene) losesResults() bool {
	return slices.ContainsFunc(s.after, func(h drawnHook) bool {
		return slices.Contains([]string{"fail", "panic", "hang", "foreign"}, h.does) && h.fails() == "abort"
	})
}

// IP-22, IP-49: for all hooks, every call has exactly one answer; a tool
// does not run if a control denied, stopped or mocked the call or could not decide; and
// the outcome of each call follows from the rules, in any order.
func TestToolHooksKeepTheRules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt)
		final, ran, err := s.play(t, rt)
		requireOneAnswerEach(rt, final, len(s.calls))

		fates, end := s.fates()
		results := work{ending{State: final}, nil}.results()
		asked := final.Message(1)
		for i, f := range fates {
			runs := f.what != "answer" && f.what != "stop" && f.what != "abort" && f.mock == ""
			require.Equal(rt, runs, slices.Contains(ran, asked.Call(i).ID), "call %d: %v: whether the tool ran", i, f)
			if !s.losesResults() {
				requireFate(rt, f, results[i], runs)
			}
		}
		require.Len(rt, lo.Uniq(ran), len(ran), "no tool ran twice")

		switch {
		case err != nil:
			_, hook := errors.AsType[*hooks.HookError](err)
			require.True(rt, hook, "only a hook that aborts fails the run: %v", err)
			require.Equal(rt, agent.StatusFailed, final.Status())
		case end >= 0:
			require.Equal(rt, "stop", fates[end].what, "a hook that aborts fails the run")
			require.Equal(rt, agent.StatusStopped, final.Status())
		default:
			require.Contains(rt, []agent.Status{agent.StatusDone, agent.StatusStopped, agent.StatusInterrupted}, final.Status())
		}
	})
}

// requireOneAnswerEach holds the transcript to its order: what the model asked, then
// an answer for each call, under an id of its own.
func requireOneAnswerEach(t *rapid.T, final agent.State, calls int) {
	asked := final.Message(1)
	require.Equal(t, calls, asked.CallCount())
	ids := map[string]bool{}
	for i, call := range asked.Calls() {
		answer := final.Message(2 + i)
		require.Equal(t, agent.RoleTool, answer.Role())
		require.Equal(t, call.ID, answer.CallID())
		require.False(t, ids[call.ID], "an id of its own")
		ids[call.ID] = true
		require.NotEmpty(t, answer.Text())
	}
	if final.MessageCount() > 2+calls {
		require.NotEqual(t, agent.RoleTool, final.Message(2+calls).Role())
	}
}

func requireFate(t *rapid.T, f fate, r *agent.ToolResult, runs bool) {
	switch {
	case runs:
		require.True(t, r.Executed())
		require.Positive(t, r.Attempts)
	case f.mock != "" && f.what != "answer":
		require.Equal(t, agent.ToolMocked, r.Status)
		require.Zero(t, r.Attempts)
	default:
		require.Equal(t, agent.ToolNotExecuted, r.Status)
		require.Zero(t, r.Attempts)
		if f.code != "" && r.Reason != agent.ReasonWithheld {
			require.Equal(t, f.code, r.Reason)
		}
	}
}

// inBubble calls f where time is fake, and waits until all that it started is done.
func inBubble(t *testing.T, f func()) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		f()
		synctest.Wait()
	})
}

// IP-117: hooks that only observe do not change a byte of the state, also when they
// fail, hang or are detached.
func TestToolObserversLeaveNoTrace(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		observe := func(d drawnHook) hooks.Hook {
			return hooks.ObserveAll(d.name, func(ctx context.Context, _ hooks.Context) error {
				switch d.does {
				case "fail":
					return errPaper
				case "panic":
					panic("boom")
				case "hang":
					<-ctx.Done()
				}
				return nil
			}, hooks.PreToolUse, hooks.PostToolUse, hooks.ToolFailed).WithPriority(d.priority)
		}
		var list []hooks.Hook
		for i := range rapid.IntRange(1, 3).Draw(t, "observers") {
			d := drawHook(t, i, []string{"pass", "fail", "panic", "hang"})
			h := observe(d)
			if d.limited {
				h = h.WithTimeout(time.Second)
			}
			if d.priority > 0 {
				h = h.Detach()
			}
			list = append(list, h)
		}
		turn := agenttest.Say("")
		for range rapid.IntRange(1, 3).Draw(t, "calls") {
			c := drawCall(t)
			turn = turn.Call(c.tool, c.arguments)
		}
		width := rapid.IntRange(1, 3).Draw(t, "parallel")
		play := func(list []hooks.Hook) []byte {
			var shop workshop
			a := hookedAgent(t, agenttest.Script(turn, agenttest.Say("done")), nil, list, shop.capability(), parallel(width))
			var final agent.State
			var err error
			inBubble(outer, func() {
				final, err = a.Run(context.Background(), agent.NewState(), agent.UserText("go")).Get()
				a.Cancel()
			})
			require.NoError(t, err)
			var form map[string]any
			text, err := json.Marshal(final)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &form))
			for _, changing := range []string{"run", "session", "steps"} { // ids and times
				delete(form, changing)
			}
			text, err = json.Marshal(form)
			require.NoError(t, err)
			return text
		}
		assert.Equal(t, string(play(nil)), string(play(list)))
	})
}
