package gemini_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/internal/modeltest"
	"github.com/grapnel-go/grapnel/processor"
)

// bothWays asks once for a whole reply and once for a stream.
func bothWays(t *testing.T, config gemini.Config, s agent.State, whole, stream modeltest.Reply, check func(t *testing.T, step agent.Step, err error)) {
	t.Helper()
	t.Run("blocking", func(t *testing.T) {
		d, _ := newDriver(t, config, whole)
		step, err := d.Next(t.Context(), s).Get()
		check(t, step, err)
	})
	t.Run("streaming", func(t *testing.T) {
		d, _ := newDriver(t, config, stream)
		step, err := d.Stream(t.Context(), s, func(agent.Delta) {}).Get()
		check(t, step, err)
	})
}

// as returns a reply of one piece, both as a whole and as a stream.
func as(body string) (whole, stream modeltest.Reply) {
	return modeltest.Body(http.StatusOK, "application/json", body), modeltest.SSE("data: " + body + "\n\n")
}

func replyFile(t *testing.T, name string) modeltest.Reply {
	t.Helper()
	return modeltest.ReadReply(t, filepath.Join("testdata", "replies", name))
}

func TestParallelCallsWithSignatures(t *testing.T) {
	s := agent.NewState(agent.UserText("where?"))
	bothWays(t, gemini.Config{Model: "gemini-3.1-pro-preview", Prices: new(gemini.ListPrices())}, s,
		replyFile(t, "parallel.http"), replyFile(t, "parallel.sse.http"), func(t *testing.T, step agent.Step, err error) {
			t.Helper()
			require.NoError(t, err)
			assert.Equal(t, agent.Step{
				Message: agent.AssistantContent(agent.ContentOf(
					agent.Reasoning("**Planning**\n\nTwo places.", "gemini:"),
					agent.Reasoning("", "gemini:call:grapnel-mAitaLmkHPPlz7IPvtfUqQ4-0-1-0:EpcBCpQBAXLI2nw="),
					agent.Reasoning("", "gemini:call:fc_9:/+8="),
				),
					agent.ToolCall{ID: "grapnel-mAitaLmkHPPlz7IPvtfUqQ4-0-1-0", Name: "look", Arguments: `{"id":12345678901234567890,"at":"é\u00fc","at":"twice"}`},
					agent.ToolCall{ID: "grapnel-mAitaLmkHPPlz7IPvtfUqQ4-0-1-1", Name: "look", Arguments: `{"z":1.0,"a":[]}`},
					agent.ToolCall{ID: "fc_9", Name: "clock", Arguments: `{}`},
				),
				FinishReason: agent.FinishToolCalls, Model: "gemini-3.1-pro-preview", ID: "mAitaLmkHPPlz7IPvtfUqQ4",
				Usage: agent.Usage{
					InputTokens: 300_020, OutputTokens: 250, CacheReadTokens: 100_000, ReasoningTokens: 200,
					// Over 200,000 tokens of input: 200,020 at 4, 100,000 from the cache at 0.40, 250 of output at 18.
					Cost: mo.Some(step.Usage.Cost.OrEmpty()),
				},
			}, step)
			assert.InDelta(t, (200_020*4+100_000*0.40+250*18)/1e6, step.Usage.Cost.MustGet(), 1e-9)
		})
}

