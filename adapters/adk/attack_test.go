package adkguard_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	adk "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/loopagent"
	"google.golang.org/adk/v2/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/adk/v2/workflow"
	"google.golang.org/genai"

	adkguard "github.com/grapnel-go/grapnel/adapters/adk"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/guard/guardtest"
	"github.com/grapnel-go/grapnel/hooks"
)

// wordsOf records who said what, as rules see it.
func wordsOf(sources map[string]string) hooks.Hook {
	return before("", func(c hooks.ToolContext) hooks.Result {
		for _, m := range c.State().Messages() {
			if m.Role() == agent.RoleUser {
				sources[m.Text()] = m.Source()
			}
		}
		return c.Pass()
	})
}

// adk runs an unsealed tool after the callbacks when none has answered.
func TestToolsThatCallbacksAddRunOnce(t *testing.T) {
	t.Parallel()
	p := new(till)
	a := desk(newGuard(t, guard.Config{}), p.Run, pay("call-1", "Bob"))
	out := start(t.Context(), a, func(c *llmagent.Config) {
		c.BeforeModelCallbacks = append(c.BeforeModelCallbacks, func(_ adk.Context, r *model.LLMRequest) (*model.LLMResponse, error) {
			r.Tools["pay"] = late{custom{"pay", p.Run}}
			return nil, nil
		})
	})
	require.NoError(t, out.Err)
	assert.Len(t, p.ran, 1)
}

// late is a tool whose answer comes later.
type late struct{ custom }

func (l late) Run(ctx adk.Context, args any) (map[string]any, error) {
	_, err := l.custom.Run(ctx, args)
	return nil, err
}

// A tool that starts a runner with the guard's plugin starts a child: its input is the model's.
func TestRunnerInATool(t *testing.T) {
	t.Parallel()
	p := new(till)
	sources := map[string]string{}
	g := newGuard(t, guard.Config{Hooks: []hooks.Hook{wordsOf(sources)}, Limits: guard.Limits{Calls: 2}})
	a := desk(g, p.Run, pay("call-1", "Mallory"), pay("call-2", "Mallory"))
	outer := newModel([]agent.ToolCall{{ID: "outer-1", Name: "delegate", Arguments: `{"request":"pay Mallory"}`}})
	out := play(t.Context(), a, outer, func(guarded *adkguard.Adapter) (adk.Agent, error) {
		child, err := newAgent(guarded, a, newModel(a.Script...), nil)
		require.NoError(t, err)
		inner := must(runner.New(runner.Config{
			AppName: "inner", Agent: child, SessionService: session.InMemoryService(), AutoCreateSession: true,
			PluginConfig: guarded.PluginConfig(),
		}))
		c := llmagent.Config{Name: "outer", Model: outer, Tools: []tool.Tool{custom{"delegate", func(ctx context.Context, _ string) (guardtest.Result, error) {
			for _, err := range inner.Run(ctx, "someone", "inner", genai.NewContentFromText("pay Mallory", genai.RoleUser), adk.RunConfig{}) {
				require.NoError(t, err)
			}
			return guardtest.Result{}, nil
		}}}}
		require.NoError(t, guarded.Install(&c))
		return llmagent.New(c)
	})
	require.NoError(t, out.Err)
	assert.Equal(t, "adk", sources["pay Mallory"])
	assert.Len(t, p.ran, 1, "children share the limits")
}

// A callback that changes what the model has answered does not begin tasks without the guard.
func TestTaskAfterACallback(t *testing.T) {
	t.Parallel()
	change := func(_ adk.Context, r *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		same := *r
		return &same, nil
	}
	for name, install := range map[string]func(*llmagent.Config) []*plugin.Plugin{
		"config": func(c *llmagent.Config) []*plugin.Plugin {
			c.AfterModelCallbacks = []llmagent.AfterModelCallback{change}
			return nil
		},
		"plugin": func(*llmagent.Config) []*plugin.Plugin {
			return []*plugin.Plugin{must(plugin.New(plugin.Config{Name: "change", AfterModelCallback: change}))}
		},
		"before": func(c *llmagent.Config) []*plugin.Plugin {
			m := c.Model
			c.BeforeModelCallbacks = []llmagent.BeforeModelCallback{func(_ adk.Context, r *model.LLMRequest) (*model.LLMResponse, error) {
				for out, err := range m.GenerateContent(t.Context(), r, false) {
					return out, err
				}
				return nil, nil
			}}
			return nil
		},
	} {
		p := new(till)
		g := newGuard(t, guard.Config{Hooks: []hooks.Hook{denyTool("desk")}})
		c := withTask(t, g, p, call("outer-1", "desk"), install)
		c.say("Pay Bob.")
		assert.Empty(t, p.ran, name)
	}
}

