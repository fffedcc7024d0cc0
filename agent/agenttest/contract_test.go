package agenttest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

func TestScriptKeepsTheContract(t *testing.T) {
	agenttest.TestDriver(t, func(*testing.T) agent.Driver {
		return agenttest.Script(agenttest.Say("one two three").Call("probe", `{"text":"drei Brücken, vier Flüsse"}`).Call("none", ""))
	})
	agenttest.TestDriver(t, func(*testing.T) agent.Driver {
		return agenttest.Script(agenttest.Reply(agent.Step{Message: agent.AssistantContent(
			agent.ContentOf(agent.Reasoning("let me think", "sig"), agent.Text("so ")), agent.ToolCall{Name: "probe"},
		)}))
	})
}

func TestToolsKeepTheContract(t *testing.T) {
	agenttest.TestExecutor(t, func(_ *testing.T, tools agenttest.Tools) agent.Executor { return tools.Executor() })
}

func TestAProcessorThatPassesKeepsTheContract(t *testing.T) {
	agenttest.TestProcessor(t, func(*testing.T) agent.Processor { return passing })
}

func TestBaseKeepsTheContract(t *testing.T) {
	agenttest.TestCriterion(t, func(*testing.T) agent.Criterion { return agent.Base })
}

var passing = agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	return next(ctx, s)
})

// broken lists implementations that violate a contract, with the expected message from the contract test.
var broken = map[string]struct {
	test func(t *testing.T)
	says string
}{
	"a driver that answers as the user": {driver(func(context.Context, agent.State) (agent.Step, error) {
		return agent.Step{Message: agent.UserText("hi")}, nil
	}), "the role of the reply"},
	"a driver that gives an id twice": {driver(func(context.Context, agent.State) (agent.Step, error) {
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "1", Name: "a"}, agent.ToolCall{ID: "1", Name: "a"})}, nil
	}), "as another call has"},
	"a driver that counts backwards": {driver(func(context.Context, agent.State) (agent.Step, error) {
		return agent.Step{Message: agent.Assistant("hi"), Usage: agent.Usage{InputTokens: -1}}, nil
	}), "input tokens"},
	"a driver that does not look at its context": {func(t *testing.T) {
		agenttest.TestDriver(t, func(*testing.T) agent.Driver {
			return agent.DriverFunc(func(ctx context.Context, _ agent.State) (agent.Step, error) {
				if ctx.Err() != nil {
					select {}
				}
				return agent.Step{Message: agent.Assistant("hi")}, nil
			})
		})
	}, "Next did not return"},
	"a driver that keeps the state": {func(t *testing.T) {
		agenttest.TestDriver(t, func(*testing.T) agent.Driver {
			var mu sync.Mutex
			var kept []agent.State
			return agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
				mu.Lock()
				defer mu.Unlock()
				kept = append(kept, s)
				return agent.Step{Message: agent.Assistant("hi")}, nil
			})
		})
	}, "the driver keeps the state"},
	"a streamer that leaves a piece out": {func(t *testing.T) {
		agenttest.TestDriver(t, func(*testing.T) agent.Driver { return lossy{agenttest.Script(agenttest.Say("one two"))} })
	}, "the pieces of text are not the whole"},

	"an executor that runs while it prepares": {func(t *testing.T) {
		agenttest.TestExecutor(t, func(_ *testing.T, tools agenttest.Tools) agent.Executor {
			return executor{tools.Executor(), func(ctx context.Context, e agent.Executor, c agent.ToolCall) {
				p := e.Prepare(ctx, agent.State{}, &c).MustGet()
				e.Execute(ctx, agent.State{}, p)
			}, nil}
		})
	}, "Prepare ran the tool"},
	"an executor that fails for its tool": {func(t *testing.T) {
		agenttest.TestExecutor(t, func(_ *testing.T, tools agenttest.Tools) agent.Executor {
			return executor{tools.Executor(), nil, func(r mo.Result[*agent.ToolResult]) mo.Result[*agent.ToolResult] {
				if r.IsOk() && r.MustGet().Err != nil {
					return mo.Err[*agent.ToolResult](r.MustGet().Err)
				}
				return r
			}}
		})
	}, "out of paper"},
	"an executor that gives no result": {func(t *testing.T) {
		agenttest.TestExecutor(t, func(_ *testing.T, tools agenttest.Tools) agent.Executor {
			return executor{tools.Executor(), nil, func(mo.Result[*agent.ToolResult]) mo.Result[*agent.ToolResult] {
				return mo.Result[*agent.ToolResult]{}
			}}
		})
	}, "neither an error nor a result"},

	"a processor that does not go on": {processor(func(_ context.Context, s agent.State, _ agent.Next) mo.Result[agent.State] {
		return mo.Ok(s)
	}), "has not ended"},
	"a processor that hides a failure": {processor(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		return mo.Ok(next(ctx, s).OrElse(s))
	}), "neither stopped nor ended"},
	"a processor that cuts the context off": {processor(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		return next(context.WithoutCancel(ctx), s)
	}), "Run did not return"},
	"a processor that mixes runs up": {func(t *testing.T) {
		agenttest.TestProcessor(t, func(*testing.T) agent.Processor {
			var mu sync.Mutex
			var first mo.Option[agent.State]
			return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
				mu.Lock()
				if first.IsAbsent() {
					first = mo.Some(s)
				}
				s = first.MustGet()
				mu.Unlock()
				return next(ctx, s)
			})
		})
	}, "keeps_runs_apart"},

	"a criterion that counts": {func(t *testing.T) {
		agenttest.TestCriterion(t, func(*testing.T) agent.Criterion {
			var mu sync.Mutex
			n := 0
			return agent.CriterionFunc(func(context.Context, agent.State) (agent.Evaluation, error) {
				mu.Lock()
				defer mu.Unlock()
				if n++; n > 8 {
					return agent.Evaluation{Verdict: agent.Forbid, Signal: agent.Signal{Reason: agent.StopStepsLimit}}, nil
				}
				return agent.Evaluation{}, nil
			})
		})
	}, "asked again"},
	"a criterion that gives no reason": {criterion(func(context.Context, agent.State) (agent.Evaluation, error) {
		return agent.Evaluation{Verdict: agent.Forbid}, nil
	}), "the reason of the stop"},
	"a criterion that fails": {criterion(func(context.Context, agent.State) (agent.Evaluation, error) {
		return agent.Evaluation{}, errors.New("cannot judge")
	}), "cannot judge"},
}