// Every signature goes back where it was, also after the state was JSON.
func TestSignaturesSurviveTheStatesJSON(t *testing.T) {
	d, e := newDriver(t, gemini.Config{}, replyFile(t, "parallel.sse.http"), modeltest.Body(200, "application/json", service.Whole.Body))
	s := agent.NewState(agent.UserText("where?"))
	step, err := d.Stream(t.Context(), s, func(agent.Delta) {}).Get()
	require.NoError(t, err)
	s = s.With(step.Message)
	for _, c := range step.Message.Calls() {
		s = s.With(answered(c, said("to "+c.ID)))
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	var read agent.State
	require.NoError(t, json.Unmarshal(text, &read))

	_, err = d.Next(t.Context(), read).Get()
	require.NoError(t, err)
	golden(t, filepath.Join("testdata", "requests", "signatures_sent_back.json"), e.Requests()[1].Body)
}

// Text that came with a signature is not joined with text that did not: the
// signature is of that part alone.
func TestSignedText(t *testing.T) {
	stream := modeltest.SSE(
		`data: {"candidates":[{"content":{"parts":[{"text":"I "},{"text":"think","thoughtSignature":"AQ==","thought":true}]}}]}`+"\n\n",
		`data: {"candidates":[{"content":{"parts":[{"text":"so "}]}}]}`+"\n\n",
		`data: {"candidates":[{"content":{"parts":[{"text":"it is.","thoughtSignature":"Ag=="}]}}]}`+"\n\n",
		`data: {"candidates":[{"content":{"parts":[{"text":" Is it?"},{"text":" Yes."},{"text":"","thoughtSignature":"Aw=="}]},"finishReason":"STOP"}]}`+"\n\n",
	)
	d, _ := newDriver(t, gemini.Config{}, stream)
	step, err := d.Stream(t.Context(), agent.NewState(agent.UserText("?")), func(agent.Delta) {}).Get()
	require.NoError(t, err)
	assert.True(t, agent.ContentOf(
		agent.Text("I "), agent.Reasoning("think", "gemini:AQ=="), agent.Text("so "),
		agent.Part{Kind: agent.PartText, Text: "it is.", Opaque: "gemini:Ag=="},
		agent.Text(" Is it? Yes."), agent.Part{Kind: agent.PartText, Opaque: "gemini:Aw=="},
	).Equal(step.Message.Content()), "got %v", step.Message.Content())
	assert.Equal(t, "I so it is. Is it? Yes.", step.Message.Text())
}

// The pieces of a stream come as they are: text, thoughts, whole calls.
func TestStreamPieces(t *testing.T) {
	d, _ := newDriver(t, gemini.Config{}, replyFile(t, "parallel.sse.http"))
	var told []agent.Delta
	step, err := d.Stream(t.Context(), agent.NewState(agent.UserText("where?")), func(d agent.Delta) { told = append(told, d) }).Get()
	require.NoError(t, err)
	call := func(i int) agent.Delta { return agent.Delta{Call: step.Message.Call(i), CallIndex: i} }
	assert.Equal(t, []agent.Delta{{Reasoning: "**Planning**\n\nTwo"}, {Reasoning: " places."}, call(0), call(1), call(2)}, told)
}

// Calls without IDs get IDs that no other call in the transcript has, even where the service does not name its replies.
// So do calls with the service's duplicate IDs.
func TestIDsOfCalls(t *testing.T) {
	whole, _ := as(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a"}},{"functionCall":{"name":"b","id":"x"}},` +
		`{"functionCall":{"name":"c","id":"x"}}]},"finishReason":"STOP"}]}`)
	d, _ := newDriver(t, gemini.Config{}, whole)
	s, seen := agent.NewState(agent.UserText("go")), map[string]bool{}
	for range 3 {
		step, err := d.Next(t.Context(), s).Get()
		require.NoError(t, err)
		again, err := d.Next(t.Context(), s).Get()
		require.NoError(t, err)
		assert.True(t, step.Message.Equal(again.Message), "the same reply in the same place has the same ids")
		s = s.With(step.Message)
		for i, c := range step.Message.Calls() {
			if i != 1 {
				assert.True(t, strings.HasPrefix(c.ID, "grapnel-"), c.ID)
			}
			assert.False(t, seen[c.ID] && i != 1, "id %s is there twice", c.ID)
			seen[c.ID] = true
			s = s.With(answered(c, said("1")))
		}
	}
}

// When the service repeats a call with its ID and arguments, it is one call.
func TestACallTwice(t *testing.T) {
	one := `{"functionCall":{"name":"a","id":"x","args":{"n":1}}}`
	whole, _ := as(`{"candidates":[{"content":{"parts":[` + one + `,` + one + `,{"functionCall":{"name":"a","id":"x","args":{"n":2}}},{"functionCall":{"name":"b"}},` +
		`{"functionCall":{"name":"b"}}]},"finishReason":"STOP"}]}`)
	d, _ := newDriver(t, gemini.Config{}, whole)
	step, err := d.Next(t.Context(), agent.NewState(agent.UserText("go"))).Get()
	require.NoError(t, err)
	assert.Equal(t, 4, step.Message.CallCount())
}

func TestFinishReasons(t *testing.T) {
	const text = `{"text": "so far"}`
	const call = `{"functionCall": {"name": "a", "args": {}}}`
	for _, tc := range []struct {
		reason, part string
		want         agent.FinishReason
	}{
		{"STOP", text, agent.FinishStop},
		{"STOP", "", agent.FinishStop},
		{"STOP", call, agent.FinishToolCalls},
		{"FUNCTION_CALL", call, agent.FinishToolCalls},
		{"MAX_TOKENS", text, agent.FinishLength},
		{"MAX_TOKENS", "", agent.FinishLength},
		{"CONTINUATION", text, agent.FinishLength},
		{"SAFETY", "", agent.FinishFilter},
		{"RECITATION", text, agent.FinishFilter},
		{"LANGUAGE", text, agent.FinishFilter},
		{"BLOCKLIST", "", agent.FinishFilter},
		{"PROHIBITED_CONTENT", "", agent.FinishFilter},
		{"SPII", text, agent.FinishFilter},
		{"IMAGE_SAFETY", "", agent.FinishFilter},
		{"OTHER", text, agent.FinishError},
		{"NEW_AND_STRANGE", text, agent.FinishError},
	} {
		t.Run(tc.reason+" "+tc.part, func(t *testing.T) {
			whole, stream := as(fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"},"finishReason":%q}],"usageMetadata":{}}`, tc.part, tc.reason))
			bothWays(t, gemini.Config{}, agent.NewState(agent.UserText("?")), whole, stream, func(t *testing.T, step agent.Step, err error) {
				t.Helper()
				require.NoError(t, err)
				assert.Equal(t, tc.want, step.FinishReason)
				assert.Equal(t, tc.part == text, step.Message.Text() == "so far")
			})
		})
	}
}

// A reply that is of no use is an error, and mostly worth another attempt.
func TestRepliesOfNoUse(t *testing.T) {
	for body, want := range map[string]string{
		`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(x"}]}`: "broken_stream MALFORMED_FUNCTION_CALL Malformed function call: print(x",
		`{"candidates":[{"content":{"parts":[{"text":"Let me"}]},"finishReason":"MALFORMED_FUNCTION_CALL"}]}`:            "broken_stream MALFORMED_FUNCTION_CALL the reply ended with the reason MALFORMED_FUNCTION_CALL",
		`{"candidates":[{"content":{"parts":[]},"finishReason":"UNEXPECTED_TOOL_CALL"}]}`:                                "broken_stream UNEXPECTED_TOOL_CALL the reply ended with the reason UNEXPECTED_TOOL_CALL",
		`{"candidates":[{"finishReason":"OTHER"}]}`:                                                                      "model OTHER the reply ended with the reason OTHER",
		`{"usageMetadata":{"promptTokenCount":5}}`:                                                                       "broken_stream  the answer holds no reply",
		`{"candidates":[{"finishReason":"MISSING_THOUGHT_SIGNATURE"}]}`:                                                  "bad_request MISSING_THOUGHT_SIGNATURE the reply ended with the reason MISSING_THOUGHT_SIGNATURE",
		`{"candidates":[]}`:     "broken_stream  the answer holds no reply",
		`{"candidates":[null]}`: "broken_stream  the answer does not have the form of the Gemini API: {\"candidates\":[null]}",
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":[1]}}]},"finishReason":"STOP"}]}`: `broken_stream  the answer does not have the form of the Gemini API: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":[1]}}]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"args":{}}}]},"finishReason":"STOP"}]}`:             "broken_stream  a tool call of the reply has no name",
		`{"candidates":"none"}`: `broken_stream  the answer does not have the form of the Gemini API: {"candidates":"none"}`,
	} {
		t.Run(body, func(t *testing.T) {
			whole, stream := as(body)
			bothWays(t, gemini.Config{}, agent.NewState(agent.UserText("?")), whole, stream, func(t *testing.T, _ agent.Step, err error) {
				t.Helper()
				failure := new(drivers.Error)
				require.ErrorAs(t, err, &failure)
				assert.Equal(t, want, fmt.Sprintf("%s %s %s", failure.Kind, failure.Code, failure.Message))
				assert.Equal(t, !strings.HasPrefix(want, "bad_request"), failure.Retryable())
			})
		})
	}
}

// A model that meant to call a tool and could not is asked again by the policy that
// all drivers share.
func TestMalformedCallIsTriedAgain(t *testing.T) {
	spoiled, _ := as(`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`)
	d, e := newDriver(t, gemini.Config{}, spoiled, modeltest.Body(http.StatusOK, "application/json", service.Whole.Body))
	a := agent.New(agent.Config{Driver: d, AroundStep: []agent.Processor{processor.Retry{Delay: -1}}}).MustGet()
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	assert.Equal(t, service.Text, final.Answer())
	assert.Len(t, e.Requests(), 2)
}

func TestBlockedPrompt(t *testing.T) {
	whole, stream := as(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":7,"totalTokenCount":7},"modelVersion":"gemini-3.8-flash"}`)
	bothWays(t, gemini.Config{}, agent.NewState(agent.UserText("?")), whole, stream, func(t *testing.T, step agent.Step, err error) {
		t.Helper()
		require.NoError(t, err)
		assert.Equal(t, agent.FinishFilter, step.FinishReason)
		assert.Equal(t, agent.RoleAssistant, step.Message.Role())
		assert.Zero(t, step.Message.Content().Len()+step.Message.CallCount())
		assert.Equal(t, int64(7), step.Usage.InputTokens)
	})
}

