package anthropic_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// whole returns the body of a reply with these blocks.
func whole(blocks, stopReason string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[` + blocks + `],"stop_reason":"` + stopReason +
		`","usage":{"input_tokens":9,"output_tokens":3}}`
}

// shapes returns replies in the shapes of endpoints that imitate the service.
func shapes() map[string]modeltest.Shape {
	echo := agent.ToolCall{ID: "toolu_1", Name: "echo", Arguments: `{"n":1}`}
	const begin = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"echo","input":`
	const repeated = `{"type":"tool_use","id":"toolu_1","name":"echo","input":{"n":1}}`
	const end = `{"type":"content_block_stop","index":0}`
	second := strings.Replace(begin, `"index":0`, `"index":1`, 1)
	third := `{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_2","name":"echo","input":{"n":3}}}`
	// inPieces returns a stream with a call whose arguments come in pieces. The blocks and pieces have indexes, or -1.
	inPieces := func(block, piece int, list ...string) modeltest.Shape {
		index := func(n int) string { return lo.Ternary(n < 0, "", `"index":`+strconv.Itoa(n)+`,`) }
		frames := []string{start, `{"type":"content_block_start",` + index(block-1) + `"content_block":{"type":"text","text":"Good day!"}}`}
		if block < 0 {
			frames[1] = `{"type":"content_block_start","content_block":{"type":"text","text":"Good day!"}}`
		}
		frames = append(frames, `{"type":"content_block_start",`+index(block)+`"content_block":{"type":"tool_use","id":"toolu_1","name":"echo","input":{}}}`)
		for _, text := range list {
			frames = append(frames, `{"type":"content_block_delta",`+index(piece)+`"delta":{"type":"input_json_delta","partial_json":`+strconv.Quote(text)+`}}`)
		}
		return modeltest.Shape{Exchange: modeltest.Exchange{Frames: events(append(frames, ends("tool_use"), stop)...)}, Text: "Good day!", Calls: []agent.ToolCall{echo}}
	}
	return map[string]modeltest.Shape{
		"each piece repeats all arguments":        inPieces(1, 1, `{`, `{"n"`, `{"n":`, `{"n":1}`, `{"n":1}`),
		"all arguments after their pieces":        inPieces(1, 1, `{"n"`, `:1}`, `{"n":1}`),
		"a placeholder before the arguments":      inPieces(1, 1, `{}`, `{"n"`, `:1}`),
		"the pieces have the index of a text":     inPieces(1, 0, `{"n"`, `:1}`),
		"the pieces have the index of no block":   inPieces(1, 7, `{"n"`, `:1}`),
		"neither blocks nor pieces have an index": inPieces(-1, -1, `{"n"`, `:1}`),
		"a call twice": {
			Exchange: modeltest.Exchange{
				Body:   whole(repeated+","+repeated+","+strings.Replace(repeated, "1}", "2}", 1), "tool_use"),
				Frames: events(start, begin+`{"n":1}}}`, end, begin+`{"n":1}}}`, end, begin+`{"n":2}}}`, end, ends("tool_use"), stop),
			}, Calls: []agent.ToolCall{echo, {ID: "toolu_1", Name: "echo", Arguments: `{"n":2}`}},
		},
		"a call twice, among open calls": {
			Exchange: modeltest.Exchange{Frames: events(start, begin+`{"n":1}}}`, end, begin+`{"n":1}}}`, second+`{"n":2}}}`, third, strings.Replace(end, "0", "1", 1), end, ends("tool_use"), stop)},
			Calls:    []agent.ToolCall{echo, {ID: "toolu_2", Name: "echo", Arguments: `{"n":3}`}, {ID: "toolu_1", Name: "echo", Arguments: `{"n":2}`}},
		},
		"the input in the beginning of the block": {
			Exchange: modeltest.Exchange{
				Body:   whole(`{"type":"tool_use","id":"toolu_1","name":"echo","input":{"n":1}}`, "tool_use"),
				Frames: events(start, begin+`{"n":1}}}`, end, ends("tool_use"), stop),
			}, Calls: []agent.ToolCall{echo},
		},
		"the input is text": {
			Exchange: modeltest.Exchange{
				Body:   whole(`{"type":"tool_use","id":"toolu_1","name":"echo","input":"{\"n\":1}"}`, "tool_use"),
				Frames: events(start, begin+`"{\"n\":1}"}}`, end, ends("tool_use"), stop),
			}, Calls: []agent.ToolCall{echo},
		},
		"the input is null": {
			Exchange: modeltest.Exchange{
				Body:   whole(`{"type":"tool_use","id":"toolu_1","name":"echo","input":null}`, "tool_use"),
				Frames: events(start, begin+`null}}`, end, ends("tool_use"), stop),
			}, Calls: []agent.ToolCall{{ID: "toolu_1", Name: "echo"}},
		},
		"pieces without an index": {
			Exchange: modeltest.Exchange{Frames: events(start, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","delta":{"type":"text_delta","text":"Good day!"}}`, `{"type":"content_block_stop"}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"echo","input":{}}}`,
				`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}`, `{"type":"content_block_stop"}`,
				ends("tool_use"), stop)},
			Text: "Good day!", Calls: []agent.ToolCall{echo},
		},
		"all blocks have the index 0": {
			Exchange: modeltest.Exchange{Frames: events(start, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Good day!"}}`, end,
				begin+`{}}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}`, end,
				ends("tool_use"), stop)},
			Text: "Good day!", Calls: []agent.ToolCall{echo},
		},
		"blocks without a beginning": {
			Exchange: modeltest.Exchange{Frames: events(start, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me see."}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Good "}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"day!"}}`, ends("end_turn"), stop)},
			Text: "Good day!", Reasoning: "Let me see.",
		},
		"the stop reason of another service": {
			Exchange: modeltest.Exchange{
				Body:   whole(`{"type":"tool_use","id":"toolu_1","name":"echo","input":{"n":1}}`, "tool_calls"),
				Frames: events(start, begin+`{"n":1}}}`, end, ends("tool_calls"), stop),
			}, Calls: []agent.ToolCall{echo},
		},
	}
}

// unfinished returns replies with calls that must not run.
func unfinished() map[string]modeltest.Exchange {
	out := map[string]modeltest.Exchange{}
	for _, reason := range []string{"refusal", "max_tokens", "model_context_window_exceeded", "content_filter", "never heard of"} {
		out[reason] = modeltest.Exchange{
			Body: whole(`{"type":"tool_use","id":"toolu_1","name":"echo","input":{"n":1}}`, reason),
			Frames: events(start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"echo","input":{}}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}`,
				`{"type":"content_block_stop","index":0}`, ends(reason), stop),
		}
	}
	return out
}