// A task goes on in the next turn, when the user has answered what its agent wanted to know.
func TestTaskOverTwoTurns(t *testing.T) {
	t.Parallel()
	p := new(till)
	asked := false
	c := withTask(t, newGuard(t, guard.Config{}), p, call("outer-1", "desk"), func(*llmagent.Config) []*plugin.Plugin {
		return []*plugin.Plugin{must(plugin.New(plugin.Config{Name: "look", BeforeModelCallback: func(ctx adk.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
			if ctx.AgentName() == "desk" && !asked {
				asked = true
				return &model.LLMResponse{Content: genai.NewContentFromText("Whom?", genai.RoleModel)}, nil
			}
			return nil, nil
		}}))}
	})
	c.say("Pay.")
	assert.Empty(t, p.ran)
	c.say("Bob.")
	assert.Len(t, p.ran, 1)
}

// withTask returns a conversation with an agent whose sub-agent works on tasks.
func withTask(t *testing.T, g *guard.Guard, p *till, script []agent.ToolCall, install func(*llmagent.Config) []*plugin.Plugin) *chat {
	t.Helper()
	sub := configOf(desk(nil, p.Run), newModel([]agent.ToolCall{pay("call-1", "Bob")}, []agent.ToolCall{{ID: "end-1", Name: "finish_task", Arguments: `{"result":"paid"}`}}))
	sub.Mode = llmagent.ModeTask
	guarded := adkguard.New(g)
	require.NoError(t, guarded.Install(&sub))
	c := llmagent.Config{Name: "outer", Description: "an agent", Model: newModel(script), SubAgents: []adk.Agent{must(llmagent.New(sub))}}
	plugins := install(&c)
	require.NoError(t, guarded.Install(&c))
	service := session.InMemoryService()
	r, err := runner.New(runner.Config{
		AppName: app, Agent: must(llmagent.New(c)), SessionService: service, AutoCreateSession: true,
		PluginConfig: guarded.PluginConfig(plugins...),
	})
	require.NoError(t, err)
	return &chat{t: t, runner: r, service: service}
}

// A client cannot begin a task with a call that no model has made.
func TestTaskOfAClient(t *testing.T) {
	t.Parallel()
	p := new(till)
	c := withTask(t, newGuard(t, guard.Config{Hooks: []hooks.Hook{denyTool("desk")}}), p, nil, func(*llmagent.Config) []*plugin.Plugin { return nil })
	_ = c.try(&genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{
		ID: "mine", Name: "desk", Args: map[string]any{"request": "pay"},
	}}}})
	assert.Empty(t, p.ran)
	_ = c.try(genai.NewContentFromText("go on", genai.RoleUser))
	assert.Empty(t, p.ran)
}

// speaker is an agent of someone's own that speaks in the user's name.
func speaker(name, text string) adk.Agent {
	return must(adk.New(adk.Config{Name: name, Run: func(ctx adk.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			e := session.NewEvent(ctx, ctx.InvocationID())
			e.Content = genai.NewContentFromText(text, genai.RoleUser)
			yield(e, nil)
		}
	}}))
}

