package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// threeCalls is a run of one step with three calls, some of which need approval. It records the
// events of all processes.
type threeCalls struct {
	gated    map[string]bool // by the N of the call
	parallel int

	mu  sync.Mutex
	log []string
}

func (x *threeCalls) note(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log = append(x.log, fmt.Sprintf(format, args...))
}

// lines returns the recorded events of a kind since the last call of logged.
func (x *threeCalls) lines(kind string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []string
	for _, line := range x.log {
		if rest, ok := strings.CutPrefix(line, kind+" "); ok {
			out = append(out, rest)
		}
	}
	return out
}

func (x *threeCalls) logged() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := x.log
	x.log = nil
	return out
}

func number(c hooks.ToolContext) string {
	n, _ := c.Call().Argument("N")
	return n
}

// agent returns the agent as each process builds it.
func (x *threeCalls) agent(t *testing.T, k *durable.Keeper, more ...hooks.Hook) *agent.Agent {
	t.Helper()
	pay := toolexec.Func("pay", "", func(_ context.Context, in struct{ N int }) (string, error) {
		x.note("tool %d", in.N)
		return fmt.Sprint("paid ", in.N), nil
	})
	guard := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		x.note("control %s", number(c))
		if x.gated[number(c)] {
			return c.Ask("it is a lot")
		}
		return c.Pass()
	})
	after := hooks.Observe(hooks.AtPostToolUse, "after", func(_ context.Context, c hooks.ToolResultContext) error {
		x.note("after %s", c.Text())
		return nil
	})
	script := agenttest.Script(agenttest.Call("pay", `{"N":1}`).Call("pay", `{"N":2}`).Call("pay", `{"N":3}`), agenttest.Say("Done."))
	driver := agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
		x.note("model %d", s.RunStepCount())
		return script.Next(ctx, s).Get()
	})
	a, err := builder.New().WithName("clerk").WithDriver(driver).WithParallel(x.parallel).
		With(capability.UseTools(pay), capability.UseHooks(append([]hooks.Hook{guard, after}, more...)...),
			capability.UseApproval(agent.ParkApprover), capability.UseDurability{Keeper: k}).Build().Get()
	require.NoError(t, err)
	return a
}

// begun returns the number of calls that the journal records as begun or answered.
func begun(t *testing.T, store durable.Store, id agent.RunID) (n int) {
	t.Helper()
	entries, err := store.Entries(t.Context(), id, 0)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, e := range entries {
		if e.Kind == durable.EntryCall || e.Kind == durable.EntryResult {
			n++
		}
	}
	return n
}

// a call that needs approval holds up all calls of its step. No sibling has run,
// wherever it stands and however many run at once, until every question is answered; then
// each runs once.
func TestApprovalPausesTheWholeStep(t *testing.T) {
	for _, gated := range []string{"1", "2", "3", "13"} {
		for _, parallel := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s of three, %d at once", gated, parallel), func(t *testing.T) {
				store, x := openStore(t), &threeCalls{gated: map[string]bool{}, parallel: parallel}
				for _, n := range gated {
					x.gated[string(n)] = true
				}
				k := durable.Keep(store, durable.Options{})
				s, err := x.agent(t, k).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
				require.NoError(t, err)
				id := s.Run().ID
				paused := func(s agent.State) {
					t.Helper()
					assert.True(t, s.Waiting())
					assert.Zero(t, s.RunStepCount())
					assert.Empty(t, x.lines("tool"), "a sibling ran")
					assert.Empty(t, x.lines("after"))
					assert.Equal(t, []string{"0"}, x.lines("model"))
					assert.Zero(t, begun(t, store, id))
				}
				paused(s)
				waits := s.Interventions()
				require.Len(t, waits, len(gated))
				for _, i := range waits {
					k = durable.Keep(store, durable.Options{}) // another process
					s, err = k.Resume(t.Context(), x.agent(t, k), id, durable.TakeFree).Get()
					require.NoError(t, err)
					paused(s)
					require.NoError(t, durabletest.Approve(t.Context(), store, id, i.CallID(), agent.Approval{Verdict: agent.Approve, By: "ann"}))
				}
				s, err = k.Resume(t.Context(), x.agent(t, k), id, durable.TakeFree).Get()
				require.NoError(t, err)
				assert.Equal(t, agent.StatusDone, s.Status())
				ran := x.lines("tool")
				assert.ElementsMatch(t, []string{"1", "2", "3"}, ran)
				if parallel == 1 {
					assert.IsIncreasing(t, ran)
				}
				assert.ElementsMatch(t, []string{"paid 1", "paid 2", "paid 3"}, x.lines("after"))
				assert.Equal(t, []string{"0", "1"}, x.lines("model"))
				var told []string
				for _, m := range s.Messages() {
					if m.Role() == agent.RoleTool {
						told = append(told, m.Text())
					}
				}
				assert.Equal(t, []string{"paid 1", "paid 2", "paid 3"}, told)
			})
		}
	}
}

