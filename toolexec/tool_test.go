package toolexec_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

type nothing = struct{}

// saying returns a tool without arguments that gives the same answer always.
func saying[Out any](out Out, err error) toolexec.Tool {
	return toolexec.Func("say", "Says it.", func(context.Context, nothing) (Out, error) { return out, err })
}

func TestAnswersAreToldAsTheyAre(t *testing.T) {
	image := agent.ContentOf(agent.Text("look"), agent.Image("image/png", []byte{1}))
	for _, test := range []struct {
		name string
		tool toolexec.Tool
		want agent.Content
	}{
		{"text", saying("plain \"text\"", nil), agent.TextContent("plain \"text\"")},
		{"no text", saying("", nil), agent.Content{}},
		{"content", saying(image, nil), image},
		{"output", saying(toolexec.TextOutput("rich"), nil), agent.TextContent("rich")},
		{"struct", saying(pair{2, 3}, nil), agent.TextContent(`{"a":2,"b":3}`)},
		{"map, sorted", saying(map[string]int{"b": 2, "a": 1}, nil), agent.TextContent(`{"a":1,"b":2}`)},
		{"empty list", saying([]string(nil), nil), agent.TextContent(`[]`)},
		{"number", saying(7, nil), agent.TextContent(`7`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := answer(t, t.Context(), executor(t, toolexec.Options{}, test.tool), call("say", ""))
			assert.True(t, r.Content.Equal(test.want), "got %q, want %q", r.Text(), test.want.Text())
			assert.Equal(t, agent.ToolExecuted, r.Status)
			assert.Empty(t, r.Reason)
			assert.False(t, r.IsError())
		})
	}
}

func TestAnswerThatCannotBeWrittenIsAFailure(t *testing.T) {
	r := answer(t, t.Context(), executor(t, toolexec.Options{}, saying(func() {}, nil)), call("say", ""))
	assert.Equal(t, agent.ToolFailed, r.Status)
	assert.Equal(t, `tool "say": failed: writing the answer as JSON: a func() cannot be written as JSON`, r.Text())
}

func TestErrorHidesTheAnswer(t *testing.T) {
	r := answer(t, t.Context(), executor(t, toolexec.Options{}, saying("half an answer", errors.New("broke off"))), call("say", ""))
	assert.Equal(t, `tool "say": failed: broke off`, r.Text())
}

func TestOutputCarriesEffectsAndStop(t *testing.T) {
	seen := agent.SessionKey[int]("seen")
	signal := &agent.Signal{Reason: agent.StopRequested, Message: "enough", Source: "say"}
	out := toolexec.TextOutput("done")
	out.Effects, out.Stop = agent.EffectsOf(seen.Set(7)), signal
	r := answer(t, t.Context(), executor(t, toolexec.Options{}, saying(out, nil)), call("say", ""))
	assert.Same(t, signal, r.Stop)
	assert.Equal(t, 7, seen.Or(agent.State{}.Apply(r.Effects), 0))
}

func TestFuncInfersItsSchema(t *testing.T) {
	spec := toolexec.Func("add", "Adds.", add).Spec()
	assert.Equal(t, "add", spec.Name)
	assert.Equal(t, "Adds.", spec.Description)
	assert.JSONEq(t, `{"type":"object","required":["a","b"],"additionalProperties":false,
		"properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`, spec.Parameters)
}

func TestCallFuncKnowsItsCall(t *testing.T) {
	var got toolexec.Call
	tool := toolexec.CallFunc(agent.ToolSpec{Name: "look"}, func(_ context.Context, c toolexec.Call, in pair) (int, error) {
		got = c
		return in.A * in.B, nil
	})
	e := executor(t, toolexec.Options{}, tool)
	a, err := agent.New(agent.Config{Executor: e, Driver: scripted(
		agent.Assistant("", agent.ToolCall{ID: "first", Name: "look", Arguments: `{"a":6,"b":7}`}),
		agent.Assistant("", agent.ToolCall{ID: "second", Name: "look", Arguments: `{"a":1,"b":1}`}),
		agent.Assistant("bye"),
	)}).Get()
	require.NoError(t, err)
	final, err := a.RunWith(t.Context(), agent.RunSettings{ID: "run_1"}, agent.State{}, agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.ToolCall{ID: "second", Name: "look", Arguments: `{"a":1,"b":1}`}, got.ToolCall)
	assert.Equal(t, 1, got.Attempt)
	assert.Equal(t, agent.RunID("run_1"), got.State.Run().ID)
	assert.Equal(t, "run_1/1/second", got.IdempotencyKey())
	assert.Equal(t, "42", final.Message(2).Text())
}

func TestCallFuncTakesABetterSchema(t *testing.T) {
	spec := agent.ToolSpec{Name: "add", Parameters: `{"type":"object","properties":{"a":{"minimum":1},"b":{"type":"integer"}},"required":["a"]}`}
	e := executor(t, toolexec.Options{}, toolexec.CallFunc(spec, func(ctx context.Context, _ toolexec.Call, in pair) (string, error) {
		return add(ctx, in)
	}))
	assert.Equal(t, "5", answer(t, t.Context(), e, call("add", `{"a":5}`)).Text())
	assert.Contains(t, answer(t, t.Context(), e, call("add", `{"a":0}`)).Text(), "/a")
}

func TestRawGetsItsArgumentsChecked(t *testing.T) {
	echo := func(_ context.Context, c toolexec.Call) (string, error) { return c.Arguments, nil }
	e := executor(t, toolexec.Options{},
		toolexec.Raw(agent.ToolSpec{Name: "free", Parameters: `{"type":"object"}`}, echo),
		toolexec.Raw(agent.ToolSpec{Name: "bare"}, echo))
	assert.Equal(t, `{"n": 12345678901234567890}`, answer(t, t.Context(), e, call("free", `{"n": 12345678901234567890}`)).Text(), "as given")
	assert.Equal(t, `{}`, answer(t, t.Context(), e, call("bare", ``)).Text())
	assert.Equal(t, agent.ReasonInvalid, answer(t, t.Context(), e, call("bare", `{"n":1}`)).Reason)
	assert.Equal(t, agent.ReasonMalformed, answer(t, t.Context(), e, call("free", `{"n":1,"N":1}`)).Reason)
}

// counted counts how often it is decoded.
type counted struct{ times *int }

var decodings int

func (c *counted) UnmarshalText([]byte) error { decodings++; c.times = &decodings; return nil }

func TestArgumentsAreDecodedOnce(t *testing.T) {
	e := executor(t, toolexec.Options{}, toolexec.Func("count", "", func(_ context.Context, in struct{ N counted }) (int, error) {
		return *in.N.times, nil
	}))
	decodings = 0
	assert.Equal(t, "1", answer(t, t.Context(), e, call("count", `{"N":"x"}`)).Text())
	assert.Equal(t, 1, decodings)
}

// scripted returns a driver that says one message after the other.
func scripted(messages ...agent.Message) agent.Driver {
	return agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		return agent.Step{Message: messages[s.RunStepCount()]}, nil
	})
}