func TestImagesAndFilesOfAReply(t *testing.T) {
	whole, stream := as(`{"candidates":[{"content":{"parts":[{"thought":true,"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"text":"Here: "},{"inlineData":{"mimeType":"image/png","data":"iVBORw=="},"thoughtSignature":"AQ=="},` +
		`{"inlineData":{"mimeType":"audio/wav","data":"UklGRg=="}},{"fileData":{"mimeType":"image/jpeg","fileUri":"https://example.com/x"}}]},"finishReason":"STOP"}]}`)
	bothWays(t, gemini.Config{}, agent.NewState(agent.UserText("?")), whole, stream, func(t *testing.T, step agent.Step, err error) {
		t.Helper()
		require.NoError(t, err)
		want := agent.ContentOf(agent.Text("Here: "),
			agent.Part{Kind: agent.PartImage, MediaType: "image/png", Data: "\x89PNG", Opaque: "gemini:AQ=="},
			agent.Part{Kind: agent.PartFile, MediaType: "audio/wav", Data: "RIFF"},
			agent.Part{Kind: agent.PartImage, MediaType: "image/jpeg", URL: "https://example.com/x"})
		assert.True(t, want.Equal(step.Message.Content()), "got %v", step.Message.Content())
	})
}

func TestCost(t *testing.T) {
	reply := func(version, details string) string {
		return fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"modelVersion":%q,`+
			`"usageMetadata":{"promptTokenCount":1000000,"promptTokensDetails":[%s]}}`, version, details)
	}
	for name, tc := range map[string]struct {
		asked, body string
		prices      *drivers.Prices
		want        mo.Option[float64]
	}{
		"the model that answered":              {"gemini-flash-latest", reply("gemini-2.5-flash", ""), new(gemini.ListPrices()), mo.Some(0.30)},
		"the model that was asked":             {"models/gemini-2.5-flash", reply("gemini-2.5-flash-exp", ""), new(gemini.ListPrices()), mo.Some(0.30)},
		"a model that is not in the table":     {"gemini-9", reply("gemini-9", ""), new(gemini.ListPrices()), mo.None[float64]()},
		"an endpoint that is not the vendor's": {"gemini-2.5-flash", reply("gemini-2.5-flash", ""), nil, mo.None[float64]()},
		"sound in the request":                 {"gemini-2.5-flash", reply("gemini-2.5-flash", `{"modality":"AUDIO","tokenCount":5}`), new(gemini.ListPrices()), mo.None[float64]()},
		"no usage":                             {"gemini-2.5-flash", `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`, new(gemini.ListPrices()), mo.None[float64]()},
	} {
		t.Run(name, func(t *testing.T) {
			whole, stream := as(tc.body)
			bothWays(t, gemini.Config{Model: tc.asked, Prices: tc.prices}, agent.NewState(agent.UserText("?")), whole, stream, func(t *testing.T, step agent.Step, err error) {
				t.Helper()
				require.NoError(t, err)
				assert.Equal(t, tc.want, step.Usage.Cost)
			})
		})
	}
}
