package capability_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

func TestPrintedPlans(t *testing.T) {
	told := hooks.ObserveAll("all", func(context.Context, hooks.Context) error { return nil })
	for name, tc := range map[string]struct {
		plan capability.Plan
		want string
	}{
		"empty": {capability.Plan{}, `agent "unnamed"
  run            steps
  step           infer, prepare, execute, record
  driver         none
  executor       no tools
  judge          Base, Steps(100)
`},
		"all of it": {
			capability.Plan{}.WithName("x").WithDriver(sayer("model")).WithTools(tool("a"), nil).WithParallel(4).
				WithRequest(func(r agent.Request) agent.Request { r.Instructions = "Write\n\"" + strings.Repeat("ä", 80); return r }).
				WrapDriver(capability.Inside, "cache", passThrough).WrapDriver(capability.Outside, "span", passThrough).
				WrapExecutor(capability.Outside, "journal", sameExecutor).
				WithApprover(namedApprover("terminal")).WithObserver(namedObserver("log")).WithObserver(namedObserver("web")).
				WithHooks(told, told.Detach(), passes("first"), passes("last").WithPriority(-1), passes("guard").WithPriority(200)),
			`agent "x"
  request        "Write\n\"` + strings.Repeat("ä", 53) + `…"
  run            HookProcessor ▸ steps
  step           HookProcessor ▸ infer, prepare, execute, record
  driver         span ▸ HookedDriver ▸ cache ▸ model
  executor       journal ▸ HookedToolExecutor ▸ a, nil (4 at once)
  judge          HookContinuationCriterion ▸ Base, Steps(100)
  approval       terminal
  observers      log, web
  ConversationStart tells all; starts all
  InputSubmitted tells all; starts all
  ExecutionStart tells all; starts all
  StepStart      asks guard, first, last; tells all; starts all
  PreInference   tells all; starts all
  PostInference  tells all; starts all
  PreToolUse     tells all; starts all
  PreCompact     tells all; starts all
  PostCompact    tells all; starts all
  CompactFailed  tells all; starts all
  PreSubagent    tells all; starts all
  PostSubagent   tells all; starts all
  SubagentFailed tells all; starts all
  InterventionRequested tells all; starts all
  InterventionResolved tells all; starts all
  ToolFailed     tells all; starts all
  PostToolUse    tells all; starts all
  StepEnd        tells all; starts all
  Stop           tells all; starts all
  InterventionStopped tells all; starts all
  AgentFailed    tells all; starts all
  ExecutionEnd   tells all; starts all
  ConversationEnd tells all; starts all
  SessionStart   tells all; starts all
  IterationStart tells all; starts all
  IterationComplete tells all; starts all
  IterationFailed tells all; starts all
  StageComplete  tells all; starts all
  SessionComplete tells all; starts all
  RunStart       tells all; starts all
  RunResult      tells all; starts all
  RunFailed      tells all; starts all
  RunTimeout     tells all; starts all
  RunFinish      tells all; starts all
`},
		"an executor of one's own": {
			capability.Plan{}.WithDriver(agenttest.Script()).WithTools(tool("a")).WithExecutor(namedExecutor{name: "remote"}),
			`agent "unnamed"
  run            steps
  step           infer, prepare, execute, record
  driver         agenttest.Driver
  executor       remote
  judge          Base, Steps(100)
`},
		"a guard that guards nothing": {
			capability.Plan{}.WithDriver(agenttest.Script()).WithTools(tool("bash")).WithHooks(
				hooks.On(hooks.AtPreToolUse, "mistyped",
					func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Allow() }, hooks.ToolNamed("bahs"))),
			`agent "unnamed"
  run            HookProcessor ▸ steps
  step           HookProcessor ▸ infer, prepare, execute, record
  driver         agenttest.Driver
  executor       HookedToolExecutor ▸ bash
  judge          Base, Steps(100)
  PreToolUse     asks mistyped
  unused         mistyped: for what neither the agent nor its sub-agents have
`},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, tc.plan.String()) })
	}
}