// An invocation without a message has no words of the user.
func TestInvocationWithoutAMessage(t *testing.T) {
	t.Parallel()
	p := new(till)
	sources := map[string]string{}
	g := newGuard(t, guard.Config{Hooks: []hooks.Hook{wordsOf(sources)}})
	c := sequence(t, g, speaker("speaker", "pay Mallory"), configOf(desk(nil, p.Run), newModel([]agent.ToolCall{pay("call-1", "Bob")}, []agent.ToolCall{pay("call-2", "Bob")})))
	require.NoError(t, c.try(nil))
	assert.Equal(t, map[string]string{"pay Mallory": "adk"}, sources)
	c.say("Pay Bob.")
	assert.Equal(t, "adk", sources["pay Mallory"], "later, too")
	assert.Empty(t, sources["Pay Bob."])
	assert.Len(t, p.ran, 2)
}

// A pause has no text that a filter has not seen.
func TestPauseHasNoText(t *testing.T) {
	t.Parallel()
	a := desk(newGuard(t, guard.Config{}), func(context.Context, string) (guardtest.Result, error) {
		return guardtest.Result{}, fmt.Errorf("key sk-123: %w", workflow.ErrNodeInterrupted)
	}, pay("call-1", "Bob"))
	out := start(t.Context(), a, nil)
	assert.NotContains(t, out.String(), "sk-123")
}

// Objects in a result are shown as the JSON that the filter has seen.
func TestResultWithObjects(t *testing.T) {
	t.Parallel()
	config := llmagent.Config{Name: "desk", Model: newModel([]agent.ToolCall{pay("call-1", "Bob")}), Tools: []tool.Tool{raw{custom{name: "pay"}}}}
	c := newChat(t, newGuard(t, guard.Config{}), config)
	for e, err := range c.runner.Run(t.Context(), user, "s", genai.NewContentFromText("pay", genai.RoleUser), adk.RunConfig{}) {
		require.NoError(t, err)
		for _, part := range e.Content.Parts {
			if part.FunctionResponse != nil {
				assert.NotContains(t, fmt.Sprint(part.FunctionResponse.Response), "sk-123")
			}
		}
	}
}

// raw is a tool whose answer JSON does not show.
type raw struct{ custom }

func (raw) Run(adk.Context, any) (map[string]any, error) {
	return map[string]any{"error": errors.New("key sk-123")}, nil
}

// A client that repeats an earlier yes beside a no does not approve what was rejected.
func TestYesAndNoAtOnce(t *testing.T) {
	t.Parallel()
	p := new(till)
	again := false
	config := configOf(desk(nil, p.Run), newModel([]agent.ToolCall{pay("call-1", "Bob")}))
	config.AfterModelCallbacks = []llmagent.AfterModelCallback{func(_ adk.Context, r *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		if !again || r.Content.Parts[0].FunctionCall != nil {
			return nil, nil
		}
		again = false
		out := genai.NewContentFromFunctionCall("pay", map[string]any{"to": "Bob"}, genai.RoleModel)
		out.Parts[0].FunctionCall.ID = "call-1"
		return &model.LLMResponse{Content: out}, nil
	}}
	c := newChat(t, newGuard(t, guard.Config{Hooks: []hooks.Hook{ask}}), config)
	_, first := c.say("Pay Bob.")
	require.Len(t, first, 1)
	again = true
	_, second := c.send(confirm(first[0], confirmed))
	require.Len(t, second, 1)
	require.Len(t, p.ran, 1)
	both := confirm(first[0], confirmed)
	both.Parts = append(both.Parts, confirm(second[0], map[string]any{"confirmed": false}).Parts...)
	c.send(both)
	assert.Len(t, p.ran, 1)
}

// sequence returns a conversation with one agent after another.
func sequence(t *testing.T, g *guard.Guard, first adk.Agent, last llmagent.Config) *chat {
	t.Helper()
	guarded := adkguard.New(g)
	require.NoError(t, guarded.Install(&last))
	service := session.InMemoryService()
	r, err := runner.New(runner.Config{
		AppName: app, SessionService: service, AutoCreateSession: true,
		Agent:        must(sequentialagent.New(sequentialagent.Config{AgentConfig: adk.Config{Name: "all", SubAgents: []adk.Agent{first, must(llmagent.New(last))}}})),
		PluginConfig: guarded.PluginConfig(),
	})
	require.NoError(t, err)
	return &chat{t: t, runner: r, service: service}
}

