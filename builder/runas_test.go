package builder_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

type forecast struct {
	City string `json:"city" jsonschema:"the city's name"`
	Days []int  `json:"days,omitempty"`
}

const good = `{"city":"Bergen","days":[1,2]}`

// ask runs a script for a forecast.
func ask(t *testing.T, script *agenttest.Driver, more ...capability.Capability) (builder.Answer[forecast], error) {
	t.Helper()
	a, err := builder.New().WithName("meteo").WithDriver(script).With(more...).Build().Get()
	require.NoError(t, err)
	return builder.RunAs[forecast](t.Context(), a, agent.NewState(), agent.UserText("how is Bergen?")).Get()
}

func TestAnswerOfTheRightForm(t *testing.T) {
	for name, answer := range map[string]string{
		"plain":                     good,
		"in white space":            "\n  " + good + "\n",
		"in a code fence":           "```json\n" + good + "\n```",
		"in a fence without a word": "```\n" + good + "\n```\n",
		"after text":                "Here is the forecast for {city}:\n" + good,
		"before text":               good + "\nAnything else?",
		"in a fence between texts":  "Sure!\n```json\n" + good + "\n```\nI hope that this {helps}.",
		"in a fence on one line":    "```" + good + "```",
	} {
		t.Run(name, func(t *testing.T) {
			script := agenttest.Script(agenttest.Say(answer))
			got, err := ask(t, script)
			require.NoError(t, err)
			assert.Equal(t, forecast{"Bergen", []int{1, 2}}, got.Value)
			assert.Equal(t, agent.StatusDone, got.State.Status())
			assert.Equal(t, 1, got.State.RunStepCount())

			output := script.Calls()[0].Request.Output
			require.NotNil(t, output, "the service is told of the form")
			assert.Equal(t, "forecast", output.Name)
			schema, err := toolexec.SchemaFor[forecast]()
			require.NoError(t, err)
			assert.Equal(t, schema.String(), output.Schema)
		})
	}
}

func TestWrongAnswerIsSentBack(t *testing.T) {
	got, err := ask(t, agenttest.Script(agenttest.Say("It rains."), agenttest.Say(`{"town":"Bergen"}`), agenttest.Say(good)))
	require.NoError(t, err)
	assert.Equal(t, "Bergen", got.Value.City)
	assert.Equal(t, 3, got.State.RunStepCount())
	back := got.State.Message(4)
	assert.Equal(t, agent.RoleUser, back.Role())
	assert.Equal(t, "output", back.Source())
	assert.Contains(t, back.Text(), "Your answer does not have the form that was asked for: ")
	assert.Contains(t, back.Text(), "/town")
	assert.NotContains(t, back.Text(), "arguments", "there are none")
}

// The model is told what is wrong with an answer that is no JSON object, and how to answer.
func TestAnswersThatAreNoObject(t *testing.T) {
	const alone = "answer with one JSON object and no other text"
	for answer, want := range map[string]string{
		"nothing fits, true":                   "the answer is not JSON: " + alone,
		"42 degrees":                           "the answer is not JSON: " + alone,
		"It rains.":                            "the answer is not JSON: " + alone,
		"see {city}":                           "the answer is not JSON: " + alone,
		"either " + good + " or " + good:       "text around several objects: " + alone,
		"x " + strings.Repeat("{", 200) + good: "text around several objects: " + alone,
		"null":                                 "expected one JSON object, got null",
		"[" + good + "]":                       "expected one JSON object, got array",
		good[:len(good)-1]:                     "ends",
		`Here: {"answer": ` + good:             "the answer is not JSON: " + alone,
		"The answer: " + `{"town":"Bergen"}` + ", fine": "/town",
	} {
		t.Run(answer[:min(20, len(answer))], func(t *testing.T) {
			got, err := ask(t, agenttest.Script(agenttest.Say(answer), agenttest.Say(good)))
			require.NoError(t, err)
			assert.Equal(t, 2, got.State.RunStepCount())
			told := got.State.Message(2)
			assert.Equal(t, "output", told.Source())
			assert.Contains(t, told.Text(), want)
			assert.NotContains(t, told.Text(), "arguments")
		})
	}
}

