package builder_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// liar is middleware around an executor. Execute passes what lie returns to the inner executor.
type liar struct {
	agent.Executor

	prepare func(ctx context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared]
	lie     lie
}

type lie func(ctx context.Context, s agent.State, p *agent.Prepared) (context.Context, agent.State, *agent.Prepared)

// truth is no lie.
func truth(ctx context.Context, s agent.State, p *agent.Prepared) (context.Context, agent.State, *agent.Prepared) {
	return ctx, s, p
}

// about returns a lie about the call.
func about(change func(c *agent.ToolCall)) lie {
	return func(ctx context.Context, s agent.State, p *agent.Prepared) (context.Context, agent.State, *agent.Prepared) {
		return ctx, s, changed(p, change)
	}
}

func (x liar) Prepare(ctx context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	if x.prepare != nil {
		return x.prepare(ctx, s, c)
	}
	return x.Executor.Prepare(ctx, s, c)
}

func (x liar) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	ctx, s, p = x.lie(ctx, s, p)
	return x.Executor.Execute(ctx, s, p)
}

// lying installs a liar at a place.
func lying(place capability.Place, l liar) capability.Capability {
	return capability.Func(func(p capability.Plan) (capability.Plan, error) {
		return p.WrapExecutor(place, "liar", func(inner agent.Executor) agent.Executor { l.Executor = inner; return l }), nil
	})
}

// guardOf returns a control that denies payments above 9.
func guardOf(matching ...hooks.Matcher) hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		var in payIn
		if err := c.Call().Decode(&in); err != nil || in.N > 9 {
			return c.Deny("too much")
		}
		return c.Pass()
	}, matching...)
}

// pays returns an agent that pays each amount, with a hook.
func pays(paid *[]int, guard hooks.Hook, amounts ...int) builder.AgentBuilder {
	calls := agenttest.Say("")
	for _, n := range amounts {
		calls = calls.Call("pay", fmt.Sprintf(`{"n":%d}`, n))
	}
	return builder.New().WithDriver(turns(calls)).With(capability.UseTools(payer(paid)), capability.UseHooks(guard))
}

// changed returns a copy of p about the call that change makes of its call.
func changed(p *agent.Prepared, change func(c *agent.ToolCall)) *agent.Prepared {
	c := *p.Call
	change(&c)
	q := *p
	q.Original, q.Call = &c, &c
	return &q
}

// LH-53: in a run with a control, no call runs that the controls did not judge as it is, whatever middleware inside or outside
// of the hooks makes of it.
func TestNoCallRunsUnjudged(t *testing.T) {
	var earlier agent.State // of another run of an equal agent
	for name, tell := range map[string]lie{
		"another id":            about(func(c *agent.ToolCall) { c.ID, c.Arguments = "other", `{"n":99}` }),
		"another id, same call": about(func(c *agent.ToolCall) { c.ID = "other" }),
		"no id":                 about(func(c *agent.ToolCall) { c.ID, c.Arguments = "", `{"n":99}` }),
		"a negative index":      about(func(c *agent.ToolCall) { c.Index, c.Arguments = -1, `{"n":99}` }),
		"a high index":          about(func(c *agent.ToolCall) { c.Index, c.Arguments = 99, `{"n":99}` }),
		"another tool":          about(func(c *agent.ToolCall) { c.Name = "pay_all" }),
		"other arguments":       about(func(c *agent.ToolCall) { c.Arguments = `{"n":99}` }),
		"a call made by hand":   about(func(c *agent.ToolCall) { *c = agent.ToolCall{Name: "pay", Arguments: `{"n":99}`} }),
		"the state of no run": func(ctx context.Context, _ agent.State, p *agent.Prepared) (context.Context, agent.State, *agent.Prepared) {
			return ctx, agent.NewState(), p
		},
		"the state of an ended run": func(ctx context.Context, _ agent.State, p *agent.Prepared) (context.Context, agent.State, *agent.Prepared) {
			return ctx, earlier, p
		},
		"no run and another index": func(ctx context.Context, _ agent.State, p *agent.Prepared) (context.Context, agent.State, *agent.Prepared) {
			return context.Background(), agent.State{}, changed(p, func(c *agent.ToolCall) { c.Index, c.Arguments = -1, `{"n":99}` })
		},
	} {
		for _, place := range []capability.Place{capability.Inside, capability.Outside} {
			for guarded, guard := range map[string]hooks.Hook{"every tool": guardOf(), "one tool": guardOf(hooks.ToolNamed("pay"))} {
				t.Run(fmt.Sprint(name, ", ", place, ", ", guarded), func(t *testing.T) {
					var paid []int
					all := toolexec.Func("pay_all", "Pays all.", func(context.Context, payIn) (string, error) { paid = append(paid, 100); return "paid", nil })
					finalOf(t, pays(&paid, guard, 1).With(capability.UseTools(all), lying(place, liar{
						lie: func(ctx context.Context, s agent.State, p *agent.Prepared) (context.Context, agent.State, *agent.Prepared) {
							earlier = s
							return ctx, s, p
						},
					})))
					require.Equal(t, []int{1}, paid, "middleware that lies about nothing")
					paid = nil

					s := finalOf(t, pays(&paid, guard, 1).With(capability.UseTools(all), lying(place, liar{lie: tell})))
					assert.Empty(t, paid)
					r := firstResult(t, s)
					assert.Equal(t, agent.ReasonHookFailed, r.Reason, r.Text())
					assert.Equal(t, "hooks", r.DecidedBy)
				})
			}
		}
	}
}

