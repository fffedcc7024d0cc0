package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

const (
	ls   = `{"command":"ls"}`
	file = `{"path":"a.txt"}`
)

// IP-19, IP-40, IP-41, IP-48, LH-49, X-13: a denied call is answered under its own id,
// as an error that names the hook and the reason; the tool does not run, and the
// model gets its next turn.
func TestDeny(t *testing.T) {
	var seen agent.ToolResult
	denied := false
	w := workWith(t, []hooks.Hook{
		before("guard", deny("not on a Sunday")),
		hooks.Observe(hooks.AtPostToolUse, "audit", func(_ context.Context, c hooks.ToolResultContext) error {
			seen, denied = c.Result(), c.Denied()
			return nil
		}),
	}, wants("bash", ls))
	require.NoError(t, w.err)
	assert.Empty(t, w.ran)
	assert.Equal(t, []string{`call_1_1 bash not_executed: tool "bash": denied by guard: not on a Sunday`}, w.answers())
	assert.Equal(t, agent.StatusDone, w.Status(), "the run goes on")
	assert.Equal(t, "done", w.Answer())

	r := w.result(0)
	assert.True(t, r.IsError())
	assert.True(t, r.Denied())
	assert.Equal(t, agent.ToolNotExecuted, r.Status)
	assert.Equal(t, agent.ReasonDenied, r.Reason)
	assert.Equal(t, "guard", r.DecidedBy)
	assert.Zero(t, r.Attempts)
	assert.Zero(t, r.Duration)
	wrong, ok := errors.AsType[*hooks.DeniedError](r.Err)
	require.True(t, ok)
	assert.Equal(t, hooks.DeniedError{Tool: "bash", Hook: "guard", Reason: "not on a Sunday"}, *wrong)

	assert.True(t, denied, "the observer is told of denied calls, too")
	assert.Equal(t, r.Content, seen.Content)
	assert.Equal(t, "call_1_1", seen.CallID())
}

// an empty reason is still a denial.
func TestDenyWithoutReason(t *testing.T) {
	w := workWith(t, []hooks.Hook{before("guard", deny(""))}, wants("bash", ls))
	assert.Empty(t, w.ran)
	assert.Equal(t, []string{`call_1_1 bash not_executed: tool "bash": denied by guard: no reason given`}, w.answers())
}

// IP-22, IP-49, X-02: in a batch, each denied call has its own answer with its own
// reason, and the others run.
func TestDenyInABatch(t *testing.T) {
	for _, width := range []int{1, 4} {
		t.Run(fmt.Sprint(width, " at once"), func(t *testing.T) {
			w := workWith(t, []hooks.Hook{
				before("no-bash", deny("no shell here"), hooks.ToolNamed("bash")),
				before("no-writes", deny("read only"), hooks.ToolNamed("write_file")),
			}, wants("bash", ls, "read_file", file, "write_file", file, "bash", `{"command":"pwd"}`), parallel(width))
			require.NoError(t, w.err)
			assert.Equal(t, []string{"read_file " + file}, w.ran)
			assert.Equal(t, []string{
				`call_1_1 bash not_executed: tool "bash": denied by no-bash: no shell here`,
				`call_1_2 read_file executed: content of a.txt`,
				`call_1_3 write_file not_executed: tool "write_file": denied by no-writes: read only`,
				`call_1_4 bash not_executed: tool "bash": denied by no-bash: no shell here`,
			}, w.answers())

			blocked := w.events(hooks.HookBlocked)
			require.Len(t, blocked, 3, "one for each denied call") // IP-49
			assert.Equal(t, "no-writes", blocked[1].Hook)
			assert.Equal(t, "write_file", blocked[1].Call.Name)
			assert.Equal(t, file, blocked[1].Call.Arguments)
			assert.Equal(t, "read only", blocked[1].Reason)
			assert.Equal(t, hooks.Deny, blocked[1].Decision)
		})
	}
}

