package agenttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// Model describes a model service's driver for TestModel.
type Model struct {
	// New returns a driver for a stand-in of the service. The stand-in answers messages that contain n assistant
	// replies with turn n, blocking or streaming, for every caller and any number of times. It uses a turn's text,
	// calls, finish reason, and input and output tokens. A turn has text, calls or both. Required.
	New func(t *testing.T, turns ...agent.Step) agent.Driver
	// ObjectArguments reports that the service carries call arguments as JSON objects, so that it cannot carry
	// malformed arguments. The tool can then receive any other arguments. If it is false, the tool must receive the
	// model's exact text.
	ObjectArguments bool
}

// TestModel tests whether a model service's driver does what agents need. The test is the same for all services and
// uses complete runs, each of them blocking and streaming. New is called once for each part of the test. The test skips
// the parts that the driver's Features exclude.
func TestModel(t *testing.T, m Model) {
	t.Helper()
	t.Run("contract", func(t *testing.T) {
		TestDriver(t, func(t *testing.T) agent.Driver {
			return m.New(t, callTurn("let me see",
				agent.ToolCall{ID: "call_a", Name: "echo", Arguments: `{"text":"drei Brücken"}`},
				agent.ToolCall{ID: "call_b", Name: "echo", Arguments: `{"text":"vier Flüsse"}`}))
		})
	})
	t.Run("features", m.testFeatures)
	for name, part := range map[string]func(t *testing.T, w way){
		"plain answer":              m.testPlainAnswer,
		"several turns with calls":  m.testTurns,
		"parallel calls":            m.testParallelCalls,
		"call without arguments":    m.testNoArguments,
		"malformed arguments":       m.testMalformedArguments,
		"not only ASCII":            m.testNonASCII,
		"huge answer":               m.testHugeAnswer,
		"huge arguments":            m.testHugeArguments,
		"cut answer":                m.testCutAnswer,
		"structured output":         m.testStructuredOutput,
		"session of several runs":   m.testSession,
		"image":                     m.testImage,
		"run cancelled when asking": m.testCancelled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("blocking", func(t *testing.T) { part(t, false) })
			t.Run("streaming", func(t *testing.T) { part(t, true) })
		})
	}
	t.Run("same both ways", m.testSame)
	t.Run("stream left early", m.testLeft)
	t.Run("several runs at once", m.testAtOnce)
}

// testFeatures checks that a driver with Features always returns the same ones, and that they are true.
func (m Model) testFeatures(t *testing.T) {
	t.Helper()
	d := m.New(t, sayTurn("hello"))
	said := agent.FeaturesOf(d)
	if said == (agent.Features{}) {
		t.Skip("the driver says nothing of itself, and need not")
	}
	assert.Equal(t, said, agent.FeaturesOf(d), "the features are others when asked again")
	assert.NotEmpty(t, said.Provider, "the provider")
	_, streams := d.(agent.Streamer)
	assert.Equal(t, streams, said.Streaming, "Features.Streaming against being an agent.Streamer")
}

func (m Model) testPlainAnswer(t *testing.T, w way) {
	t.Helper()
	text := "One plain answer, long enough to arrive in more than one piece.\nIt has two lines."
	d := m.New(t, sayTurn(text))
	got := w.run(t, d, Tools{}, agent.UserText("hello"))
	require.NoError(t, got.err)
	assert.Equal(t, agent.StatusDone, got.final.Status(), "the status")
	assert.Equal(t, text, got.final.Answer(), "the answer")
	assert.Equal(t, []agent.FinishReason{agent.FinishStop}, got.finishReasons(), "finish reasons")
	got.checkUsage(t, sayTurn(text))
	if _, streams := d.(agent.Streamer); bool(w) && streams {
		assert.Greater(t, len(got.deltas), 1, "the driver is a streamer, and told of the reply in one piece")
		assert.Equal(t, text, got.streamText(), "the pieces of text are not the whole")
	}
}

func (m Model) testTurns(t *testing.T, w way) {
	t.Helper()
	turns := []agent.Step{
		callTurn("First I look.", agent.ToolCall{ID: "call_a", Name: "echo", Arguments: `{"n":1}`}),
		callTurn("", agent.ToolCall{ID: "call_b", Name: "echo", Arguments: `{"n":2,"deep":{"list":[1,"two",null,true,0.5]}}`}),
		callTurn("", agent.ToolCall{ID: "call_c", Name: "broken", Arguments: `{"n":3}`}),
		sayTurn("Done."),
	}
	got := w.run(t, m.withTools(t, turns...), echoing, agent.UserText("go"))
	require.NoError(t, got.err)
	assert.Equal(t, "Done.", got.final.Answer(), "the answer")
	assert.Equal(t, []string{`echo {"n":1}`, `echo {"deep":{"list":[1,"two",null,true,0.5]},"n":2}`, `broken {"n":3}`}, got.ran(t))
	assert.Equal(t, []agent.FinishReason{
		agent.FinishToolCalls, agent.FinishToolCalls, agent.FinishToolCalls, agent.FinishStop,
	}, got.finishReasons(), "finish reasons")
	got.checkAnswered(t)
	got.checkUsage(t, turns...)
}

