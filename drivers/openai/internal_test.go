package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

func TestStrictSchema(t *testing.T) {
	const object = `{"type":"object","properties":{"a":%s},"required":["a"],"additionalProperties":false}`
	deep := func(n int) string {
		return strings.Repeat(`{"type":"array","items":`, n) + `{"type":"string"}` + strings.Repeat("}", n)
	}
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{},"required":[],"additionalProperties":false}`:                                                          true,
		`{"type":"object","additionalProperties":false}`:                                                                                        true,
		fmt.Sprintf(object, `{"type":"string"}`):                                                                                                true,
		fmt.Sprintf(object, `{"type":["string","null"],"enum":["x",null]}`):                                                                     true,
		fmt.Sprintf(object, `{"anyOf":[{"type":"string"},{"type":"null"}]}`):                                                                    true,
		fmt.Sprintf(object, `{"type":"string","format":"date-time","pattern":"^2"}`):                                                            true,
		fmt.Sprintf(object, deep(9)):                                                                                                            true,
		fmt.Sprintf(object, fmt.Sprintf(object, `{"$ref":"#"}`)):                                                                                true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"null"}}}`: true,

		`true`:              false,
		`{}`:                false,
		`{"type":"object"}`: false, // further members are allowed
		`{"type":"array","items":{"type":"string"}}`:                                                                                       false,
		`{"type":"object","additionalProperties":false,"anyOf":[{"type":"object","additionalProperties":false}]}`:                          false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                                false,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                              false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"],"additionalProperties":false}`:                             false,
		`{"type":"object","properties":{"a":{},"b":{}},"required":["a","a"],"additionalProperties":false}`:                                 false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":true}`:                              false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":{}}`:                                false,
		fmt.Sprintf(object, `{"type":"string","minLength":1}`):                                                                             false,
		fmt.Sprintf(object, `{"type":"string","format":"uri"}`):                                                                            false,
		fmt.Sprintf(object, `{"oneOf":[{"type":"string"}]}`):                                                                               false,
		fmt.Sprintf(object, `{"anyOf":"x"}`):                                                                                               false,
		fmt.Sprintf(object, `{"type":["object","null"]}`):                                                                                  false,
		fmt.Sprintf(object, `{"properties":{}}`):                                                                                           false,
		fmt.Sprintf(object, `{"type":"object","properties":[],"additionalProperties":false}`):                                              false,
		fmt.Sprintf(object, `{"type":"array","items":true}`):                                                                               false,
		fmt.Sprintf(object, deep(10)):                                                                                                      false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"not":{}}}}`: false,
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(schema), &v), schema)
		assert.Equal(t, want, strictSchema(v), schema)
	}
	many := map[string]any{}
	var names []any
	for i := range strictProperties + 1 {
		name := fmt.Sprint(i)
		many[name], names = map[string]any{"type": "null"}, append(names, name)
	}
	assert.False(t, strictSchema(map[string]any{"type": "object", "properties": many, "required": names, "additionalProperties": false}))
}

func TestToolsAreEncodedOnce(t *testing.T) {
	var forms toolForms
	list := func(n int) agent.Tools {
		return agent.ToolsOf(agent.ToolSpec{Name: fmt.Sprint("tool", n)}, agent.ToolSpec{Name: "other"})
	}
	first, err := forms.of(list(0), encodeTools)
	require.NoError(t, err)
	again, err := forms.of(list(0), encodeTools)
	require.NoError(t, err)
	assert.Same(t, &first[0], &again[0], "equal lists have one form")
	for i := range keptForms - 1 {
		text, err := forms.of(list(i+1), encodeTools)
		require.NoError(t, err)
		assert.Contains(t, string(text), fmt.Sprintf(`"tool%d"`, i+1))
	}
	again, err = forms.of(list(0), encodeTools)
	require.NoError(t, err)
	assert.Same(t, &first[0], &again[0], "the last few lists are remembered")
	for i := range keptForms {
		_, err := forms.of(list(100+i), encodeTools)
		require.NoError(t, err)
	}
	again, err = forms.of(list(0), encodeTools)
	require.NoError(t, err)
	assert.Equal(t, string(first), string(again))
	assert.NotSame(t, &first[0], &again[0], "older ones are forgotten")
	assert.Len(t, forms.last, keptForms)
}