// when the run continues, all controls judge every call of the step before
// the approved one runs, also controls that the agent did not have when it parked. Their
// new decisions count: an approval does not bypass them.
func TestControlsRunOnResume(t *testing.T) {
	controls := []string{"control 1", "late 1", "control 2", "late 2", "control 3", "late 3"}
	for name, tc := range map[string]struct {
		say    func(c hooks.ToolContext) hooks.Result // of the late control, about the approved call
		log    []string                               // after the controls
		says   string                                 // what the model is told of the approved call
		reason agent.ReasonCode
		status agent.Status
	}{
		"pass": {
			func(c hooks.ToolContext) hooks.Result { return c.Pass() },
			[]string{"tool 1", "tool 2", "tool 3"}, "paid 2", "", agent.StatusDone,
		},
		"allow": {
			func(c hooks.ToolContext) hooks.Result { return c.Allow() },
			[]string{"tool 1", "tool 2", "tool 3"}, "paid 2", "", agent.StatusDone,
		},
		"deny": {
			func(c hooks.ToolContext) hooks.Result { return c.Deny("the till is closed") },
			[]string{"tool 1", "tool 3"}, "denied by late: the till is closed", agent.ReasonDenied, agent.StatusDone,
		},
		"stop": {
			func(c hooks.ToolContext) hooks.Result { return c.Stop("the till is closed") },
			nil, "not executed", agent.ReasonRunStopped, agent.StatusStopped,
		},
		"break": {
			func(hooks.ToolContext) hooks.Result { panic("no paper") },
			[]string{"tool 1", "tool 3"}, "late: the hook could not decide", agent.ReasonHookFailed, agent.StatusDone,
		},
		"rewrite": {
			func(c hooks.ToolContext) hooks.Result { return c.Rewrite(json.RawMessage(`{"N":20}`)) },
			nil, "", "", agent.StatusParked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, x := openStore(t), &threeCalls{gated: map[string]bool{"2": true, "20": true}, parallel: 1}
			k := durable.Keep(store, durable.Options{})
			s, err := x.agent(t, k).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			require.True(t, s.Waiting())
			id, callID := s.Run().ID, s.Interventions()[0].CallID()
			require.NoError(t, durabletest.Approve(t.Context(), store, id, callID, agent.Approval{Verdict: agent.Approve, By: "ann"}))
			x.logged()

			late := hooks.On(hooks.AtPreToolUse, "late", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				x.note("late %s", number(c))
				assert.True(t, c.Resumed())
				if number(c) != "2" {
					return c.Pass()
				}
				asked, ok := c.Asked()
				if assert.True(t, ok) && assert.NotNil(t, asked.Answer()) {
					assert.Equal(t, agent.Approve, asked.Answer().Verdict)
				}
				assert.Zero(t, begun(t, store, id), "nothing has begun")
				return tc.say(c)
			})
			k = durable.Keep(store, durable.Options{})
			s, err = k.Resume(t.Context(), x.agent(t, k, late), id, durable.TakeFree).Get()
			require.NoError(t, err)
			assert.Equal(t, tc.status, s.Status())
			var log []string
			for _, line := range x.logged() {
				if kind, _, _ := strings.Cut(line, " "); kind != "after" && kind != "model" {
					log = append(log, line)
				}
			}
			switch name {
			case "stop": // the calls behind it are not judged any more
				assert.Equal(t, controls[:4], log)
			case "rewrite": // the guard judges what the call has become
				assert.ElementsMatch(t, append([]string{"control 20"}, controls...), log)
				require.Len(t, s.Interventions(), 1)
				assert.JSONEq(t, `{"N":20}`, s.Interventions()[0].Call.Arguments)
				assert.Nil(t, s.Interventions()[0].Answer(), "the approval was of another call")
				assert.Zero(t, begun(t, store, id))
				return
			default:
				assert.Equal(t, append(controls[:6:6], tc.log...), log)
			}
			for _, step := range s.RunSteps() {
				result := step.Result(1)
				assert.Equal(t, callID, result.CallID())
				assert.Contains(t, result.Text(), tc.says)
				assert.Equal(t, tc.reason, result.Reason)
				break
			}
		})
	}
}
