package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// wrapped returns an executor with hooks around it.
func wrapped(t testing.TB, inner agent.Executor, list ...hooks.Hook) agent.Executor {
	t.Helper()
	compiled, err := hooks.NewSet(list...).Compile("bash", "read_file", "probe")
	require.NoError(t, err)
	return compiled.WrapExecutor(inner)
}

// runOn runs a script on an agent with no more than an executor.
func runOn(t testing.TB, x agent.Executor, turn agenttest.Turn, config agent.Config) work {
	t.Helper()
	w := work{ending: ending{recorder: agenttest.Record(), driver: agenttest.Script(turn).Then(agenttest.Say("done"))}}
	config.Name, config.Driver, config.Executor, config.Observer = "tester", w.driver, x, w.recorder
	a, err := agent.New(config).Get()
	require.NoError(t, err)
	w.State, w.err = a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	if failed, ok := errors.AsType[*agent.RunError](w.err); ok {
		w.State = failed.State
	}
	return w
}

// The wrapper is an executor like any other, whatever the hooks, as long as they
// have nothing against the calls.
func TestHookedExecutorKeepsTheContract(t *testing.T) {
	for name, list := range map[string][]hooks.Hook{
		"controls":  {before("b", allow), after("a", func(c hooks.ToolResultContext) hooks.Result { return c.Allow() })},
		"effects":   {before("b", func(c hooks.ToolContext) hooks.Result { return c.Allow(note.Set("x")) })},
		"observers": {hooks.ObserveAll("o", func(context.Context, hooks.Context) error { return nil })},
		"limited":   {before("b", allow).WithTimeout(1e9)},
		"rewriting": {before("b", func(c hooks.ToolContext) hooks.Result { return c.Rewrite(rawArguments(c)) })},
	} {
		t.Run(name, func(t *testing.T) {
			agenttest.TestExecutor(t, func(t *testing.T, tools agenttest.Tools) agent.Executor {
				t.Helper()
				return wrapped(t, tools.Executor(), list...)
			})
		})
	}
}

func rawArguments(c hooks.ToolContext) map[string]any {
	var out map[string]any
	_ = c.Call().Decode(&out)
	return out
}

// careless is an executor that says no more than it must, and leaves the rest to
// the loop.
type careless struct {
	ran     atomic.Int32
	sayCall bool // it says what is to run, though not what was asked
}

func (x *careless) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	if x.sayCall {
		return mo.Ok(&agent.Prepared{Call: c})
	}
	return mo.Ok(&agent.Prepared{})
}

func (x *careless) Execute(_ context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Disposition != agent.DisposeRun {
		return mo.Ok(p.Answer)
	}
	x.ran.Add(1)
	return mo.Ok(&agent.ToolResult{Content: agent.TextContent("ran " + p.Call.Arguments)})
}

// Hooks see which call it is and what became of it, however little the executor
// says.
func TestHooksAroundACarelessExecutor(t *testing.T) {
	for _, x := range []*careless{{}, {sayCall: true}} {
		testHooksAroundACarelessExecutor(t, x)
	}
}

func testHooksAroundACarelessExecutor(t *testing.T, x *careless) {
	t.Helper()
	var seen []string
	w := runOn(t, wrapped(t, x,
		before("guard", func(c hooks.ToolContext) hooks.Result {
			seen = append(seen, fmt.Sprint("before ", c.Tool(), " ", c.Call().ID, " ", c.Original().ID, " ", c.Index()))
			if c.Tool() == "bash" {
				return c.Deny("no")
			}
			return c.Rewrite(map[string]any{"path": "b.txt"})
		}),
		after("look", func(c hooks.ToolResultContext) hooks.Result {
			r := c.Result()
			seen = append(seen, fmt.Sprint("after ", r.Tool(), " ", r.CallID(), " ", c.Index(), " ", c.Status(), " ", c.Text()))
			return c.Allow()
		}),
	), wants("read_file", file, "bash", ls), agent.Config{})
	require.NoError(t, w.err)
	assert.Equal(t, []string{
		"before read_file call_1_1 call_1_1 0", "before bash call_1_2 call_1_2 1",
		`after read_file call_1_1 0 executed ran {"path":"b.txt"}`,
		`after bash call_1_2 1 not_executed tool "bash": denied by guard: no`,
	}, seen)
	assert.Equal(t, int32(1), x.ran.Load())
}