// TestTextInPieces: however a text is cut, all of it is told, never half a
// character, and what is no text becomes U+FFFD.
func TestTextInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		var p textPieces
		var told strings.Builder
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			piece := p.add(rest[:n])
			assert.True(t, utf8.ValidString(piece))
			told.WriteString(piece)
			rest = rest[n:]
		}
		told.WriteString(p.end())
		assert.Equal(t, text, told.String())
		assert.Equal(t, text, p.String())
	})
	var p textPieces
	assert.Equal(t, "a", p.add("a\xf0\x9f"))
	assert.Equal(t, "\uFFFDb", p.add("b"), "the character is not gone on with")
	assert.Empty(t, p.add("\xe2\x82"))
	assert.Equal(t, "\uFFFD", p.end())
	assert.Equal(t, "a\uFFFDb\uFFFD", p.String())
}

// TestHalfACharacterAtTheEnd: what was held back is told of when nothing follows.
func TestHalfACharacterAtTheEnd(t *testing.T) {
	var told string
	r := reply{emit: func(d agent.Delta) { told += d.Text + "|" + d.Call.Arguments + "|" }}
	r.addPiece(callPiece{0, "a", "x", "1\xe2"})
	require.NoError(t, r.say(gjson.Parse("{\"content\":\"2\xe2\"}")))
	step, err := driverFor(t).step(&requestInfo{}, &r)
	require.NoError(t, err)
	assert.Equal(t, "|1|2||\uFFFD|||\uFFFD|", told)
	assert.Equal(t, "2\uFFFD", step.Message.Text())
	assert.Equal(t, "1\uFFFD", step.Message.Call(0).Arguments)
}

func driverFor(t testing.TB) *Driver {
	t.Helper()
	d, err := New(Config{Model: "m", BaseURL: "http://127.0.0.1:1/v1"})
	require.NoError(t, err)
	return d
}

// FuzzStream: whatever a service streams, it is a whole reply whose pieces were told
// of, or an error that says that it is none.
func FuzzStream(f *testing.F) {
	files, err := filepath.Glob("testdata/replies/stream-*.http")
	require.NoError(f, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(f, err)
		_, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
		f.Add(body)
	}
	for _, body := range []string{
		"data: {\"choices\":[{\"delta\":{\"content\":\"\xf0\x9f\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\x91\x8b\"}}]}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-5,\"function\":{\"name\":\"x\",\"arguments\":{\"a\":1}}}]}}]}\n\ndata: [DONE]\n\n",
		"data: {\"error\":null}\n\n", "data: {\"error\":{\"message\":{}}}\n\n", "event: x\ndata: 1\n\n", "data: [DONE]",
	} {
		f.Add([]byte(body))
	}
	d := driverFor(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var text, thought string
		calls := map[int]agent.ToolCall{}
		res := &http.Response{Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
		step, err := d.readStream(&requestInfo{model: "m"}, res, func(d agent.Delta) {
			require.NotEqual(t, agent.Delta{}, d, "a delta that says nothing")
			text += d.Text
			thought += d.Reasoning
			if d.Call != (agent.ToolCall{}) {
				c, begun := calls[d.CallIndex]
				require.Equal(t, !begun, d.Call.Name != "", "the name comes with the first piece and no other")
				calls[d.CallIndex] = agent.ToolCall{ID: c.ID + d.Call.ID, Name: c.Name + d.Call.Name, Arguments: c.Arguments + d.Call.Arguments, Index: d.CallIndex}
			}
		})
		if err != nil {
			_, isBroken := errors.AsType[*service.BrokenError](err)
			_, isTold := errors.AsType[*eventError](err)
			require.True(t, isBroken || isTold, "%T: %v", err, err)
			require.Less(t, len(d.failure(&requestInfo{}, err).Error()), 5000)
			return
		}
		require.Equal(t, step.Message.Text(), text)
		require.True(t, utf8.ValidString(text) && utf8.ValidString(thought))
		require.Equal(t, reasoning(step.Message), thought)
		require.Len(t, calls, step.Message.CallCount())
		for i, c := range step.Message.Calls() {
			require.Equal(t, c, calls[i])
		}
		_, err = d.encodeMessage(step.Message)
		require.NoError(t, err, "what came can go back")
	})
}