// IP-20, IP-22, X-01, X-12: a stop keeps all calls of the step from running, those
// that were allowed before it included, and ends the run. Each call has an answer.
func TestStop(t *testing.T) {
	for _, width := range []int{1, 4} {
		t.Run(fmt.Sprint(width, " at once"), func(t *testing.T) {
			told := []string{}
			w := workWith(t, []hooks.Hook{
				before("fuse", stop("too hot"), hooks.ToolNamed("write_file")),
				before("no-bash", deny("no shell"), hooks.ToolNamed("bash")),
				hooks.Observe(hooks.AtPreToolUse, "told", func(_ context.Context, c hooks.ToolContext) error {
					told = append(told, c.Tool()+" "+string(c.Frozen().Decision()))
					return nil
				}),
			}, wants("read_file", file, "bash", ls, "write_file", file, "read_file", file), parallel(width))
			require.NoError(t, w.err)
			assert.Empty(t, w.ran)
			assert.Equal(t, agent.StatusStopped, w.Status())
			assert.Equal(t, agent.Signal{Reason: agent.StopByHook, Message: "too hot", Source: "fuse"}, w.signal())
			assert.Equal(t, []string{
				`call_1_1 read_file not_executed: not executed: run stopped by fuse: too hot`,
				`call_1_2 bash not_executed: tool "bash": denied by no-bash: no shell`,
				`call_1_3 write_file not_executed: not executed: run stopped by fuse: too hot`,
				`call_1_4 read_file not_executed: not executed: run stopped by fuse: too hot`,
			}, w.answers())
			assert.Len(t, w.driver.Calls(), 1, "the model is not asked again")
			assert.Equal(t, []string{"read_file pass", "bash deny", "write_file stop"}, told, "the first stop ends the asking")
		})
	}
}

// LH-48: Stop > Deny > Ask > Mock > Allow, in any order of hooks, except that no control
// is asked after the first Stop or Deny.
func TestStrongestAnswerWins(t *testing.T) {
	answers := map[hooks.Decision]func(hooks.ToolContext) hooks.Result{
		hooks.Pass:  func(hooks.ToolContext) hooks.Result { return hooks.Result{} },
		hooks.Allow: allow, hooks.Mock: mock("mocked"), hooks.Ask: ask("sure?"),
		hooks.Deny: deny("no"), hooks.StopRun: stop("halt"),
	}
	weakestFirst := []hooks.Decision{hooks.Pass, hooks.Allow, hooks.Mock, hooks.Ask, hooks.Deny, hooks.StopRun}
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SliceOfN(rapid.SampledFrom(weakestFirst), 1, 6).Draw(t, "answers")
		var list []hooks.Hook
		var want hooks.Decision
		for i, decision := range given {
			list = append(list, before(fmt.Sprint(i), answers[decision]))
			decided := want == hooks.Deny || want == hooks.StopRun
			if !decided && lo.IndexOf(weakestFirst, decision) >= lo.IndexOf(weakestFirst, want) {
				want = decision
			}
		}
		got := hooks.Decision("")
		list = append(list, hooks.Observe(hooks.AtPreToolUse, "spy", func(_ context.Context, c hooks.ToolContext) error {
			got = c.Frozen().Decision()
			return nil
		}))
		if want == hooks.Allow {
			want = hooks.Pass
		}
		var shop workshop
		a := hookedAgent(t, agenttest.Script(wants("bash", ls)).Then(agenttest.Say("done")), nil, list,
			shop.capability(), approving(agent.Approve))
		final, err := a.Run(context.Background(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, want, got)
		first := work{ending{State: final}, shop.ran}.result(0)
		mocked := lo.Contains(given, hooks.Mock)
		switch want {
		case hooks.StopRun:
			assert.Equal(t, agent.StatusStopped, final.Status())
			assert.Equal(t, agent.ReasonRunStopped, first.Reason)
		case hooks.Deny:
			assert.Equal(t, agent.ReasonDenied, first.Reason)
		default: // an approved call is answered by the mock, if there is one
			assert.Equal(t, lo.Ternary(mocked, agent.ToolMocked, agent.ToolExecuted), first.Status)
		}
		assert.Equal(t, want != hooks.StopRun && want != hooks.Deny && !mocked, len(shop.ran) == 1, "whether the tool ran")
	})
}