// A call with ambiguous arguments is answered before a hook is asked, even if the
// executor does not check arguments, because the tool must receive the arguments that a
// rule saw.
func TestMalformedArgumentsReachNoControl(t *testing.T) {
	for name, arguments := range map[string]string{
		"no JSON": `{"command":`, "no object": `[1]`, "text behind": `{} {}`, "twice": `{"command":"ls","command":"rm -rf /"}`,
		"only case differs": `{"command":"ls","Command":"rm -rf /"}`, "twice, deep": `{"a":{"b":1,"b":2}}`,
		"bad UTF-8": "{\"command\":\"\xff\"}",
	} {
		t.Run(name, func(t *testing.T) {
			asked, told := 0, ""
			list := []hooks.Hook{
				before("guard", func(c hooks.ToolContext) hooks.Result { asked++; return c.Allow() }),
				hooks.Observe(hooks.AtPostToolUse, "told", func(_ context.Context, c hooks.ToolResultContext) error {
					r := c.Result()
					told = string(r.Reason)
					return nil
				}),
			}
			x := &careless{}
			careless := runOn(t, wrapped(t, x, list...), wants("bash", arguments), agent.Config{})
			assert.Zero(t, x.ran.Load())
			assert.Equal(t, agent.ReasonMalformed, careless.result(0).Reason)
			assert.Equal(t, "malformed_arguments", told, "they are answered, and that is seen")
			assert.Equal(t, "done", careless.Answer())

			strict := workWith(t, list, wants("bash", arguments))
			assert.Empty(t, strict.ran)
			assert.Equal(t, agent.ReasonMalformed, strict.result(0).Reason)
			assert.Zero(t, asked)
		})
	}
	t.Run("only for tools that hooks concern", func(t *testing.T) {
		x := &careless{}
		runOn(t, wrapped(t, x, before("guard", allow, hooks.ToolNamed("read_file"))), wants("bash", `no JSON`), agent.Config{})
		assert.Equal(t, int32(1), x.ran.Load())
	})
}

// Hooks do not receive calls without one strict reading either, whether the executor looks at arguments or not.
func TestRewriteIntoMalformed(t *testing.T) {
	for name, arguments := range map[string]any{
		"no object": []int{1}, "text": "ls", "nothing": nil,
		"only case differs": map[string]any{"a": 1, "A": 2}, "bad UTF-8": map[string]any{"a": "\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			x := &careless{}
			w := runOn(t, wrapped(t, x, before("clumsy", rewriteTo(arguments)).WithFailure(hooks.Open)), wants("bash", ls), agent.Config{})
			assert.Zero(t, x.ran.Load())
			assert.Equal(t, agent.ReasonHookFailed, w.result(0).Reason)
		})
	}
}

// Calls that break their tool's schema, or that no tool has the name of, reach the
// hooks with what is wrong: a denial wins, a rewrite mends, otherwise the model gets
// the complaint. Nothing else makes them run, and no request is sent about them.
func TestInvalidCalls(t *testing.T) {
	const invalid = `{"command":7}`
	for name, tc := range map[string]struct {
		answer func(hooks.ToolContext) hooks.Result
		reason agent.ReasonCode
		ran    bool
		frozen hooks.Decision
	}{
		"pass":    {func(hooks.ToolContext) hooks.Result { return hooks.Result{} }, agent.ReasonInvalid, false, hooks.Pass},
		"allow":   {allow, agent.ReasonInvalid, false, hooks.Pass},
		"mock":    {mock("mocked"), agent.ReasonInvalid, false, hooks.Pass},
		"ask":     {ask("sure?"), agent.ReasonInvalid, false, hooks.Pass},
		"deny":    {deny("no"), agent.ReasonDenied, false, hooks.Deny},
		"stop":    {stop("halt"), agent.ReasonRunStopped, false, hooks.StopRun},
		"rewrite": {rewriteTo(map[string]any{"command": "ls"}), "", true, hooks.Rewrite},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong error
			var frozen hooks.Decision
			w := workWith(t, []hooks.Hook{
				before("h", func(c hooks.ToolContext) hooks.Result { wrong = c.Invalid(); return tc.answer(c) }),
				hooks.Observe(hooks.AtPreToolUse, "spy", func(_ context.Context, c hooks.ToolContext) error { frozen = c.Frozen().Decision(); return nil }),
			}, wants("bash", invalid))
			require.NoError(t, w.err)
			_, ok := errors.AsType[*agent.ArgumentsError](wrong)
			assert.True(t, ok, "%v", wrong)
			assert.Equal(t, tc.ran, len(w.ran) == 1)
			assert.Equal(t, tc.reason, w.result(0).Reason)
			assert.Equal(t, tc.frozen, frozen, "the outcome that counts")
			assert.Equal(t, name == "stop", w.Status() == agent.StatusStopped)
		})
	}
	w := workWith(t, []hooks.Hook{before("h", func(c hooks.ToolContext) hooks.Result { assert.Error(t, c.Invalid()); return c.Deny("no such thing") })},
		wants("basch", ls))
	assert.Equal(t, agent.ReasonDenied, w.result(0).Reason)
}