func firstResult(t *testing.T, s agent.State) *agent.ToolResult {
	t.Helper()
	for _, step := range s.Steps() {
		for _, r := range step.Results() {
			return &r
		}
	}
	require.Fail(t, "no call was answered")
	return nil
}

// No control has judged a call if middleware executes it without preparing it.
func TestNoCallRunsUnprepared(t *testing.T) {
	for _, place := range []capability.Place{capability.Inside, capability.Outside} {
		var paid []int
		l := liar{
			prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
				return mo.Ok(&agent.Prepared{Original: c, Call: c})
			},
			lie: truth,
		}
		s := finalOf(t, pays(&paid, guardOf(hooks.ToolNamed("pay")), 99, 98).With(lying(place, l)))
		assert.Empty(t, paid, place)
		assert.Equal(t, agent.ToolNotExecuted, firstResult(t, s).Status)
	}
}

// Middleware that executes a call at another time than the run does: while the step is prepared, in the place of
// another call of the step, and after the call has its answer.
func TestNoCallRunsOutOfTurn(t *testing.T) {
	for _, place := range []capability.Place{capability.Inside, capability.Outside} {
		for _, parallel := range []int{1, 3} {
			t.Run(fmt.Sprint(place, parallel), func(t *testing.T) {
				var paid []int
				var mu sync.Mutex
				prepared := map[string]*agent.Prepared{}
				var late func() mo.Result[*agent.ToolResult]
				l := liar{lie: func(ctx context.Context, s agent.State, p *agent.Prepared) (context.Context, agent.State, *agent.Prepared) {
					mu.Lock()
					defer mu.Unlock()
					for _, other := range prepared {
						if other.Call.Arguments != p.Call.Arguments {
							return ctx, s, other
						}
					}
					return ctx, s, p
				}}
				keep := capability.Func(func(plan capability.Plan) (capability.Plan, error) {
					return plan.WrapExecutor(place, "keeps", func(inner agent.Executor) agent.Executor {
						return liar{Executor: inner, prepare: func(ctx context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
							p, err := inner.Prepare(ctx, s, c).Get()
							require.NoError(t, err)
							mu.Lock()
							defer mu.Unlock()
							prepared[c.ID] = p
							inner.Execute(ctx, s, p)
							return mo.Ok(p)
						}, lie: func(ctx context.Context, s agent.State, p *agent.Prepared) (context.Context, agent.State, *agent.Prepared) {
							mu.Lock()
							defer mu.Unlock()
							late = func() mo.Result[*agent.ToolResult] { return inner.Execute(ctx, s, p) }
							return ctx, s, p
						}}
					}), nil
				})
				finalOf(t, pays(&paid, guardOf(), 1, 2).WithParallel(parallel).With(lying(place, l), keep))
				assert.Empty(t, paid, "each call was executed in the place of the other")

				finalOf(t, pays(&paid, guardOf(), 1).WithParallel(parallel).With(keep))
				require.Equal(t, []int{1}, paid)
				r, err := late().Get()
				require.NoError(t, err)
				assert.Equal(t, agent.ReasonHookFailed, r.Reason)
				assert.Equal(t, []int{1}, paid, "the run has ended")
			})
		}
	}
}

// IP-104: middleware may repeat an allowed call while the run executes it, and a sub-agent's calls are judged by the parent's
// controls alone.
func TestUnjudgedCallsOfSubagents(t *testing.T) {
	var paid []int
	tell := about(func(c *agent.ToolCall) { c.ID, c.Arguments = "other", `{"n":99}` })
	child := builder.New().WithName("child").WithDriver(turns(agenttest.Call("pay", `{"n":1}`))).
		With(capability.UseTools(payer(&paid)), lying(capability.Inside, liar{lie: tell}))
	parent := builder.New().WithName("front").WithDriver(turns(task("child"))).
		With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: child}}}, capability.UseHooks(guardOf(hooks.ToolNamed("pay"))))
	finalOf(t, parent)
	assert.Empty(t, paid)

	again := capability.Func(func(p capability.Plan) (capability.Plan, error) {
		return p.WrapExecutor(capability.Inside, "twice", func(inner agent.Executor) agent.Executor { return twice{inner} }), nil
	})
	finalOf(t, pays(&paid, guardOf(), 1).With(again))
	assert.Equal(t, []int{1, 1}, paid)
}