// LH-43: after a denial no further control is asked about this call; other calls are not
// affected.
func TestDenialEndsTheAskingAboutItsCallOnly(t *testing.T) {
	var asked []string
	w := workWith(t, []hooks.Hook{
		before("no-bash", deny("no"), hooks.ToolNamed("bash")),
		before("later", func(c hooks.ToolContext) hooks.Result { asked = append(asked, c.Tool()); return c.Allow() }),
	}, wants("bash", ls, "read_file", file))
	require.NoError(t, w.err)
	assert.Equal(t, []string{"read_file"}, asked)
}

// IP-111: an approved call runs; a rejected one, and the lack of an approver
// there, keeps it from running.
func TestAsk(t *testing.T) {
	for _, tc := range []struct {
		name   string
		more   []capability.Capability
		ran    bool
		status agent.Status
		reason agent.ReasonCode
		text   string
	}{
		{"yes", []capability.Capability{approving(agent.Approve)}, true, agent.StatusDone, "", "ran ls"},
		{"no", []capability.Capability{approving(agent.RejectAndEnd)}, false, agent.StatusInterrupted, agent.ReasonRejected, `tool "bash": rejected by ann: because`},
		{"no, go on", []capability.Capability{approving(agent.RejectAndContinue)}, false, agent.StatusDone, agent.ReasonRejected, `tool "bash": rejected by ann: because`},
		{"no approver", nil, false, agent.StatusDone, agent.ReasonNobodyToAsk, `tool "bash": denied by careful: needs approval (deletes files) and there is no person to ask`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := workWith(t, []hooks.Hook{before("careful", ask("deletes files"))}, wants("bash", ls), tc.more...)
			require.NoError(t, w.err)
			assert.Equal(t, tc.ran, len(w.ran) == 1)
			assert.Equal(t, tc.status, w.Status())
			assert.Equal(t, tc.reason, w.result(0).Reason)
			assert.Equal(t, tc.text, w.result(0).Text())
		})
	}
}

// The person is asked about the effective call, once, with all that hooks added.
func TestAskShowsTheEffectiveCall(t *testing.T) {
	var pending []*agent.Prepared
	w := workWith(t, []hooks.Hook{
		before("first", ask("is it safe?")),
		before("tidy", rewriteTo(map[string]any{"command": "ls -l"})),
		before("second", ask("really?")),
	}, wants("bash", ls), capability.UseApproval(agent.ApproverFunc(
		func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
			pending = append(pending, p)
			return agent.Approval{Verdict: agent.Approve}, nil
		})))
	require.NoError(t, w.err)
	require.Len(t, pending, 1)
	assert.Equal(t, agent.Questions{{By: "first", Reason: "is it safe?"}, {By: "second", Reason: "really?"}}, pending[0].Questions())
	assert.JSONEq(t, `{"command":"ls -l"}`, pending[0].Call.Arguments)
	assert.JSONEq(t, ls, pending[0].Original.Arguments)
	assert.Equal(t, []string{`bash {"command":"ls -l"}`}, w.ran, "what was approved is what runs")
}

