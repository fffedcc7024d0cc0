package builder_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

type recipient struct {
	Email string `json:"email"`
}

// shell, mail and open are tools with arguments of three sorts: closed, nested, and whatever is sent.
func shell() toolexec.Tool {
	return toolexec.Func("bash", "Runs a command.", func(context.Context, struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout,omitempty"`
	},
	) (string, error) {
		return "ran", nil
	})
}

func mail() toolexec.Tool {
	return toolexec.Func("send_mail", "Sends a mail.", func(context.Context, struct {
		To []recipient `json:"to"`
	},
	) (string, error) {
		return "sent", nil
	})
}

func openTool(name string) toolexec.Tool {
	return toolexec.Raw(agent.ToolSpec{Name: name, Parameters: `{"type":"object","properties":{"path":{"type":"string"}}}`},
		func(context.Context, toolexec.Call) (string, error) { return "", nil })
}

func guard(matching ...hooks.Matcher) capability.Capability {
	return capability.UseHooks(hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Deny("no") }, matching...))
}

func buildError(more ...capability.Capability) error {
	return builder.New().WithName("fixer").WithDriver(agenttest.Script()).With(more...).Build().Error()
}

// A guard that can never match is an error when the agent is built: with each of these guards, rm -rf / would run.
func TestGuardsThatNeverMatchAreErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		matchers []hooks.Matcher
		want     string
	}{
		"anchored argument":   {[]hooks.Matcher{hooks.ArgumentMatching("command", "^rm ")}, "/^rm /"},
		"escaped argument":    {[]hooks.Matcher{hooks.ArgumentMatching("command", `rm\s+-rf`)}, `/rm\s+-rf/`},
		"misspelt argument":   {[]hooks.Matcher{hooks.ArgumentMatching("comand", "rm *")}, `did you mean "command"?`},
		"argument's own case": {[]hooks.Matcher{hooks.ToolNamed("bash"), hooks.ArgumentMatching("Command", "rm *")}, `did you mean "command"?`},
		"anchored tool":       {[]hooks.Matcher{hooks.ToolMatching("^bash$")}, "/^bash$/"},
		"alternatives":        {[]hooks.Matcher{hooks.ToolMatching("bash|sh")}, "/bash|sh/"},
		"no such element":     {[]hooks.Matcher{hooks.ArgumentEquals("to.*.e", "eve@x.org")}, `no call of "bash", "send_mail" has an argument at "to.*.e"`},
		"no such tool":        {[]hooks.Matcher{hooks.ToolNamed("Bash")}, `did you mean "bash"?`},
		"of another tool":     {[]hooks.Matcher{hooks.ToolNamed("send_mail"), hooks.ArgumentMatching("command", "rm *")}, `no call of "send_mail"`},
		"of another type":     {[]hooks.Matcher{hooks.ArgumentMatching("timeout", "30")}, "that is a string"},
		"no such agent":       {[]hooks.Matcher{hooks.AgentNamed("fxer")}, `"fxer" matches no agent`},
		"empty Or":            {[]hooks.Matcher{hooks.Or()}, "Or without matchers matches nothing"},
		"not everything":      {[]hooks.Matcher{hooks.Not(hooks.And())}, "can never match"},
	} {
		t.Run(name, func(t *testing.T) {
			err := buildError(capability.UseTools(shell(), mail()), guard(tc.matchers...))
			require.ErrorContains(t, err, `hook "guard"`)
			assert.ErrorContains(t, err, tc.want)
		})
	}
	for name, matchers := range map[string][]hooks.Matcher{
		"glob":          {hooks.ToolMatching("[a-z]*")},
		"expression":    {hooks.ToolMatching("/^(bash|sh)$/"), hooks.ArgumentMatching("command", `/rm\s+-rf/`)},
		"text":          {hooks.ArgumentMatching("command", "rm *")},
		"every element": {hooks.ArgumentMatching("to.*.email", "*@x.org")},
		"one element":   {hooks.ArgumentEquals("to.0.email", "eve@x.org")},
		"sure":          {hooks.ArgumentMatching("command", hooks.Exact("^rm "))},
		"own agent":     {hooks.AgentNamed("fix*")},
	} {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, buildError(capability.UseTools(shell(), mail()), guard(matchers...)))
		})
	}
	// A tool may be sent more than its schema names.
	assert.NoError(t, buildError(capability.UseTools(openTool("read")), guard(hooks.ArgumentMatching("paht", "*"))))
	assert.Error(t, buildError(guard(hooks.ToolNamed("bash"))), "an agent without tools has none to guard")
	assert.NoError(t, buildError(guard()), "a model may still call what there is not")
}

