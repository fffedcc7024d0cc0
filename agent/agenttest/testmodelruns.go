package agenttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

func (m Model) testStructuredOutput(t *testing.T, w way) {
	t.Helper()
	output := &agent.Output{
		Name:   "city",
		Schema: `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`,
		Check: func(answer string) error {
			if strings.HasPrefix(answer, "{") {
				return nil
			}
			return errors.New("this is not a JSON object")
		},
	}
	executor := echoing.Executor()
	a, err := agent.New(agent.Config{
		Driver:   m.New(t, sayTurn("It is Paris."), sayTurn(`{"name":"Paris"}`)),
		Executor: executor, Request: agent.Request{Output: output},
	}).Get()
	require.NoError(t, err)
	got := outcome{executor: executor}
	soon(t, "the run", func() { w.on(t.Context(), a, &got, agent.NewState(), agent.UserText("which city?")) })
	require.NoError(t, got.err)
	assert.Equal(t, agent.StatusDone, got.final.Status(), "the status")
	assert.Equal(t, 2, got.final.RunStepCount(), "steps: the first answer had another form")
	assert.JSONEq(t, `{"name":"Paris"}`, got.final.Answer(), "the answer")
}

func (m Model) testSession(t *testing.T, w way) {
	t.Helper()
	turns := []agent.Step{
		callTurn("", agent.ToolCall{ID: "call_a", Name: "echo", Arguments: `{"n":1}`}),
		sayTurn("The first answer."), sayTurn("The second answer."),
	}
	a, executor := newAgent(t, m.withTools(t, turns...), echoing)
	got := outcome{executor: executor}
	soon(t, "the first run", func() { w.on(t.Context(), a, &got, agent.NewState(), agent.UserText("one")) })
	require.NoError(t, got.err)
	assert.Equal(t, "The first answer.", got.final.Answer())
	soon(t, "the second run", func() { w.on(t.Context(), a, &got, got.final, agent.UserText("two")) })
	require.NoError(t, got.err)
	assert.Equal(t, "The second answer.", got.final.Answer())
	got.checkUsage(t, turns[2])
}

// testImage checks that a driver passes an image to the model, or returns an error if it cannot. It must not omit the
// image.
func (m Model) testImage(t *testing.T, w way) {
	t.Helper()
	d := m.New(t, sayTurn("A dot."))
	said := agent.FeaturesOf(d)
	if said == (agent.Features{}) {
		t.Skip("the driver does not say whether there are images")
	}
	got := w.run(t, d, Tools{}, agent.User(agent.Text("what is this?"), agent.Image("image/png", dot)))
	if !said.Images {
		require.Error(t, got.err, "the driver says that there are no images")
		assert.Equal(t, agent.KindBadRequest, agent.KindOf(got.err), "the kind of: %v", got.err)
		return
	}
	require.NoError(t, got.err)
	assert.Equal(t, "A dot.", got.final.Answer(), "the answer")
}

// dot is a PNG image of one pixel.
var dot = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\b\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB\x60\x82")

// testCancelled checks a run whose context ends when the model is asked for the second time.
func (m Model) testCancelled(t *testing.T, w way) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	executor := echoing.Executor()
	a, err := agent.New(agent.Config{
		Driver:   m.withTools(t, callTurn("", agent.ToolCall{ID: "call_a", Name: "echo", Arguments: `{"n":1}`}), sayTurn("Done.")),
		Executor: executor, Request: agent.Request{Tools: echoing.toolSpecs()},
		Observer: agent.ObserverFunc(func(_ context.Context, e agent.Event) {
			if _, ok := e.(agent.InferenceStarted); ok {
				if asked++; asked == 2 {
					cancel()
				}
			}
		}),
	}).Get()
	require.NoError(t, err)
	got := outcome{executor: executor}
	soon(t, "the run", func() { w.on(ctx, a, &got, agent.NewState(), agent.UserText("go")) })
	require.ErrorIs(t, got.err, context.Canceled, "the error of the run")
	assert.Equal(t, agent.StatusCancelled, got.final.Status(), "the status")
	assert.Len(t, got.executor.Calls(), 1, "calls before the end")
}

// testSame checks that streaming and blocking calls give the same transcript.
func (m Model) testSame(t *testing.T) {
	t.Helper()
	turns := []agent.Step{
		callTurn("Let me see.", agent.ToolCall{ID: "call_a", Name: "echo", Arguments: `{"n":1}`}),
		callTurn("", agent.ToolCall{ID: "call_b", Name: "echo", Arguments: `{"n":2}`}),
		sayTurn("The end."),
	}
	d := m.withTools(t, turns...)
	blocking := way(false).run(t, d, echoing, agent.UserText("go"))
	require.NoError(t, blocking.err)
	streaming := way(true).run(t, d, echoing, agent.UserText("go"))
	require.NoError(t, streaming.err)
	assert.Equal(t, formatTranscript(blocking.final.Messages()), formatTranscript(streaming.final.Messages()), "the transcript")
	assert.Equal(t, blocking.finishReasons(), streaming.finishReasons(), "finish reasons")
	assert.Equal(t, blocking.final.RunUsage(), streaming.final.RunUsage(), "the usage")
	model := func(o outcome) string { return o.final.LastStep().Reply().Model }
	assert.Equal(t, model(blocking), model(streaming), "the model that answered")
}

// testLeft checks a listener that leaves at the first piece of a long reply. The driver must serve the next run.
func (m Model) testLeft(t *testing.T) {
	t.Helper()
	a, _ := newAgent(t, m.New(t, sayTurn(strings.Repeat("All work and no play. ", 5000))), Tools{})
	for range 2 {
		pieces := 0
		soon(t, "Stream", func() {
			for p, err := range a.Stream(t.Context(), agent.NewState(), agent.UserText("go")) {
				assert.NoError(t, err)
				if p.Delta != nil {
					pieces++
					break
				}
			}
		})
		assert.Equal(t, 1, pieces, "pieces")
	}
}

func (m Model) testAtOnce(t *testing.T) {
	t.Helper()
	turns := []agent.Step{
		callTurn("", agent.ToolCall{ID: "call_a", Name: "echo", Arguments: `{"n":1}`},
			agent.ToolCall{ID: "call_b", Name: "echo", Arguments: `{"n":2}`}),
		sayTurn("The end."),
	}
	a, executor := newAgent(t, m.withTools(t, turns...), echoing)
	soon(t, "a run", func() {
		together(func(i int) {
			got := outcome{executor: executor}
			question := fmt.Sprintf("question %d", i)
			way(i%2 == 0).on(t.Context(), a, &got, agent.NewState(), agent.UserText(question))
			if assert.NoError(t, got.err) {
				assert.Equal(t, "The end.", got.final.Answer())
				assert.Equal(t, question, got.final.Message(0).Text())
				got.checkAnswered(t)
				got.checkUsage(t, turns...)
			}
		})
	})
	assert.Len(t, executor.Calls(), 2*atOnce, "calls of all runs")
}