func driver(f agent.DriverFunc) func(t *testing.T) {
	return func(t *testing.T) { agenttest.TestDriver(t, func(*testing.T) agent.Driver { return f }) }
}

func processor(f agent.ProcessorFunc) func(t *testing.T) {
	return func(t *testing.T) { agenttest.TestProcessor(t, func(*testing.T) agent.Processor { return f }) }
}

func criterion(f agent.CriterionFunc) func(t *testing.T) {
	return func(t *testing.T) { agenttest.TestCriterion(t, func(*testing.T) agent.Criterion { return f }) }
}

type lossy struct{ agent.Streamer }

func (d lossy) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return d.Streamer.Stream(ctx, s, func(delta agent.Delta) {
		if !strings.HasPrefix(delta.Text, "one") {
			emit(delta)
		}
	})
}

type executor struct {
	agent.Executor
	before func(context.Context, agent.Executor, agent.ToolCall)
	after  func(mo.Result[*agent.ToolResult]) mo.Result[*agent.ToolResult]
}

func (e executor) Prepare(ctx context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	if e.before != nil {
		e.before(ctx, e.Executor, *c)
	}
	return e.Executor.Prepare(ctx, s, c)
}

func (e executor) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	r := e.Executor.Execute(ctx, s, p)
	if e.after != nil {
		r = e.after(r)
	}
	return r
}

// brokenTest is the environment variable with which the test binary runs itself to
// observe a failing contract test.
const brokenTest = "AGENTTEST_BROKEN"

func TestContractTestsFindWhatIsBroken(t *testing.T) {
	for name := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBroken$", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), brokenTest+"="+name)
			out, err := cmd.CombinedOutput()
			assert.Error(t, err, "the contract test passed")
			assert.Contains(t, string(out), broken[name].says)
			assert.NotContains(t, string(out), "\ngoroutine ", "the contract test panicked")
		})
	}
}

func TestBroken(t *testing.T) {
	name := os.Getenv(brokenTest)
	if name == "" {
		t.Skip("this is run by TestContractTestsFindWhatIsBroken")
	}
	agenttest.SetPatience(time.Second / 4)
	broken[name].test(t)
}