// Declared later tools are not an error; a name that they cannot include still is.
func TestGuardsOfWhatComesLater(t *testing.T) {
	later := capability.UseLater(capability.Later{
		Tools: []string{"mcp__files__*"}, Agents: []string{"judge"}, Points: []hooks.PointName{hooks.RunStart},
	})
	files := guard(hooks.ToolNamed("mcp__files__read"), hooks.ArgumentMatching("path", "/etc/*"))
	assert.Error(t, buildError(capability.UseTools(shell()), files))
	assert.NoError(t, buildError(capability.UseTools(shell()), files, later))
	assert.Error(t, buildError(capability.UseTools(shell()), guard(hooks.ToolNamed("mcp__fles__read")), later))
	assert.NoError(t, buildError(capability.UseTools(shell()), guard(hooks.AgentNamed("judge")), later))
	start := capability.UseHooks(hooks.On(hooks.AtRunStart, "start", func(_ context.Context, c hooks.RunStartContext) hooks.Result { return c.Pass() }))
	assert.ErrorContains(t, buildError(start), "never reaches RunStart")
	assert.NoError(t, buildError(start, later))
	assert.ErrorContains(t, buildError(capability.UseLater(capability.Later{Tools: []string{"a|b"}, Points: []hooks.PointName{"Lunch"}})), `unknown point "Lunch"`)
}

// A control at a point that the agent never reaches is an error; an observer there is not.
func TestControlsAtPointsThatNeverCome(t *testing.T) {
	compact := capability.UseHooks(hooks.On(hooks.AtPreCompact, "compact", func(_ context.Context, c hooks.PreCompactContext) hooks.Result { return c.Pass() }))
	sub := capability.UseHooks(hooks.On(hooks.AtPostSubagent, "sub", func(_ context.Context, c hooks.PostSubagentContext) hooks.Result { return c.Pass() }))
	assert.ErrorContains(t, buildError(compact), "never reaches PreCompact: it has no compaction: add capability.UseCompaction")
	assert.NoError(t, buildError(compact, capability.UseCompaction{}))
	assert.ErrorContains(t, buildError(sub), "never reaches PostSubagent: it has no sub-agents")
	assert.NoError(t, buildError(sub, capability.UseSubagents{Agents: []capability.Subagent{{Agent: worker()}}}))
	for _, stage := range []hooks.Hook{
		hooks.On(hooks.AtSessionStart, "p", func(_ context.Context, c hooks.PipelineContext) hooks.Result { return c.Pass() }),
		hooks.On(hooks.AtStageComplete, "p", func(_ context.Context, c hooks.PipelineContext) hooks.Result { return c.Pass() }),
		hooks.On(hooks.AtRunResult, "p", func(_ context.Context, c hooks.RunResultContext) hooks.Result { return c.Pass() }),
	} {
		assert.ErrorContains(t, buildError(capability.UseHooks(stage)), "only programs that run pipelines or coordinate runs do", stage.Points())
	}
	session := hooks.On(hooks.AtSessionStart, "p", func(_ context.Context, c hooks.PipelineContext) hooks.Result { return c.Pass() })
	assert.ErrorContains(t, buildError(capability.UseHooks(session)), "a conversation starts at ConversationStart")
	conversation := hooks.On(hooks.AtConversationStart, "c", func(_ context.Context, c hooks.ConversationContext) hooks.Result { return c.Pass() })
	assert.NoError(t, buildError(capability.UseHooks(conversation)))
	assert.NoError(t, buildError(capability.UseHooks(hooks.ObserveAll("all", func(context.Context, hooks.Context) error { return nil }))))
}

func worker(more ...capability.Capability) builder.AgentBuilder {
	return builder.New().WithName("worker").WithDriver(agenttest.Script()).With(append(more, capability.UseTools(shell()))...)
}