// IP-43, LH-25, LH-27, LH-34: a mock answers instead of the tool.
func TestMock(t *testing.T) {
	type facts struct {
		tool, args, id, run string
		index, step         int
	}
	var asked, reviewed []facts
	w := workWith(t, []hooks.Hook{
		before("fixture", func(c hooks.ToolContext) hooks.Result {
			asked = append(asked, facts{c.Tool(), c.Call().Arguments, c.Call().ID, string(c.Run().ID), c.Index(), c.StepIndex()})
			if c.Tool() != "bash" {
				return c.Pass()
			}
			return c.Mock("file1")
		}),
		after("review", func(c hooks.ToolResultContext) hooks.Result {
			reviewed = append(reviewed, facts{c.Tool(), c.Call().Arguments, c.Call().ID, string(c.Run().ID), c.Index(), c.StepIndex()})
			if r := c.Result(); r.Mocked() {
				assert.Zero(t, r.Attempts)
				return c.Replace(strings.ToUpper(c.Text()))
			}
			return c.Pass()
		}),
	}, wants("read_file", file, "bash", ls))
	require.NoError(t, w.err)
	assert.Equal(t, []string{"read_file " + file}, w.ran, "the mocked tool does not run")
	assert.Equal(t, []string{"call_1_1 read_file executed: content of a.txt", "call_1_2 bash mocked: FILE1"}, w.answers())
	r := w.result(1)
	assert.True(t, r.Mocked())
	assert.False(t, r.IsError())
	assert.Equal(t, "review", r.DecidedBy)
	assert.Zero(t, r.Attempts) // LH-34
	run := string(w.Run().ID)
	assert.Equal(t, []facts{{"read_file", file, "call_1_1", run, 0, 0}, {"bash", ls, "call_1_2", run, 1, 0}}, asked) // LH-27
	assert.Equal(t, asked, reviewed)
}

// LH-29: a mock may be a failure, and may have content of several parts.
func TestMockedFailure(t *testing.T) {
	w := workWith(t, []hooks.Hook{
		before("failing", func(c hooks.ToolContext) hooks.Result { return c.MockFailure(`{"error":"rate limited"}`) }, hooks.ToolNamed("bash")),
		before("parts", func(c hooks.ToolContext) hooks.Result {
			return c.MockContent(agent.ContentOf(agent.Text("one"), agent.Text("two")))
		}, hooks.ToolNamed("read_file")),
	}, wants("bash", ls, "read_file", file))
	require.NoError(t, w.err)
	assert.Empty(t, w.ran)
	r := w.result(0)
	assert.Equal(t, agent.ToolMocked, r.Status)
	assert.True(t, r.IsError())
	assert.Equal(t, `{"error":"rate limited"}`, r.Text())
	assert.Equal(t, agent.ContentOf(agent.Text("one"), agent.Text("two")), w.result(1).Content)
	assert.Zero(t, w.RunFailures(), "no tool failed")
}

// LH-30, LH-31: the first mock wins; a later control may still deny.
func TestFirstMockWins(t *testing.T) {
	asked := 0
	list := []hooks.Hook{
		before("one", mock("one")), before("two", mock("two")),
		before("counts", func(c hooks.ToolContext) hooks.Result { asked++; return c.Allow() }),
	}
	w := workWith(t, list, wants("bash", ls))
	assert.Equal(t, "one", w.result(0).Text())
	assert.Equal(t, "one", w.result(0).DecidedBy)
	assert.Equal(t, 1, asked, "the others are asked all the same")

	w = workWith(t, append(list, before("guard", deny("no"))), wants("bash", ls))
	assert.Equal(t, agent.ReasonDenied, w.result(0).Reason)
}

// LH-28: a hook that fails leaves the mock to the next, if its policy is open. The
// mock of the model: an error after a mock is a failure like any other.
func TestMockNextToFailure(t *testing.T) {
	failing := before("failing", func(c hooks.ToolContext) hooks.Result { return c.Fail(errPaper) })
	w := workWith(t, []hooks.Hook{failing.WithFailure(hooks.Open), before("fixture", mock("fixed"))}, wants("bash", ls))
	assert.Equal(t, agent.ToolMocked, w.result(0).Status)

	w = workWith(t, []hooks.Hook{before("fixture", mock("fixed")), failing}, wants("bash", ls)) // LH-31
	assert.Equal(t, agent.ReasonHookFailed, w.result(0).Reason, "a guard that cannot decide denies, mocked or not")
}