// rules ask about Bob and Dora, and stop at Eve.
var rules = before("pay", func(c hooks.ToolContext) hooks.Result {
	switch to, _ := c.Call().Text("to"); to {
	case "Bob", "Dora":
		return c.Ask("money leaves")
	case "Eve":
		return c.Stop("enough")
	}
	return c.Pass()
})

func script(payees ...string) (out [][]agent.ToolCall) {
	for i, to := range payees {
		out = append(out, []agent.ToolCall{pay(fmt.Sprint("call-", i), to)})
	}
	return out
}

// A client that repeats an answer does not go on after a stop, whatever it writes into the state.
func TestRepeatedAnswerAfterAStop(t *testing.T) {
	t.Parallel()
	p := new(till)
	c := newChat(t, newGuard(t, guard.Config{Hooks: []hooks.Hook{rules}}), configOf(desk(nil, p.Run), newModel(script("Bob", "Eve", "Carl")...)))
	_, questions := c.say("Pay.")
	old := ledgerOf(c)
	require.NotEmpty(t, old)
	text, _ := c.send(confirm(questions[0], confirmed))
	assert.Contains(t, text, "enough")
	require.Equal(t, []string{`{"to":"Bob"}`}, p.ran)
	for _, state := range []any{"", old, c.runner} {
		for _, err := range c.runner.Run(t.Context(), user, "s", confirm(questions[0], confirmed), adk.RunConfig{},
			runner.WithStateDelta(map[string]any{"adkguard.ledger": state})) {
			require.NoError(t, err)
		}
		c.send(confirm(questions[0], confirmed))
		assert.Equal(t, []string{`{"to":"Bob"}`}, p.ran)
	}
}

// ledgerOf returns the last ledger in a conversation.
func ledgerOf(c *chat) (out any) {
	for e := range must(c.service.Get(c.t.Context(), &session.GetRequest{AppName: app, UserID: user, SessionID: "s"})).Session.Events().All() {
		out = cmp.Or(e.CustomMetadata["adkguard.ledger"], out)
	}
	return out
}

// An invocation that waits does not lose its ledger when another one asks meanwhile.
func TestInvocationsThatWait(t *testing.T) {
	t.Parallel()
	p := new(till)
	g := newGuard(t, guard.Config{Hooks: []hooks.Hook{rules}, Limits: guard.Limits{Calls: 2}})
	c := newChat(t, g, configOf(desk(nil, p.Run), newModel(script("Alice", "Bob", "Dora", "Carl")...)))
	_, first := c.say("Pay.")
	require.Len(t, first, 1)
	_, second := c.say("Pay more.")
	require.Len(t, second, 1)
	c.send(confirm(first[0], confirmed))
	assert.Equal(t, []string{`{"to":"Alice"}`, `{"to":"Bob"}`}, p.ran)
}

// A call that takes long is not forgotten when its answer comes, so that rules still count it.
func TestLongRunningCallCounts(t *testing.T) {
	t.Parallel()
	want := map[string]int{"nothing": 100, "pending": 2}
	for name, result := range map[string]map[string]any{"nothing": nil, "pending": {"status": "pending"}} {
		seen := 0 // calls before, or that some are missing
		g := newGuard(t, guard.Config{Hooks: []hooks.Hook{before("pay", func(c hooks.ToolContext) hooks.Result {
			seen = 0
			for _, step := range c.State().RunSteps() {
				seen += step.ResultCount()
			}
			if agent.Checkpoint(c.State()).MissesCalls() {
				seen = 100
			}
			return c.Pass()
		})}})
		m := newModel(script("Bob", "Carl")...)
		config := llmagent.Config{Name: "desk", Model: m, Tools: []tool.Tool{long{custom{name: "pay"}, result}}}
		c := newChat(t, g, config)
		c.say("Pay.")
		m.script = script("Bob", "Carl", "Dora")
		c.send(&genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
			ID: "call-0", Name: "pay", Response: map[string]any{"result": "paid"},
		}}}})
		assert.Equal(t, want[name], seen, name)
	}
}

