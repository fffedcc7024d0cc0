package modeltest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// TestShapes tests that a driver reads replies in the shapes of other implementations of its protocol, and that it
// sends requests that they accept.
func TestShapes(t *testing.T, s Service) {
	t.Helper()
	for _, part := range []struct {
		name string
		test func(t *testing.T, streaming bool)
	}{
		{"shapes", s.testOddShapes},
		{"answer in the other form", s.testOtherForm},
		{"calls of an unfinished reply", s.testUnfinished},
		{"schemas of tools", s.testToolSchemas},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Run("blocking", func(t *testing.T) { part.test(t, false) })
			t.Run("streaming", func(t *testing.T) { part.test(t, true) })
		})
	}
}

// Shape is a good reply as some implementation of the protocol formats it.
type Shape struct {
	// Exchange may have only one of the two formats.
	Exchange
	// Text, Reasoning and Calls are the reply's content. IDs of calls are compared only if they are set.
	Text, Reasoning string
	Calls           []agent.ToolCall
}

// shapeTools lists the tools in the requests.
var shapeTools = agent.ToolsOf(agent.ToolSpec{Name: "echo"}, agent.ToolSpec{Name: "look"}, agent.ToolSpec{Name: "look_up_all"})

// testOddShapes checks replies in the shapes of other implementations, and that the deltas that a driver emits add up
// to the reply.
func (s Service) testOddShapes(t *testing.T, streaming bool) {
	t.Helper()
	for name, shape := range s.Shapes {
		t.Run(name, func(t *testing.T) {
			if streaming && len(shape.Frames) == 0 || !streaming && shape.Body == "" {
				t.Skip("the shape has only the other format")
			}
			a := s.ask(t, streaming, shape.reply(streaming))
			a.state = hello.WithRequest(agent.Request{Tools: shapeTools})
			var text, thought strings.Builder
			told := map[int]agent.ToolCall{}
			step, err := a.soon(t.Context(), t, func(d agent.Delta) {
				text.WriteString(d.Text)
				thought.WriteString(d.Reasoning)
				if d.Call != (agent.ToolCall{}) {
					c := told[d.CallIndex]
					told[d.CallIndex] = agent.ToolCall{Name: c.Name + d.Call.Name, Arguments: c.Arguments + d.Call.Arguments}
				}
			})
			require.NoError(t, err)
			assert.Equal(t, shape.Text, step.Message.Text(), "the text")
			assert.Equal(t, shape.Reasoning, reasoningOf(step), "the reasoning")
			require.Equal(t, len(shape.Calls), step.Message.CallCount(), "calls: %+v", step.Message)
			for i, want := range shape.Calls {
				got := step.Message.Call(i)
				assert.Equal(t, want.Name, got.Name, "the name of call %d", i)
				assert.Equal(t, want.Arguments, got.Arguments, "the arguments of call %d", i)
				if want.ID != "" {
					assert.Equal(t, want.ID, got.ID, "the id of call %d", i)
				}
				if streaming {
					assert.Equal(t, agent.ToolCall{Name: want.Name, Arguments: want.Arguments}, told[i], "the pieces of call %d", i)
				}
			}
			if streaming {
				assert.Equal(t, shape.Text, text.String(), "the pieces of text")
				assert.Equal(t, shape.Reasoning, thought.String(), "the pieces of reasoning")
			}
		})
	}
}

