package agenttest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// TestExecutor tests an executor against the contract of agent.Executor. NewExecutor is called once for each part of
// the test. It returns an executor that runs the given tools under their names with any arguments, and allows every
// call. To test a wrapper, return it around tools.Executor().
func TestExecutor(t *testing.T, newExecutor func(t *testing.T, tools Tools) agent.Executor) { //nolint:gocognit // a table of cases, read top to bottom
	t.Helper()
	s := agent.NewState(agent.UserText("hello"))
	call := agent.ToolCall{ID: "call_1", Name: "probe", Arguments: `{"n":1}`}
	echo := func(_ context.Context, c agent.ToolCall) (string, error) { return "ran with " + c.Arguments, nil }
	prepare := func(t *testing.T, e agent.Executor, c agent.ToolCall) *agent.Prepared {
		t.Helper()
		p, err := e.Prepare(t.Context(), s, &c).Get()
		require.NoError(t, err)
		require.NotNil(t, p, "Prepare gave neither an error nor a prepared call")
		assert.Equal(t, &c, p.Original, "the original call")
		return p
	}
	execute := func(t *testing.T, e agent.Executor, p *agent.Prepared) *agent.ToolResult {
		t.Helper()
		var r *agent.ToolResult
		var err error
		if p.Disposition == agent.DisposeAnswer {
			r, err = agent.HandleAnswer(t.Context(), e, s, p).Get()
		} else {
			r, err = e.Execute(t.Context(), s, p).Get()
		}
		require.NoError(t, err)
		require.NotNil(t, r, "Execute gave neither an error nor a result")
		return r
	}

	t.Run("prepares without running, then runs once", func(t *testing.T) {
		var ran atomic.Int32
		e := newExecutor(t, Tools{"probe": func(ctx context.Context, c agent.ToolCall) (string, error) {
			ran.Add(1)
			return echo(ctx, c)
		}})
		p := prepare(t, e, call)
		assert.Equal(t, agent.DisposeRun, p.Disposition, "the disposition of a call that nothing speaks against")
		assert.Zero(t, ran.Load(), "Prepare ran the tool")
		r := execute(t, e, p)
		assert.Equal(t, int32(1), ran.Load(), "how often Execute ran the tool")
		assert.Equal(t, agent.ToolExecuted, r.Status, "the status")
		assert.Equal(t, `ran with {"n":1}`, r.Text(), "what the model is told")
		assert.Positive(t, r.Attempts, "attempts of a tool that ran")
		assert.False(t, r.IsError(), "a good answer is no error")
	})
	t.Run("passes on an answer without running", func(t *testing.T) {
		var ran atomic.Bool
		e := newExecutor(t, Tools{"probe": func(context.Context, agent.ToolCall) (string, error) {
			ran.Store(true)
			return "", nil
		}})
		p := *prepare(t, e, call)
		p.Disposition = agent.DisposeAnswer
		p.Answer = agent.NotExecuted(p.Call, agent.ReasonRunStopped, "", "not executed: a sibling stopped the run")
		r, err := agent.HandleAnswer(t.Context(), e, s, &p).Get()
		require.NoError(t, err)
		require.NotNil(t, r, "HandleAnswer gave neither an error nor a result")
		assert.False(t, ran.Load(), "HandleAnswer ran a tool whose call was answered")
		assert.Equal(t, agent.ToolNotExecuted, r.Status, "the status")
		assert.Zero(t, r.Attempts, "attempts of a tool that did not run")
	})
	t.Run("is not asked to execute what does not run", func(t *testing.T) {
		var ran atomic.Int32
		e := newExecutor(t, Tools{"probe": func(ctx context.Context, c agent.ToolCall) (string, error) {
			ran.Add(1)
			return echo(ctx, c)
		}})
		seen := &refusing{Executor: e}
		driver := Script(Call("probe", `{"n":1}`).Call("probe", `{"n":2}`).Call("probe", `{"n":3}`), Say("done"))
		wrap := func(x agent.Executor) agent.Executor { seen.Executor = x; return seen }
		a, err := agent.New(agent.Config{Driver: driver, Executor: e, WrapExecutor: []func(agent.Executor) agent.Executor{wrap}}).Get()
		require.NoError(t, err)
		final, err := a.Run(t.Context(), s).Get()
		require.NoError(t, err)
		assert.Equal(t, int32(2), ran.Load(), "how many calls ran")
		assert.Empty(t, seen.wrong, "Execute was called for calls that do not run")
		step := final.LastMessage()
		assert.Equal(t, "done", step.Text())
	})
	t.Run("answers for a tool that fails", func(t *testing.T) {
		for name, body := range map[string]Func{
			"by error": func(context.Context, agent.ToolCall) (string, error) { return "", errors.New("out of paper") },
			"by panic": func(context.Context, agent.ToolCall) (string, error) { panic("out of paper") },
		} {
			t.Run(name, func(t *testing.T) {
				e := newExecutor(t, Tools{"probe": body})
				r := execute(t, e, prepare(t, e, call))
				assert.Equal(t, agent.ToolFailed, r.Status, "the status")
				assert.True(t, r.IsError(), "the model must be told of an error")
				assert.NotEmpty(t, r.Text(), "what the model is told")
			})
		}
	})
	t.Run("answers calls that cannot be run", func(t *testing.T) {
		for name, c := range map[string]agent.ToolCall{
			"of no tool":             {ID: "call_1", Name: "no_such_tool", Arguments: `{}`},
			"without a name":         {ID: "call_1"},
			"with broken arguments":  {ID: "call_1", Name: "probe", Arguments: `{"n":`},
			"with no object":         {ID: "call_1", Name: "probe", Arguments: `[1]`},
			"with doubled arguments": {ID: "call_1", Name: "probe", Arguments: `{"n":1,"n":2}`},
		} {
			t.Run(name, func(t *testing.T) {
				e := newExecutor(t, Tools{"probe": echo})
				p := prepare(t, e, c)
				if c.Name != "probe" {
					require.Equal(t, agent.DisposeAnswer, p.Disposition, "the disposition")
				}
				if p.Disposition == agent.DisposeAnswer {
					require.NotNil(t, p.Answer, "the answer")
					assert.NotEmpty(t, p.Answer.Text(), "what the model is told")
					assert.True(t, p.Answer.IsError(), "the model must be told of an error")
				}
				execute(t, e, p)
			})
		}
	})
	t.Run("returns when its context ends while a tool runs", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e := newExecutor(t, Tools{"probe": func(ctx context.Context, _ agent.ToolCall) (string, error) {
			cancel()
			<-ctx.Done()
			return "", context.Cause(ctx)
		}})
		soon(t, "Execute", func() {
			if p, err := e.Prepare(ctx, s, &call).Get(); err == nil {
				e.Execute(ctx, s, p)
			}
		})
	})
	t.Run("serves several calls at once", func(t *testing.T) {
		e := newExecutor(t, Tools{"probe": echo})
		together(func(i int) {
			c := agent.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "probe", Arguments: fmt.Sprintf(`{"n":%d}`, i)}
			p, err := e.Prepare(t.Context(), s, &c).Get()
			if !assert.NoError(t, err) || !assert.NotNil(t, p, "the prepared call") {
				return
			}
			r, err := e.Execute(t.Context(), s, p).Get()
			if assert.NoError(t, err) && assert.NotNil(t, r, "the result") {
				assert.Equal(t, "ran with "+c.Arguments, r.Text(), "the answer to call %d", i)
			}
		})
	})
	t.Run("answers every call of a step once", func(t *testing.T) {
		e := newExecutor(t, Tools{"probe": echo})
		driver := Script(Call("probe", `{"n":1}`).Call("no_such_tool", `{}`).Call("probe", `{"n":2}`), Say("done"))
		a, err := agent.New(agent.Config{Driver: driver, Executor: e, Parallel: 3}).Get()
		require.NoError(t, err)
		final, err := a.Run(t.Context(), s).Get()
		require.NoError(t, err)
		var answers []string
		for _, m := range final.Messages() {
			if m.Role() == agent.RoleTool {
				answers = append(answers, m.CallID()+" "+string(m.Status()))
			}
		}
		assert.Equal(t, []string{"call_1_1 executed", "call_1_2 not_executed", "call_1_3 executed"}, answers)
	})
	t.Run("does not keep the state", func(t *testing.T) {
		e := newExecutor(t, Tools{"probe": echo})
		checkForgets(t, "the executor", func(s agent.State) {
			p, err := e.Prepare(t.Context(), s, &call).Get()
			require.NoError(t, err)
			e.Execute(t.Context(), s, p)
		})
		prepare(t, e, call) // it is still reachable
	})
}

// refusing is an executor that denies the second call of each step.
type refusing struct {
	agent.Executor
	wrong []string // IDs of calls for which Execute was called although they must not run
}

func (x *refusing) Prepare(ctx context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	result := x.Executor.Prepare(ctx, s, c)
	p, err := result.Get()
	if err != nil || p == nil || c.Index != 1 {
		return result
	}
	q := *p
	q.Disposition = agent.DisposeAnswer
	q.Answer = agent.NotExecuted(c, agent.ReasonDenied, "refusing", "denied")
	return mo.Ok(&q)
}

func (x *refusing) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Disposition != agent.DisposeRun {
		x.wrong = append(x.wrong, p.Original.ID)
	}
	return x.Executor.Execute(ctx, s, p)
}