// long is a tool whose last answer comes from the client.
type long struct {
	custom
	result map[string]any
}

func (long) IsLongRunning() bool                            { return true }
func (l long) Run(adk.Context, any) (map[string]any, error) { return l.result, nil }

// The answer to the guard's question is not the tool's own, whatever the tool makes of its context.
func TestAnswerInDerivedContexts(t *testing.T) {
	t.Parallel()
	var given []*toolconfirmation.ToolConfirmation
	config := llmagent.Config{Name: "desk", Model: newModel(script("Bob")...), Tools: []tool.Tool{
		must(functiontool.New(functiontool.Config{Name: "pay", Description: "a tool"}, func(ctx adk.Context, _ map[string]any) (answer, error) {
			derived, cancel := ctx.WithAgentCancel()
			defer cancel()
			given = append(given, ctx.ToolConfirmation(), derived.ToolConfirmation(), ctx.WithDelta(&adk.CommonContextDelta{}).ToolConfirmation())
			return answer{}, nil
		})),
	}}
	c := newChat(t, newGuard(t, guard.Config{Hooks: []hooks.Hook{ask}}), config)
	_, questions := c.say("Pay.")
	c.send(confirm(questions[0], confirmed))
	assert.Equal(t, make([]*toolconfirmation.ToolConfirmation, 3), given)
}

// An agent without Install is not guarded because another one has its name.
func TestAgentsOfOneName(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"function", "stream", "toolset"} {
		p := new(till)
		a := desk(newGuard(t, guard.Config{Hooks: []hooks.Hook{denyTool("pay")}}), p.Run, pay("call-1", "Bob"))
		a.Tools[0].Kind = kind
		m := newModel(a.Script...)
		play(t.Context(), a, m, func(guarded *adkguard.Adapter) (adk.Agent, error) {
			_, err := newAgent(guarded, a, m, nil)
			require.NoError(t, err)
			return llmagent.New(configOf(a, m))
		})
		assert.Empty(t, p.ran, kind)
	}
}

func TestInstallTwiceWithToolsets(t *testing.T) {
	t.Parallel()
	guarded := adkguard.New(newGuard(t, guard.Config{}))
	c := llmagent.Config{Name: "desk", Toolsets: []tool.Toolset{toolset{}}}
	require.NoError(t, guarded.Install(&c))
	require.ErrorContains(t, guarded.Install(&c), "installing twice")
}

// Live mode asks no callbacks of the model, so that an agent without Install is refused at once.
func TestLive(t *testing.T) {
	t.Parallel()
	f := new(follower)
	p := new(till)
	a := desk(newGuard(t, guard.Config{Recorder: f}), p.Run, pay("call-1", "Bob"))
	guarded := adkguard.New(a.Guard)
	run := func(ctx context.Context, root adk.Agent) error {
		r := must(runner.New(runner.Config{
			AppName: app, Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
			PluginConfig: guarded.PluginConfig(),
		}))
		_, _, err := r.RunLive(ctx, user, "s", adk.LiveRunConfig{})
		return err
	}
	require.ErrorContains(t, run(t.Context(), must(llmagent.New(configOf(a, newModel())))), "call Install")
	assert.Zero(t, f.open.Load())
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorContains(t, run(ctx, must(newAgent(guarded, a, newModel(), nil))), "does not support live")
	cancel()
	assert.Eventually(t, func() bool { return f.open.Load() == 0 }, 10*time.Second, time.Millisecond)
}