// FuzzWhole does the same for a reply in one piece, and for a refusal's body.
func FuzzWhole(f *testing.F) {
	files, err := filepath.Glob("testdata/replies/whole-*.http")
	require.NoError(f, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(f, err)
		_, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
		f.Add(body)
	}
	f.Add([]byte(`{"error":{"message":["x"],"code":1.5,"type":null}}`))
	f.Add([]byte(`{"error":{"error":{}},"detail":{}}`))
	d := driverFor(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		res := &http.Response{Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
		step, err := d.readWhole(&requestInfo{model: "m"}, res, nil)
		if err != nil {
			_, broken := errors.AsType[*service.BrokenError](err)
			_, said := errors.AsType[*eventError](err)
			require.True(t, broken || said, "%T: %v", err, err)
		} else {
			require.True(t, utf8.ValidString(step.Message.Text()))
		}
		failure := d.failure(&requestInfo{}, &service.RefusalError{Status: 400, Header: http.Header{}, Body: body})
		require.Equal(t, 400, failure.Status)
		require.Less(t, len(failure.Error()), 5000)
	})
}

func responsesFor(t testing.TB) *Driver {
	t.Helper()
	d, err := NewResponses(Config{Model: "m", BaseURL: "http://127.0.0.1:1/v1"})
	require.NoError(t, err)
	return d
}

// bodies returns the bodies of replies in testdata.
func bodies(f *testing.F, pattern string) (all [][]byte) {
	f.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(f, err)
		_, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
		all = append(all, body)
	}
	return all
}

// checkGoesBack requires that a reply can be a part of the next request.
func checkGoesBack(t *testing.T, d *Driver, step agent.Step) {
	t.Helper()
	items, err := d.encodeItems(step.Message)
	require.NoError(t, err)
	require.True(t, json.Valid([]byte("["+string(items)+"]")), "%s", items)
	require.True(t, utf8.Valid(items))
}

// FuzzResponseStream: whatever a service streams, it is a whole response whose pieces were emitted, or an error.
func FuzzResponseStream(f *testing.F) {
	for _, body := range bodies(f, "testdata/responses/replies/stream-*.http") {
		f.Add(body)
	}
	for _, events := range [][]string{
		{`{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}`, "{\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"\xf0\x9f\"}", `{"type":"response.completed"}`},
		{`{"type":"response.output_item.added","output_index":-5,"item":{"type":"function_call","arguments":{"a":1}}}`, `{"type":"response.completed"}`},
		{`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{"text":"a"},{"text":"b"}],"content":[{"text":"c"}]}}`, `{"type":"response.incomplete"}`},
		{`{"type":"error"}`}, {`{"type":"response.failed"}`}, {`{"type":"response.completed","response":{"error":"x"}}`}, {`{"error":null}`},
	} {
		f.Add([]byte("data: " + strings.Join(events, "\n\ndata: ") + "\n\n"))
	}
	d := responsesFor(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var text, thought string
		calls := map[int]agent.ToolCall{}
		res := &http.Response{Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
		step, err := d.readResponseStream(&requestInfo{model: "m"}, res, func(d agent.Delta) {
			require.NotEqual(t, agent.Delta{}, d, "a delta that says nothing")
			text += d.Text
			thought += d.Reasoning
			if d.Call != (agent.ToolCall{}) {
				c, begun := calls[d.CallIndex]
				require.Equal(t, !begun, d.Call.Name != "", "the name comes with the first piece and no other")
				calls[d.CallIndex] = agent.ToolCall{ID: c.ID + d.Call.ID, Name: c.Name + d.Call.Name, Arguments: c.Arguments + d.Call.Arguments, Index: d.CallIndex}
			}
		})
		if err != nil {
			_, isBroken := errors.AsType[*service.BrokenError](err)
			_, isTold := errors.AsType[*eventError](err)
			_, isUnfit := errors.AsType[*service.UnfitError](err)
			require.True(t, isBroken || isTold || isUnfit, "%T: %v", err, err)
			require.Less(t, len(d.failure(&requestInfo{}, err).Error()), 5000)
			return
		}
		require.Equal(t, step.Message.Text(), text)
		require.True(t, utf8.ValidString(text) && utf8.ValidString(thought))
		var kept string
		for _, p := range step.Message.Content().Parts() {
			if p.Kind == agent.PartReasoning {
				kept += p.Text
			}
		}
		require.Equal(t, kept, thought)
		require.Len(t, calls, step.Message.CallCount())
		for i, c := range step.Message.Calls() {
			require.Equal(t, c, calls[i])
		}
		checkGoesBack(t, d, step)
	})
}