func TestThreeWrongAnswersAreAnError(t *testing.T) {
	script := agenttest.Script().Then(agenttest.Say("It rains."))
	_, err := ask(t, script)
	broken, ok := errors.AsType[*agent.RunError](err)
	require.True(t, ok, err)
	assert.Equal(t, agent.StatusFailed, broken.State.Status())
	assert.Equal(t, 3, broken.State.RunStepCount())
	assert.Len(t, script.Calls(), 3)
	assert.Equal(t, "It rains.", broken.State.Answer())
	require.ErrorContains(t, err, `the answer does not have the form "forecast" after 3 attempts`)
	assert.ErrorContains(t, err, `; the last answer was "It rains."`)
}

// The attempts are counted by run.
func TestNextRunBeginsAnew(t *testing.T) {
	a := builder.New().WithDriver(agenttest.Script(agenttest.Say("x"), agenttest.Say("x"), agenttest.Say(good)).EachRun()).Build().MustGet()
	first, err := builder.RunAs[forecast](t.Context(), a, agent.NewState(), agent.UserText("?")).Get()
	require.NoError(t, err)
	second, err := builder.RunAs[forecast](t.Context(), a, first.State, agent.UserText("and now?")).Get()
	require.NoError(t, err)
	assert.Equal(t, 6, second.State.StepCount())
	final := a.Run(t.Context(), second.State, agent.UserText("and in plain words?")).MustGet()
	assert.Equal(t, 7, final.StepCount(), "a plain run of the same agent asks for no form")
}

// A run that ends without an answer is an error that says why, and has the state.
func TestRunsWithoutAnAnswer(t *testing.T) {
	down := errors.New("down")
	for name, tc := range map[string]struct {
		script *agenttest.Driver
		with   []capability.Capability
		status agent.Status
		text   string
	}{
		"stopped by a limit": {
			agenttest.Script().Then(agenttest.Call("a", `{}`)), []capability.Capability{capability.UseTools(tool("a")), capability.UseGuards{Steps: 2}},
			agent.StatusStopped, "stopped at step 2: no final answer: steps_limit by continuation.Steps: 2 of at most 2 steps taken",
		},
		"denied": {
			agenttest.Script(), []capability.Capability{capability.UseHooks(hooks.On(hooks.AtInputSubmitted, "guard",
				func(_ context.Context, c hooks.InputContext) hooks.Result { return c.Deny("not about Bergen") }))},
			agent.StatusDenied, "denied at step 0: no final answer: denied by guard: not about Bergen",
		},
		"parked": {
			agenttest.Script(agenttest.Call("a", `{}`)), []capability.Capability{
				capability.UseTools(tool("a")), capability.UseApproval(agent.ParkApprover), capability.UseHooks(hooks.On(hooks.AtPreToolUse, "asks",
					func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("may it?") })),
			},
			agent.StatusParked, "parked at step 0: no final answer yet: the run is parked: State.Interventions lists its questions",
		},
		"failed": {agenttest.Script(agenttest.Fail(down)), nil, agent.StatusFailed, "failed at step 1: asking the model: down"},
		"a soft end in the middle": {
			agenttest.Script(agenttest.Call("a", `{}`)),
			[]capability.Capability{capability.UseTools(tool("a")), capability.UseGuards{FinishReasons: []agent.FinishReason{agent.FinishToolCalls}}},
			agent.StatusDone, `the final answer does not have the form "forecast": `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, tc.script, tc.with...)
			broken, ok := errors.AsType[*agent.RunError](err)
			require.True(t, ok, err)
			assert.Equal(t, tc.status, broken.State.Status())
			assert.ErrorContains(t, err, tc.text)
			assert.Zero(t, got)
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		a := builder.New().WithDriver(agenttest.Script()).Build().MustGet()
		err := builder.RunAs[forecast](ctx, a, agent.NewState(), agent.UserText("?")).Error()
		require.ErrorIs(t, err, context.Canceled)
	})
}

// Hooks see and can correct the answer before it is judged; a Stop hook can require more than the
// form.
func TestTypedAnswersAndHooks(t *testing.T) {
	mends := hooks.On(hooks.AtPostInference, "mends", func(_ context.Context, c hooks.ReplyContext) hooks.Result {
		if c.Text() == "Bergen" {
			return c.ReplaceText(`{"city":"Bergen"}`)
		}
		return c.Pass()
	})
	more := hooks.On(hooks.AtStop, "days", func(_ context.Context, c hooks.StopContext) hooks.Result {
		if c.Continuations() == 0 {
			return c.Continue("Tell the days, too.")
		}
		return c.Allow()
	})
	got, err := ask(t, agenttest.Script(agenttest.Say("Bergen"), agenttest.Say(good)), capability.UseHooks(mends, more))
	require.NoError(t, err)
	assert.Equal(t, forecast{"Bergen", []int{1, 2}}, got.Value)
}

