package capability_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec"
)

// A plan prints as the composed stack: wrappers, criteria, the approver and observers.
func ExamplePlan_String() {
	allow := func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Allow() }
	log := func(context.Context, hooks.ToolResultContext) error { return nil }
	send := func(context.Context, hooks.EndContext) error { return nil }
	tests := func(_ context.Context, c hooks.StopContext) hooks.Result { return c.Allow() }
	trace := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] { return next(ctx, s) })

	plan := builder.New().WithName("helper").WithDriver(agenttest.Script()).WithModel("small").
		With(
			capability.UseInstructions("You are a careful assistant."),
			capability.UseTools(tool("bash"), tool("read")),
			capability.UseHooks(
				hooks.On(hooks.AtPreToolUse, "base-dir", allow, hooks.ToolNamed("bash")),
				hooks.On(hooks.AtPreToolUse, "no-force-push", allow).WithPriority(hooks.PriorityGuard),
				hooks.Observe(hooks.AtPostToolUse, "audit-log", log),
				hooks.On(hooks.AtStop, "tests-pass", tests),
				hooks.Observe(hooks.AtExecutionEnd, "notify", send).Detach(),
			),
			capability.UseGuards{Steps: 20, Cost: 0.50, Time: 10 * time.Minute},
			capability.UseStepProcessor("retry", processor.Retry{}),
			capability.Func(func(p capability.Plan) (capability.Plan, error) {
				return p.AroundRun(capability.Outside, "trace", trace), nil
			}),
			capability.UseObserver(agenttest.Record()),
		).
		Plan().MustGet()
	fmt.Print(plan)
	// Output:
	// agent "helper"
	//   request        small · "You are a careful assistant."
	//   run            telemetry ▸ trace ▸ HookProcessor ▸ deadline ▸ steps
	//   step           HookProcessor ▸ retry ▸ infer, prepare, execute, record
	//   driver         telemetry ▸ gauge ▸ agenttest.Driver
	//   executor       telemetry ▸ HookedToolExecutor ▸ bash, read
	//   judge          HookContinuationCriterion ▸ Base, Steps(20), Cost(0.5), Time(10m0s)
	//   observers      agenttest.Recorder
	//   PreToolUse     asks no-force-push, base-dir
	//   PostToolUse    tells audit-log
	//   Stop           asks tests-pass
	//   ExecutionEnd   starts notify
}

// A layer outside of the hooks sees values after the hooks; a layer inside does the work
// on which the hooks decided. The first layer is the outermost.
func ExamplePlace() {
	says := func(text string) agent.Processor {
		return processor.Before(func(_ context.Context, s agent.State) (agent.State, error) {
			fmt.Println(text)
			return s, nil
		})
	}
	layers := capability.Func(func(p capability.Plan) (capability.Plan, error) {
		return p.
			AroundStep(capability.Inside, "inner", says("inside")).
			AroundStep(capability.Inside, "innermost", says("further inside")).
			AroundStep(capability.Outside, "outer", says("outside")), nil
	})
	hook := hooks.On(hooks.AtStepStart, "hook", func(_ context.Context, c hooks.StepContext) hooks.Result {
		fmt.Println("the hooks")
		return c.Allow()
	})
	a := builder.New().WithDriver(agenttest.Script(agenttest.Say("hi"))).With(layers, capability.UseHooks(hook)).Build().MustGet()
	a.Run(context.Background(), agent.NewState(agent.UserText("hello"))).MustGet()
	// Output:
	// outside
	// the hooks
	// inside
	// further inside
}

func ExampleUseGuards() {
	busy := agenttest.Script().Then(agenttest.Call("bash", `{}`).WithCost(0.10))
	a := builder.New().WithDriver(busy).
		With(capability.UseTools(tool("bash")), capability.UseGuards{Steps: 20, Cost: 0.30}).
		Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("tidy up")).MustGet()
	fmt.Printf("%s after %d steps: %s\n", final.Status(), final.RunStepCount(), final.StopSignal().Reason)
	// Output: stopped after 3 steps: cost_limit
}

// A hook asks, and a person answers.
func ExampleUseApproval() {
	careful := hooks.On(hooks.AtPreToolUse, "careful", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Ask("it deletes files")
	})
	person := agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
		fmt.Printf("%s wants to know: may %s run? %s\n", p.Questions()[0].By, p.Call.Name, p.Questions()[0].Reason)
		return agent.Approval{Verdict: agent.RejectAndContinue, By: "ann", Reason: "make a backup first"}, nil
	})
	a := builder.New().WithDriver(agenttest.Script(agenttest.Call("bash", `{}`), agenttest.Say("I make a backup."))).
		With(capability.UseTools(tool("bash")), capability.UseHooks(careful), capability.UseApproval(person)).
		Build().MustGet()
	fmt.Print(agenttest.Transcript(a.Run(context.Background(), agent.NewState(), agent.UserText("tidy up")).MustGet()))
	// Output:
	// careful wants to know: may bash run? it deletes files
	// user: tidy up
	// assistant calls bash {}
	// tool bash (not_executed): tool "bash": rejected by ann: make a backup first
	// assistant: I make a backup.
}

// A program can define a capability that adds several parts.
func ExampleFunc() {
	thrifty := capability.Func(func(p capability.Plan) (capability.Plan, error) {
		cheap := hooks.On(hooks.AtPreInference, "cheap", func(_ context.Context, c hooks.InferenceContext) hooks.Result {
			request := c.Request()
			request.Model = "small"
			return c.Rewrite(request)
		})
		return p.WithHooks(cheap).WithContinuations(1), nil
	})
	script := agenttest.Script(agenttest.Say("hi"))
	a := builder.New().WithDriver(script).WithModel("large").With(thrifty).Build().MustGet()
	a.Run(context.Background(), agent.NewState(agent.UserText("hello"))).MustGet()
	fmt.Println(script.Calls()[0].Request.Model)
	// Output: small
}

// A sub-agent is an agent that is used as a tool. It has its own run, and its parent's hooks.
func ExampleUseSubagents() {
	scout := builder.New().WithName("scout").
		WithDriver(agenttest.Script(agenttest.Call("look", `{}`), agenttest.Say("The door is open."))).
		With(capability.UseTools(toolexec.Func("look", "Looks around.", func(context.Context, struct{}) (string, error) {
			return "an open door; the code is 4711", nil
		})))
	noCodes := hooks.On(hooks.AtPostToolUse, "no-codes", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		fmt.Println(c.Run().Agent, "used", c.Tool())
		return c.Replace(strings.ReplaceAll(c.Text(), "4711", "****"))
	})
	boss, err := builder.New().WithName("boss").
		WithDriver(agenttest.Script(
			agenttest.Call("task", `{"agent":"scout","instruction":"See whether the door is open."}`),
			agenttest.Say("We can go in."))).
		With(
			capability.UseSubagents{Agents: []capability.Subagent{{Agent: scout, Description: "looks at things"}}},
			capability.UseHooks(noCodes),
		).Build().Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	final, err := boss.Run(context.Background(), agent.NewState(), agent.UserText("Can we go in?")).Get()
	fmt.Println(final.Answer(), err)
	// Output:
	// scout used look
	// boss used task
	// We can go in. <nil>
}