func reasoningOf(step agent.Step) string {
	var b strings.Builder
	for _, part := range step.Message.Content().Parts() {
		if part.Kind == agent.PartReasoning {
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// testOtherForm checks that the answer's bytes decide whether it is a stream, not the request or the media type, and
// that a stream may end without an empty line.
func (s Service) testOtherForm(t *testing.T, streaming bool) {
	t.Helper()
	stream := strings.Join(s.Whole.Frames, "")
	for name, body := range map[string]string{
		"whole": s.Whole.Body, "stream": stream, "stream without its last line": strings.TrimRight(stream, "\n"), "stream after space": "\n\n" + stream,
	} {
		for _, contentType := range []string{"application/json", "text/event-stream; charset=utf-8", "text/plain", "application/octet-stream"} {
			t.Run(name+" as "+contentType, func(t *testing.T) {
				var told strings.Builder
				step, err := s.ask(t, streaming, Body(http.StatusOK, contentType, body)).soon(t.Context(), t, func(d agent.Delta) { told.WriteString(d.Text) })
				require.NoError(t, err)
				assert.Equal(t, s.Text, step.Message.Text(), "the text")
				assert.Equal(t, agent.FinishStop, step.FinishReason, "the finish reason")
				if streaming {
					assert.Equal(t, s.Text, told.String(), "the pieces of text")
				}
			})
		}
	}
}

// testUnfinished checks that no call runs from a reply that the service withheld or ended with an error, and that
// each call gets an answer. The run may also fail with an error.
func (s Service) testUnfinished(t *testing.T, streaming bool) {
	t.Helper()
	for name, exchange := range s.Unfinished {
		t.Run(name, func(t *testing.T) {
			a := s.ask(t, streaming, exchange.reply(streaming), s.Whole.reply(streaming))
			ran := false
			built, err := agent.New(agent.Config{
				Driver: a.driver,
				Executor: agenttest.Tools{"echo": func(context.Context, agent.ToolCall) (string, error) {
					ran = true
					return "echo", nil
				}}.Executor(),
				Request: agent.Request{Tools: shapeTools},
			}).Get()
			require.NoError(t, err)
			final, err := runWay(t, built, streaming)
			assert.False(t, ran, "the call ran")
			if err != nil {
				return
			}
			assert.Equal(t, s.Text, final.Answer(), "the answer to the next request")
			for _, step := range final.Steps() {
				for _, result := range step.Results() {
					assert.Equal(t, agent.ToolNotExecuted, result.Status, "the status")
					assert.Equal(t, agent.ReasonUnfinishedReply, result.Reason, "the reason")
				}
			}
		})
	}
}

// testToolSchemas checks that a tool's schema is sent in the format that services accept: an object at the top,
// without alternatives. The description keeps the information that the schema loses.
func (s Service) testToolSchemas(t *testing.T, streaming bool) {
	t.Helper()
	for name, c := range map[string]struct {
		schema  string
		members []string
		says    string
	}{
		"plain": {`{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a"],"additionalProperties":false}`, []string{"a", "b"}, ""},
		"oneOf beside properties": {
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`,
			[]string{"a", "b"}, `"oneOf":[{"required":["a"]},{"required":["b"]}]`},
		"anyOf of objects": {`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"integer"}}}]}`,
			[]string{"a", "b"}, `"anyOf":`},
		"allOf": {`{"type":"object","allOf":[{"properties":{"a":{}}},{"properties":{"b":{}},"required":["b"]}]}`, []string{"a", "b"}, `"allOf":`},
		"a reference": {
			`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"a":{"$ref":"#/$defs/y"}}},"y":{"type":"string"}}}`, []string{"a"}, `"$ref":`},
		"a circle":          {`{"$ref":"#"}`, nil, `"$ref":`},
		"not":               {`{"type":"object","properties":{"a":{}},"not":{"required":["a"]}}`, []string{"a"}, `"not":`},
		"without a type":    {`{"properties":{"a":{}}}`, []string{"a"}, ""},
		"two types":         {`{"type":["object","null"],"properties":{"a":{}}}`, []string{"a"}, ""},
		"only a type":       {`{"type":"object"}`, nil, ""},
		"nothing":           {`{}`, nil, ""},
		"alternatives deep": {`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}]}}}`, []string{"a"}, ""},
		"if and else":       {`{"type":"object","properties":{"a":{}},"if":{"required":["a"]},"else":{"properties":{"b":{}}}}`, []string{"a", "b"}, `"else":`},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.ask(t, streaming, s.Whole.reply(streaming))
			a.state = hello.WithRequest(agent.Request{Tools: agent.ToolsOf(agent.ToolSpec{Name: "tool", Parameters: c.schema})})
			_, err := a.soon(t.Context(), t, nil)
			require.NoError(t, err)
			schema, ok := findSchema(a.Requests()[0].JSON(t)["tools"])
			require.True(t, ok, "no schema in %s", a.Requests()[0].Body)
			assert.Equal(t, "object", schema["type"], "the type")
			for _, word := range []string{"oneOf", "anyOf", "allOf", "not", "enum", "$ref"} {
				assert.NotContains(t, schema, word)
			}
			members, _ := schema["properties"].(map[string]any)
			assert.ElementsMatch(t, c.members, lo.Keys(members), "the members")
			description, _ := schema["description"].(string)
			assert.Contains(t, description, c.says, "the description")
		})
	}
	a := s.ask(t, streaming, s.Whole.reply(streaming))
	a.state = hello.WithRequest(agent.Request{Tools: agent.ToolsOf(agent.ToolSpec{Name: "tool", Parameters: `{"type":"string"}`})})
	_, err := a.soon(t.Context(), t, nil)
	a.checkFailure(t, err, agent.KindBadRequest)
	assert.Empty(t, a.Requests(), "requests with parameters that are no object")
}

// findSchema finds a tool's schema, whose key differs between services.
func findSchema(v any) (schema map[string]any, ok bool) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			if schema, ok := findSchema(element); ok {
				return schema, true
			}
		}
	case map[string]any:
		for name, member := range v {
			if schema, ok = member.(map[string]any); ok && slices.Contains([]string{"input_schema", "parameters", "parametersJsonSchema"}, name) {
				return schema, true
			}
			if schema, ok = findSchema(member); ok {
				return schema, true
			}
		}
	}
	return nil, false
}