func TestFormsThatCannotBe(t *testing.T) {
	a := builder.New().WithName("meteo").WithDriver(agenttest.Script()).Build().MustGet()
	require.ErrorContains(t, builder.RunAs[chan int](t.Context(), a, agent.NewState()).Error(),
		`running agent "meteo" for a typed answer: inferring schema of `)
	require.ErrorContains(t, builder.RunAs[any](t.Context(), a, agent.NewState()).Error(), "cannot infer a schema for the answer type interface {}")
	require.Error(t, builder.RunAs[struct{ F func() }](t.Context(), a, agent.NewState()).Error())
	require.Error(t, builder.RunAs[map[int]string](t.Context(), a, agent.NewState()).Error())
	require.Error(t, builder.RunAs[[]func()](t.Context(), a, agent.NewState()).Error())
}

// A type that is not an object in JSON is wrapped in an object, because some services require one.
func TestAnswersThatAreNoObjects(t *testing.T) {
	for name, ask := range map[string]func(a *agent.Agent) (any, string, error){
		`{"answer":[{"city":"Bergen"},{"city":"Oslo","days":[1]}]}`: answerAs[[]forecast],
		`{"answer":["a","b"]}`:                    answerAs[[]string],
		`{"answer":42}`:                           answerAs[int],
		`{"answer":0.25}`:                         answerAs[float64],
		`{"answer":true}`:                         answerAs[bool],
		`{"answer":"Bergen"}`:                     answerAs[string],
		`{"answer":null}`:                         answerAs[*int],
		`{"answer":"2026-11-23T00:00:00Z"}`:       answerAs[time.Time],
		"```json\n{\"answer\": [ [1], [] ]}\n```": answerAs[[][]int],
	} {
		t.Run(name, func(t *testing.T) {
			script := agenttest.Script(agenttest.Say(`{"answer":{}}`), agenttest.Say(`[1]`), agenttest.Say(name))
			got, schema, err := ask(builder.New().WithDriver(script).Build().MustGet())
			require.NoError(t, err)
			assert.JSONEq(t, stripped(name), func() string { text, _ := json.Marshal(got); return string(text) }())
			assert.Equal(t, schema, script.Calls()[0].Request.Output.Schema)
			assert.Contains(t, schema, `"required":["answer"]`)
		})
	}
}

// answerAs runs an agent for a T and returns the answer, and the schema that the model is to be told.
func answerAs[T any](a *agent.Agent) (value any, schema string, err error) {
	of, err := toolexec.SchemaFor[struct {
		Answer T `json:"answer"`
	}]()
	if err != nil {
		return nil, "", err
	}
	got, err := builder.RunAs[T](context.Background(), a, agent.NewState(), agent.UserText("?")).Get()
	return got.Value, of.String(), err
}

// stripped returns what stands in the answer.
func stripped(text string) string {
	_, text, _ = strings.Cut(text, ":")
	return strings.TrimSpace(text[:strings.LastIndex(text, "}")])
}

type pair[A, B any] struct {
	A A `json:"a"`
	B B `json:"b"`
}

// The name of the form is one that every service takes.
func TestNamesOfForms(t *testing.T) {
	name := func(run func(a *agent.Agent) error) string {
		script := agenttest.Script(agenttest.Say(`{"a":1,"b":"x"}`))
		require.NoError(t, run(builder.New().WithDriver(script).Build().MustGet()))
		return script.Calls()[0].Request.Output.Name
	}
	assert.Equal(t, "pair", name(func(a *agent.Agent) error {
		got, err := builder.RunAs[pair[int, string]](t.Context(), a, agent.NewState()).Get()
		assert.Equal(t, pair[int, string]{1, "x"}, got.Value)
		return err
	}))
	assert.Equal(t, "answer", name(func(a *agent.Agent) error {
		got, err := builder.RunAs[map[string]any](t.Context(), a, agent.NewState()).Get()
		assert.Equal(t, map[string]any{"a": json.Number("1"), "b": "x"}, got.Value)
		return err
	}))
	assert.Equal(t, "answer", name(func(a *agent.Agent) error {
		return builder.RunAs[struct {
			A int    `json:"a"`
			B string `json:"b"`
		}](t.Context(), a, agent.NewState()).Error()
	}))
}