// FuzzResponse: the same of a response in one piece.
func FuzzResponse(f *testing.F) {
	for _, body := range bodies(f, "testdata/responses/replies/whole-*.http") {
		f.Add(body)
	}
	d := responsesFor(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		res := &http.Response{Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
		step, err := d.readResponse(&requestInfo{model: "m"}, res, nil)
		if err != nil {
			require.Less(t, len(d.failure(&requestInfo{}, err).Error()), 5000)
			return
		}
		require.True(t, utf8.ValidString(step.Message.Text()))
		checkGoesBack(t, d, step)
	})
}

// FuzzKept: kept data in a part never breaks a request. A state from elsewhere can have any kept data.
func FuzzKept(f *testing.F) {
	for _, k := range []itemData{
		{Type: "reasoning", ID: "rs_1", Encrypted: "x"}, {Type: "reasoning", More: true}, {Type: "function_call", CallID: "a", ID: "fc_1"},
		{Type: "message", Phase: "commentary"}, {Type: "x", Item: json.RawMessage(`{"type":"x"}`)}, {Type: "x", Item: json.RawMessage(`null`)},
	} {
		f.Add(k.opaque(), "text")
	}
	d := responsesFor(f)
	f.Fuzz(func(t *testing.T, opaque, text string) {
		content := agent.ContentOf(agent.Reasoning(text, opaque), agent.Part{Kind: agent.PartText, Text: text, Opaque: opaque}, agent.Reasoning(text, opaque))
		checkGoesBack(t, d, agent.Step{Message: agent.AssistantContent(content, agent.ToolCall{ID: "a", Name: "x"}, agent.ToolCall{ID: "a", Name: "y"})})
	})
}

// BenchmarkRequest measures the cost of a step before anything is sent. The messages and the tools of earlier steps are
// copied, not encoded again.
func BenchmarkRequest(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			d := driverFor(b)
			var messages []agent.Message
			for i := range n / 2 {
				messages = append(messages, agent.UserText(strings.Repeat("a question ", 20)),
					agent.Assistant(strings.Repeat("an answer ", 20), agent.ToolCall{ID: fmt.Sprint("call_", i), Name: "look", Arguments: `{"at":"it"}`}))
			}
			s := agent.NewState(messages...).WithRequest(agent.Request{
				Instructions: strings.Repeat("Be brief. ", 100),
				Tools:        agent.ToolsOf(agent.ToolSpec{Name: "look", Parameters: `{"type":"object","properties":{"at":{"type":"string"}}}`}),
			})
			body, err := d.request("m", s, true)
			require.NoError(b, err)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.request("m", s.With(agent.UserText("one more")), true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