// sent returns the messages of a request.
func sent(t *testing.T, r modeltest.Request) (messages []struct {
	Role    string
	Content []struct{ Type, Text string }
}) {
	t.Helper()
	var body struct{ Messages json.RawMessage }
	require.NoError(t, json.Unmarshal(r.Body, &body))
	require.NoError(t, json.Unmarshal(body.Messages, &messages))
	return messages
}

// A paused turn goes on: the reply is sent back, the run takes another step, and the answer has both texts.
func TestPausedTurnContinues(t *testing.T) {
	text := func(said, reason string) modeltest.Exchange {
		return modeltest.Exchange{
			Body: whole(`{"type":"text","text":"`+said+`"}`, reason),
			Frames: events(start, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+said+`"}}`, ends(reason), stop),
		}
	}
	first, second := text("Searching, ", "pause_turn"), text("done.", "end_turn")
	for name, replies := range map[string][]modeltest.Reply{
		"blocking":  {modeltest.Body(200, "application/json", first.Body), modeltest.Body(200, "application/json", second.Body)},
		"streaming": {modeltest.SSE(first.Frames...), modeltest.SSE(second.Frames...)},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := modeltest.Golden(t, replies...)
			a, err := agent.New(agent.Config{Driver: newDriver(t, endpoint.URL)}).Get()
			require.NoError(t, err)
			var final agent.State
			if name == "blocking" {
				final, err = a.Run(t.Context(), agent.NewState(), agent.UserText("find it")).Get()
				require.NoError(t, err)
			} else {
				for p, failed := range a.Stream(t.Context(), agent.NewState(), agent.UserText("find it")) {
					require.NoError(t, failed)
					final = p.State
				}
			}
			assert.Equal(t, agent.StopCompleted, final.StopSignal().Reason)
			assert.Equal(t, "Searching, done.", final.Answer())
			require.Len(t, endpoint.Requests(), 2)
			messages := sent(t, endpoint.Requests()[1])
			require.Len(t, messages, 2)
			assert.Equal(t, "assistant", messages[1].Role)
			assert.Equal(t, "Searching,", messages[1].Content[0].Text, "the service refuses white space at the end")
		})
	}
}

// No reply is sent back with thinking at its end, which the service refuses, and nothing else of it is lost.
func TestNoReplyEndsInThinking(t *testing.T) {
	const thinking = `{"type":"thinking","thinking":"hm","signature":"c2ln"}`
	const redacted = `{"type":"redacted_thinking","data":"eA=="}`
	const say = `{"type":"text","text":"Good day!"}`
	const use = `{"type":"tool_use","id":"toolu_1","name":"echo","input":{}}`
	for name, c := range map[string]struct {
		blocks string
		want   []string
	}{
		"alone":              {thinking, nil},
		"redacted alone":     {redacted, nil},
		"after a text":       {say + "," + thinking + "," + redacted, []string{"text"}},
		"before a text":      {thinking + "," + say, []string{"thinking", "text"}},
		"before a call":      {thinking + "," + redacted + "," + use, []string{"thinking", "redacted_thinking", "tool_use"}},
		"between and after":  {thinking + "," + use + "," + thinking, []string{"thinking", "tool_use"}},
		"before white space": {thinking + `,{"type":"text","text":" \n"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", whole(c.blocks, "end_turn")),
				modeltest.Body(200, "application/json", whole(say, "end_turn")))
			a, err := agent.New(agent.Config{
				Driver:   newDriver(t, endpoint.URL),
				Executor: agenttest.Tools{"echo": func(context.Context, agent.ToolCall) (string, error) { return "", nil }}.Executor(),
				Request:  agent.Request{Tools: agent.ToolsOf(agent.ToolSpec{Name: "echo"})},
			}).Get()
			require.NoError(t, err)
			s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("first")).Get()
			require.NoError(t, err)
			_, err = a.Run(t.Context(), s, agent.UserText("second")).Get()
			require.NoError(t, err)
			var got []string
			for _, m := range sent(t, endpoint.Requests()[1]) {
				if m.Role == "assistant" {
					for _, block := range m.Content {
						got = append(got, block.Type)
					}
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}