// Hooks around hooks, as when an agent inherits another's: each is asked once, and
// no outer answer makes less of what an inner one decided.
func TestHooksAroundHooks(t *testing.T) {
	answers := map[hooks.Decision]func(hooks.ToolContext) hooks.Result{
		hooks.Pass: func(hooks.ToolContext) hooks.Result { return hooks.Result{} },
		hooks.Allow: func(c hooks.ToolContext) hooks.Result {
			return c.Allow(note.Set(note.Or(c.State(), "")+"x"), agent.AddMessage(agent.UserText("allowed")))
		},
		hooks.Mock: mock("mocked"), hooks.Ask: ask("sure?"), hooks.Deny: deny("no"), hooks.StopRun: stop("halt"),
	}
	rank := map[hooks.Decision]int{hooks.Pass: 0, hooks.Allow: 0, hooks.Mock: 1, hooks.Ask: 2, hooks.Deny: 3, hooks.StopRun: 4}
	for outer := range answers {
		for inner := range answers {
			t.Run(fmt.Sprintf("%s around %s", outer, inner), func(t *testing.T) {
				calls := map[string]int{}
				count := func(name string) hooks.Hook {
					return after(name, func(c hooks.ToolResultContext) hooks.Result { calls[name]++; return c.Allow() })
				}
				x := &careless{}
				inside := wrapped(t, x, before("inner", func(c hooks.ToolContext) hooks.Result { calls["inner"]++; return answers[inner](c) }), count("inner-after"))
				outside := wrapped(t, inside, before("outer", func(c hooks.ToolContext) hooks.Result { calls["outer"]++; return answers[outer](c) }), count("outer-after"))
				questions := 0
				w := runOn(t, outside, wants("bash", ls), agent.Config{Approver: agent.ApproverFunc(
					func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
						questions++
						return agent.Approval{Verdict: agent.Approve}, nil
					})})
				require.NoError(t, w.err)
				assert.Equal(t, map[string]int{"inner": 1, "outer": 1, "inner-after": 1, "outer-after": 1}, calls)
				strongest := max(rank[outer], rank[inner])
				mocked := outer == hooks.Mock || inner == hooks.Mock
				added := strings.Repeat("x", lo.Count([]hooks.Decision{outer, inner}, hooks.Allow))
				assert.Equal(t, added, note.Or(w.State, ""), "what both added")
				assert.Equal(t, len(added), strings.Count(agenttest.Transcript(w.State), "allowed"))
				assert.Equal(t, strongest == 2, questions == 1, "whether a person was asked")
				assert.Equal(t, strongest <= 2 && !mocked, x.ran.Load() == 1, "whether the tool ran")
				switch strongest {
				case 4:
					assert.Equal(t, agent.StatusStopped, w.Status())
				case 3:
					assert.Equal(t, agent.ReasonDenied, w.result(0).Reason)
				default:
					assert.Equal(t, mocked, w.result(0).Mocked())
				}
			})
		}
	}
}