// A tool that calls a guarded func waits with it: the answer is the func's. After a question about the tool itself, it is
// refused.
func TestFuncInATool(t *testing.T) {
	t.Parallel()
	for _, alsoTool := range []bool{false, true} {
		ran := 0
		g := newGuard(t, guard.Config{Hooks: []hooks.Hook{before("", func(c hooks.ToolContext) hooks.Result {
			if c.Tool() == "transfer" || alsoTool {
				return c.Ask("money leaves")
			}
			return c.Pass()
		})}})
		transfer := guard.Tool("transfer", func(context.Context, map[string]any) (string, error) { ran++; return "done", nil })
		config := llmagent.Config{Name: "desk", Model: newModel(script("Bob")...), Tools: []tool.Tool{
			must(functiontool.New(functiontool.Config{Name: "pay", Description: "a tool"}, func(ctx adk.Context, args map[string]any) (answer, error) {
				text, err := transfer(ctx, args)
				return answer{Text: text}, err
			})),
		}}
		c := newChat(t, g, config)
		_, questions := c.say("Pay.")
		require.Len(t, questions, 1)
		text, more := c.send(confirm(questions[0], confirmed))
		assert.Empty(t, more)
		if alsoTool {
			assert.Zero(t, ran)
			assert.Contains(t, text, "does not count")
			continue
		}
		assert.Equal(t, 1, ran)
		c.send(confirm(questions[0], confirmed))
		assert.Equal(t, 1, ran)
	}
}

// A client cannot hide a call that takes long behind another name, by breaking off, or by answering something else.
func TestCallsThatAClientHides(t *testing.T) {
	t.Parallel()
	answerTo := func(id, name string) *genai.Content {
		return &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
			ID: id, Name: name, Response: map[string]any{"confirmed": true},
		}}}}
	}
	for name, lie := range map[string]func(c *chat, question string) *genai.Content{
		"name":     func(*chat, string) *genai.Content { return answerTo("call-1", "other") },
		"question": func(*chat, string) *genai.Content { return answerTo("call-1", "adk_request_confirmation") },
		"earlier":  func(_ *chat, question string) *genai.Content { return answerTo(question, "adk_request_confirmation") },
	} {
		ran, misses := 0, false
		g := newGuard(t, guard.Config{
			Tools: agent.ToolsOf(agent.ToolSpec{Name: "pay"}, agent.ToolSpec{Name: "slow"}),
			Hooks: []hooks.Hook{before("pay", func(c hooks.ToolContext) hooks.Result {
				misses = agent.Checkpoint(c.State()).MissesCalls()
				if to, _ := c.Call().Text("to"); to == "Bob" {
					return c.Ask("money leaves")
				}
				return c.Pass()
			})},
		})
		m := newModel(append(script("Bob"), []agent.ToolCall{{ID: "call-1", Name: "slow"}}, []agent.ToolCall{pay("call-2", "Carl")})...)
		config := llmagent.Config{Name: "desk", Model: m, Tools: []tool.Tool{
			long{custom{name: "slow"}, nil}, custom{"pay", func(context.Context, string) (guardtest.Result, error) { ran++; return guardtest.Result{}, nil }},
		}}
		c := newChat(t, g, config)
		_, questions := c.say("Pay.")
		c.send(confirm(questions[0], confirmed))
		require.Equal(t, 1, ran)
		_ = c.try(lie(c, questions[0]))
		require.Equal(t, 2, ran, name)
		assert.True(t, misses, name)
	}
}

// A loop of agents ends when the session stops.
func TestStopEndsALoop(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]hooks.Hook{
		"call": before("pay", func(c hooks.ToolContext) hooks.Result { return c.Stop("enough") }),
		"step": hooks.On(hooks.AtStepStart, "look", func(_ context.Context, c hooks.StepContext) hooks.Result { return c.Stop("enough") }),
	} {
		p := new(till)
		guarded := adkguard.New(newGuard(t, guard.Config{Hooks: []hooks.Hook{stop}}))
		c := configOf(desk(nil, p.Run), newModel(script("Bob")...))
		require.NoError(t, guarded.Install(&c))
		r := must(runner.New(runner.Config{
			AppName: app, SessionService: session.InMemoryService(), AutoCreateSession: true,
			Agent:        must(loopagent.New(loopagent.Config{AgentConfig: adk.Config{Name: "all", SubAgents: []adk.Agent{must(llmagent.New(c))}}})),
			PluginConfig: guarded.PluginConfig(),
		}))
		events := 0
		for _, err := range r.Run(t.Context(), user, "s", genai.NewContentFromText("pay", genai.RoleUser), adk.RunConfig{}) {
			require.NoError(t, err)
			if events++; events == 50 {
				break
			}
		}
		assert.Less(t, events, 50, name)
	}
}