// A guard at the root is for the tools of sub-agents, too, however deep; what is wrong with a sub-agent's own hooks is
// told, and what it inherits is not held against its tools alone.
func TestGuardsOfSubagents(t *testing.T) {
	subagents := func(agents ...capability.Planner) capability.Capability {
		u := capability.UseSubagents{}
		for _, a := range agents {
			u.Agents = append(u.Agents, capability.Subagent{Agent: a})
		}
		return u
	}
	rm := func(argument string) capability.Capability {
		return guard(hooks.ToolNamed("bash"), hooks.ArgumentMatching(argument, "rm *"))
	}
	middle := builder.New().WithName("middle").WithDriver(agenttest.Script()).With(capability.UseTools(mail()), subagents(worker()))
	assert.NoError(t, buildError(rm("command"), subagents(worker())))
	assert.NoError(t, buildError(rm("command"), subagents(middle)), "two below")
	assert.NoError(t, buildError(guard(hooks.ToolNamed("task"), hooks.ArgumentEquals("agent", "worker")), subagents(worker())))
	assert.NoError(t, buildError(guard(hooks.AgentNamed("worker")), subagents(middle)))
	assert.ErrorContains(t, buildError(rm("comand"), subagents(worker())), `no call of "bash" has an argument at "comand"`)
	assert.ErrorContains(t, buildError(guard(hooks.ToolNamed("bsah")), subagents(middle)), `did you mean "bash"?`)
	assert.ErrorContains(t, buildError(subagents(worker(guard(hooks.ToolNamed("bsah"))))), `agent "worker": hook "guard": "bsah" matches no tool`)
	watch := capability.UseHooks(hooks.Observe(hooks.AtPreToolUse, "watch", func(context.Context, hooks.ToolContext) error { return nil }, hooks.ToolNamed("bash")))
	assert.Error(t, buildError(watch, subagents(worker())), "sub-agents inherit no observers")

	plan := builder.New().WithName("fixer").WithDriver(agenttest.Script()).With(rm("command"), subagents(middle)).Plan().MustGet()
	assert.NotContains(t, plan.String(), "unused")
	assert.Empty(t, plan.Gaps())
}

// Hooks that a run brings are held against the same tools.
func TestGuardsOfARun(t *testing.T) {
	a := builder.New().WithDriver(agenttest.Script(agenttest.Say("done"))).With(capability.UseTools(shell())).Build().MustGet()
	deny := func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Deny("no") }
	_, err := a.RunWith(t.Context(), hooks.WithHooks(hooks.On(hooks.AtPreToolUse, "guard", deny, hooks.ToolNamed("bsah"))), agent.NewState(), agent.UserText("go")).Get()
	require.ErrorContains(t, err, `hook "guard": "bsah" matches no tool: did you mean "bash"?`)
	_, err = a.RunWith(t.Context(), hooks.WithHooks(hooks.On(hooks.AtPreToolUse, "guard", deny, hooks.ToolNamed("bash"))), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
}

type driverOf struct{ agent.Driver }

type toolOf struct{ toolexec.Tool }

type capabilityOf struct{ capability.Capability }

// A nil pointer in an interface is nil, and told when the agent is built.
func TestTypedNilsAreErrors(t *testing.T) {
	assert.ErrorContains(t, builder.New().WithDriver((*driverOf)(nil)).Build().Error(), "the driver is a nil *builder_test.driverOf")
	assert.ErrorContains(t, builder.New().WithDriver(agent.DriverFunc(nil)).Build().Error(), "the driver is a nil agent.DriverFunc")
	assert.ErrorContains(t, buildError(capability.UseTools((*toolOf)(nil))), "tool 1 of 1 is nil")
	assert.ErrorContains(t, buildError((*capabilityOf)(nil)), "capability 1 of 1 is nil")
	assert.ErrorContains(t, buildError(capability.UseApproval(agent.ApproverFunc(nil))), "the approver is nil")
	assert.ErrorContains(t, buildError(capability.UseObserver(agent.ObserverFunc(nil))), "observer 1 of 1 is nil")
	assert.ErrorContains(t, buildError(capability.UseSubagents{Agents: []capability.Subagent{{Agent: (*builder.AgentBuilder)(nil)}}}), "the agent is nil")
}