// Hooks after a call only, around hooks before it only, and the other way round.
func TestHooksAroundHooksOfOtherPoints(t *testing.T) {
	for _, swapped := range []bool{false, true} {
		reviewed := 0
		first := []hooks.Hook{before("b", func(c hooks.ToolContext) hooks.Result { return c.Allow(note.Set("x")) })}
		second := []hooks.Hook{after("a", func(c hooks.ToolResultContext) hooks.Result {
			reviewed++
			assert.Equal(t, "x", note.Or(c.State(), ""), "what hooks before the call added")
			return c.Replace("reviewed " + c.Text())
		})}
		if swapped {
			first, second = second, first
		}
		w := runOn(t, wrapped(t, wrapped(t, &careless{}, first...), second...), wants("bash", ls), agent.Config{})
		require.NoError(t, w.err)
		assert.Equal(t, 1, reviewed)
		assert.Equal(t, "reviewed ran "+ls, w.result(0).Text())
		assert.Equal(t, "x", note.Or(w.State, ""))
	}
}

// An error of the executor fails the run and does not count as a failure of a hook,
// when it prepares a call, checks a rewrite or executes.
func TestBrokenExecutor(t *testing.T) {
	broken := errors.New("connection lost")
	for name, x := range map[string]*breaking{
		"prepare": {onPrepare: 1, err: broken}, "checking a rewrite": {onPrepare: 2, err: broken}, "execute": {onExecute: 1, err: broken},
		"prepares nothing": {onPrepare: 1}, "checks into nothing": {onPrepare: 2}, "answers nothing": {onExecute: 1},
	} {
		t.Run(name, func(t *testing.T) {
			policy := hooks.Retry(3, 0, hooks.Open)
			w := runOn(t, wrapped(t, x, before("tidy", rewriteTo(map[string]any{"command": "pwd"})).WithFailure(policy),
				after("a", func(c hooks.ToolResultContext) hooks.Result { return c.Allow() })), wants("bash", ls), agent.Config{})
			require.Error(t, w.err)
			if x.err != nil {
				require.ErrorIs(t, w.err, broken)
			}
			_, hook := errors.AsType[*hooks.HookError](w.err)
			assert.False(t, hook)
			assert.Empty(t, w.events(hooks.HookFailed))
			assert.LessOrEqual(t, x.prepared, 2, "nothing is tried again")
			assert.Len(t, w.results(), 1, "the call has an answer all the same")
		})
	}
}

type breaking struct {
	prepared, executed   int
	onPrepare, onExecute int
	err                  error
}

func (x *breaking) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	if x.prepared++; x.prepared == x.onPrepare {
		return mo.TupleToResult[*agent.Prepared](nil, x.err)
	}
	return mo.Ok(&agent.Prepared{Original: c, Call: c})
}

func (x *breaking) Execute(context.Context, agent.State, *agent.Prepared) mo.Result[*agent.ToolResult] {
	if x.executed++; x.executed == x.onExecute {
		return mo.TupleToResult[*agent.ToolResult](nil, x.err)
	}
	return mo.Ok(&agent.ToolResult{})
}

// Tools that the set was not compiled for are found as they come, however many are
// known.
func TestManyAndUnknownTools(t *testing.T) {
	for _, known := range []int{0, 1, 16, 17, 200} {
		t.Run(fmt.Sprint(known, " known"), func(t *testing.T) {
			var tools []string
			for i := range known {
				tools = append(tools, fmt.Sprintf("tool_%03d", i))
			}
			asked := map[string]int{}
			compiled, err := hooks.NewSet(
				before("even", func(c hooks.ToolContext) hooks.Result { asked[c.Tool()]++; return c.Pass() }, hooks.ToolMatching("/[02468]$/")),
				before("all", func(c hooks.ToolContext) hooks.Result { asked[c.Tool()]++; return c.Pass() }),
			).Compile(tools...)
			require.NoError(t, err)
			x := compiled.WrapExecutor(&careless{})
			for _, tool := range append(tools, "unknown", "unknown_2", "") {
				_, err := x.Prepare(t.Context(), agent.State{}, &agent.ToolCall{ID: "c", Name: tool, Arguments: `{}`}).Get()
				require.NoError(t, err)
			}
			for i, tool := range tools {
				assert.Equal(t, 1+(1-i%2), asked[tool], tool)
			}
			assert.Equal(t, 1, asked["unknown"])
			assert.Equal(t, 2, asked["unknown_2"])
			assert.Equal(t, 1, asked[""])
		})
	}
}