func (m Model) testParallelCalls(t *testing.T, w way) {
	t.Helper()
	turns := []agent.Step{
		callTurn("All at once.",
			agent.ToolCall{ID: "call_a", Name: "echo", Arguments: `{"n":1}`},
			agent.ToolCall{ID: "call_b", Name: "other", Arguments: `{"n":2}`},
			agent.ToolCall{ID: "call_c", Name: "echo", Arguments: `{"n":3}`}),
		sayTurn("Done."),
	}
	d := m.withTools(t, turns...)
	if said := agent.FeaturesOf(d); said != (agent.Features{}) && !said.ParallelCalls {
		t.Skip("the driver says that there are no parallel calls")
	}
	got := w.run(t, d, echoing, agent.UserText("go"))
	require.NoError(t, got.err)
	assert.Equal(t, "Done.", got.final.Answer(), "the answer")
	var answers []string
	for _, msg := range got.final.Messages() {
		if msg.Role() == agent.RoleTool {
			answers = append(answers, msg.Tool()+" "+canonicalJSON(t, msg.Text()))
		}
	}
	assert.Equal(t, []string{`echo {"n":1}`, `other {"n":2}`, `echo {"n":3}`}, answers, "the answers to calls of one reply")
	got.checkAnswered(t)
	got.checkUsage(t, turns...)
}

func (m Model) testNoArguments(t *testing.T, w way) {
	t.Helper()
	got := w.run(t, m.withTools(t, callTurn("", agent.ToolCall{ID: "call_a", Name: "echo"}), sayTurn("Done.")), echoing, agent.UserText("go"))
	require.NoError(t, got.err)
	assert.Equal(t, "Done.", got.final.Answer(), "the answer")
	assert.Equal(t, []string{"echo {}"}, got.ran(t), "empty arguments and {} are the same")
}

func (m Model) testMalformedArguments(t *testing.T, w way) {
	t.Helper()
	const cut = `{"text":"it breaks off he`
	got := w.run(t, m.withTools(t, callTurn("", agent.ToolCall{ID: "call_a", Name: "echo", Arguments: cut}), sayTurn("Sorry.")),
		echoing, agent.UserText("go"))
	require.NoError(t, got.err, "a model that writes nonsense is no failure of its service, and can be shown what it wrote")
	assert.Equal(t, "Sorry.", got.final.Answer(), "the answer")
	calls := got.executor.Calls()
	require.Len(t, calls, 1, "the calls that reached the executor")
	if !m.ObjectArguments {
		assert.Equal(t, cut, calls[0].Arguments, "the arguments as the model wrote them")
	}
}

func (m Model) testNonASCII(t *testing.T, w way) {
	t.Helper()
	//nolint:gosmopolitan // characters of all lengths
	const text = "Grüße aus 東京 — naïve café, שלום, 🌍🌏 and a 👩‍👩‍👧‍👦 \u2028 \"quoted\" \\ back\tslash </script> \u0001"
	arguments := `{"text":"ελ 🌍 \"q\" \\ ü","ключ":"значение"}`
	turns := []agent.Step{callTurn(text, agent.ToolCall{ID: "call_a", Name: "echo", Arguments: arguments}), sayTurn(text + " again")}
	got := w.run(t, m.withTools(t, turns...), echoing, agent.UserText(text))
	require.NoError(t, got.err)
	assert.Equal(t, text+" again", got.final.Answer(), "the answer")
	assert.Equal(t, text, got.final.Message(1).Text(), "the text beside the call")
	assert.Equal(t, []string{"echo " + canonicalJSON(t, arguments)}, got.ran(t))
}

// huge is the length of a huge answer in bytes.
const huge = 1 << 20

func (m Model) testHugeAnswer(t *testing.T, w way) {
	t.Helper()
	text := strings.Repeat("All work and no play. ", huge/22)
	a, executor := newAgent(t, m.New(t, sayTurn(text), sayTurn("short")), Tools{})
	got := outcome{executor: executor}
	soon(t, "the run", func() { w.on(t.Context(), a, &got, agent.NewState(), agent.UserText("go")) })
	require.NoError(t, got.err)
	checkText(t, "the answer", text, got.final.Answer())
	soon(t, "the run that is shown a huge answer", func() { w.on(t.Context(), a, &got, got.final, agent.UserText("go on")) })
	require.NoError(t, got.err)
	checkText(t, "the answer to a huge message", "short", got.final.Answer())
}

func (m Model) testHugeArguments(t *testing.T, w way) {
	t.Helper()
	arguments := fmt.Sprintf(`{"text":%q}`, strings.Repeat("All work and no play. ", huge/4/22))
	got := w.run(t, m.withTools(t, callTurn("", agent.ToolCall{ID: "call_a", Name: "echo", Arguments: arguments}), sayTurn("Done.")),
		echoing, agent.UserText("go"))
	require.NoError(t, got.err)
	ran := got.ran(t)
	require.Len(t, ran, 1, "calls")
	checkText(t, "the call", "echo "+arguments, ran[0])
}

func (m Model) testCutAnswer(t *testing.T, w way) {
	t.Helper()
	turn := sayTurn("It was longer than it m")
	turn.FinishReason = agent.FinishLength
	got := w.run(t, m.New(t, turn), Tools{}, agent.UserText("go"))
	require.NoError(t, got.err)
	assert.Equal(t, []agent.FinishReason{agent.FinishLength}, got.finishReasons(), "finish reasons")
	assert.Equal(t, turn.Message.Text(), got.final.Answer(), "what there is of the answer")
}