// LH-24, LH-26: without a mock the tool answers.
func TestObserversDoNotMock(t *testing.T) {
	told := 0
	w := workWith(t, []hooks.Hook{hooks.Observe(hooks.AtPreToolUse, "watch", func(context.Context, hooks.ToolContext) error { told++; return nil })},
		wants("bash", ls))
	assert.Equal(t, agent.ToolExecuted, w.result(0).Status)
	assert.Equal(t, 1, told)
}

// LH-33: mocking fires nothing besides the points of the call itself.
func TestMockFiresNoOtherPoints(t *testing.T) {
	points := func(list ...hooks.Hook) []hooks.PointName {
		var out []hooks.PointName
		workWith(t, append(list, hooks.ObserveAll("all", func(_ context.Context, c hooks.Context) error {
			out = append(out, c.Point())
			return nil
		})), wants("bash", ls))
		return out
	}
	assert.Equal(t, points(), points(before("fixture", mock("fixed"))))
}

// IP-37: a rewrite replaces the arguments for the hooks behind it, their matchers
// and the tool; what the model asked is kept beside it.
func TestRewrite(t *testing.T) {
	var seen []string
	see := func(c hooks.ToolContext) hooks.Result {
		seen = append(seen, c.Call().Arguments+" was "+c.Original().Arguments)
		return c.Allow()
	}
	w := workWith(t, []hooks.Hook{
		before("before", see),
		before("limit", func(c hooks.ToolContext) hooks.Result {
			command, _ := c.Call().Text("command")
			return c.Rewrite(map[string]any{"command": command, "timeout": 30})
		}),
		before("behind", see, hooks.ArgumentEquals("timeout", 30)),
		before("misses", deny("no"), hooks.Not(hooks.ArgumentEquals("timeout", 30))),
	}, wants("bash", ls))
	require.NoError(t, w.err)
	effective := `{"command":"ls","timeout":30}`
	assert.Equal(t, []string{ls + " was " + ls, effective + " was " + ls, effective + " was " + ls}, seen,
		"the one before is asked again about what runs, the one behind has judged that")
	assert.Equal(t, []string{"bash " + effective}, w.ran)
	r := w.result(0)
	assert.Equal(t, effective, r.Call().Arguments)
	assert.Equal(t, ls, r.Original().Arguments)
	assert.True(t, r.Rewritten())
	assert.Equal(t, ls, w.Message(1).Call(0).Arguments, "the transcript keeps what the model asked")
	done := w.events(hooks.HookComplete)
	assert.Equal(t, ls, done[1].Before)
	assert.Equal(t, effective, done[1].After)
}

// IP-45, IP-113, IP-114: a rewrite that breaks the schema is a failure of the hook:
// neither the original nor the rewrite runs, whatever the policy.
func TestRewriteIntoInvalid(t *testing.T) {
	for name, arguments := range map[string]any{
		"a missing member": map[string]any{}, "a wrong type": map[string]any{"command": 7},
		"no object": "ls", "null": nil, "not JSON": json.RawMessage(`{`), "twice": json.RawMessage(`{"command":"ls","command":"rm"}`),
		"no JSON at all": func() {},
	} {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []hooks.FailurePolicy{{}, hooks.Closed, hooks.Open} {
				w := workWith(t, []hooks.Hook{before("clumsy", rewriteTo(arguments), hooks.ToolNamed("bash")).WithFailure(policy)},
					wants("bash", ls, "read_file", file))
				require.NoError(t, w.err)
				assert.Equal(t, []string{"read_file " + file}, w.ran)
				r := w.result(0)
				assert.Equal(t, agent.ReasonHookFailed, r.Reason)
				assert.Contains(t, r.Text(), `tool "bash": not executed: clumsy: the hook could not decide: the rewritten arguments are invalid: `)
				assert.Equal(t, ls, r.Call().Arguments)
				failed := w.events(hooks.HookFailed)
				require.NotEmpty(t, failed)
				assert.Equal(t, "closed", failed[0].Policy)
			}
		})
	}
}
