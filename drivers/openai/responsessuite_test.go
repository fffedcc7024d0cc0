package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// newResponses makes a driver of the Responses API for an endpoint, with a client of its own that is closed at the end of
// the test.
func newResponses(t testing.TB, url string, change ...func(*openai.Config)) *openai.Driver {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	c := openai.Config{Model: "gpt-5.1", APIKey: modeltest.Key, BaseURL: url + "/v1", HTTPClient: client}
	for _, f := range change {
		f(&c)
	}
	d, err := openai.NewResponses(c)
	require.NoError(t, err)
	return d
}

func responsesOnClient(t *testing.T, baseURL string, client *http.Client) agent.Driver {
	t.Helper()
	return newResponses(t, baseURL, func(c *openai.Config) { c.HTTPClient = client })
}

func TestResponsesMock(t *testing.T) {
	modeltest.TestMock(t, modeltest.Service{New: responsesOnClient, Items: true})
}

func TestResponsesModel(t *testing.T) {
	mock := modeltest.StartMock(t)
	agenttest.TestModel(t, agenttest.Model{
		New: func(t *testing.T, turns ...agent.Step) agent.Driver {
			t.Helper()
			return newResponses(t, mock.PlayItems(t, turns...).URL)
		},
	})
}

// frame returns an event of a stream, whose data begins with its type as the service writes it.
func frame(data string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
	return "event: " + kind + "\ndata: " + data + "\n\n"
}

// head is what stands beside the output of a response.
const head = `"id":"resp_1","object":"response","created_at":1754925861,"background":false,"incomplete_details":null,"instructions":null,` +
	`"max_output_tokens":null,"model":"gpt-5.1-2025-11-13","parallel_tool_calls":true,"previous_response_id":null,` +
	`"reasoning":{"effort":"none","summary":null},"service_tier":"default","store":false,"temperature":1.0,"text":{"format":{"type":"text"},` +
	`"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","user":null,"metadata":{}`

// responseOf returns a response with a status, an error and an output.
func responseOf(status, problem, output string) string {
	return `{` + head + `,"status":"` + status + `","error":` + problem + `,"output":[` + output + `],` +
		`"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":0},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":12}}`
}

func TestResponsesFaults(t *testing.T) {
	failing := func(status int, kind, code string) modeltest.Reply {
		return modeltest.Body(status, "application/json",
			`{"error":{"message":"`+modeltest.Sentence+`","type":"`+kind+`","param":null,"code":`+code+`}}`)
	}
	problem := func(code string) string { return `{"code":"` + code + `","message":"` + modeltest.Sentence + `"}` }
	// The service tells of an error with an event of its own, and older versions with its members at the top.
	failed := func(code string) string {
		return frame(`{"type":"response.failed","sequence_number":2,"response":` + responseOf("failed", problem(code), "") + `}`)
	}
	nested := func(kind, code string) string {
		return frame(`{"type":"error","sequence_number":2,"error":{"type":"` + kind + `","code":` + code + `,"message":"` + modeltest.Sentence + `","param":null}}`)
	}
	flat := func(code string) string {
		return frame(`{"type":"error","sequence_number":2,"code":` + code + `,"message":"` + modeltest.Sentence + `","param":null}`)
	}
	message := func(status, content string) string {
		return `{"id":"msg_1","type":"message","status":"` + status + `","content":[` + content + `],"role":"assistant"}`
	}
	created := `{"type":"response.created","sequence_number":0,"response":` + responseOf("in_progress", "null", "") + `}`
	frames := func(data ...string) []string { return lo.Map(data, func(d string, _ int) string { return frame(d) }) }
	call := func(status, arguments string) string {
		return `{"id":"fc_1","type":"function_call","status":"` + status + `","arguments":"` + arguments + `","call_id":"call_1","name":"echo"}`
	}
	const broken = `{\"text\": \"it br`
	s := modeltest.Service{
		New: responsesOnClient,
		Whole: modeltest.Exchange{
			Body: responseOf("completed", "null", message("completed", `{"type":"output_text","annotations":[],"logprobs":[],"text":"Good day!"}`)),
			Frames: frames(created,
				`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":`+message("in_progress", "")+`}`,
				`{"type":"response.content_part.added","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,`+
					`"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}}`,
				`{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Good day!","logprobs":[],"obfuscation":"x"}`,
				`{"type":"response.completed","sequence_number":8,"response":`+responseOf("completed", "null", "")+`}`),
		},
		Text: "Good day!",
		Call: modeltest.Exchange{
			Body: responseOf("completed", "null", call("completed", broken)),
			Frames: frames(created,
				`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":`+call("in_progress", "")+`}`,
				`{"type":"response.function_call_arguments.delta","sequence_number":3,"item_id":"fc_1","output_index":0,"delta":"{\"text\": \"it","obfuscation":"x"}`,
				`{"type":"response.function_call_arguments.delta","sequence_number":4,"item_id":"fc_1","output_index":0,"delta":" br","obfuscation":"x"}`,
				`{"type":"response.function_call_arguments.done","sequence_number":5,"item_id":"fc_1","output_index":0,"arguments":"`+broken+`"}`,
				`{"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":`+call("completed", broken)+`}`,
				`{"type":"response.completed","sequence_number":7,"response":`+responseOf("completed", "null", call("completed", broken))+`}`),
		},
		Arguments: `{"text": "it br`,
		Errors: map[agent.ErrorKind][]modeltest.Reply{
			agent.KindRateLimit:  {failing(429, "requests", `"rate_limit_exceeded"`), failing(429, "", "null")},
			agent.KindOverloaded: {failing(503, "server_error", `"slow_down"`), failing(529, "overloaded_error", "null")},
			agent.KindAuth: {
				failing(401, "invalid_request_error", `"invalid_api_key"`), failing(403, "", `"unsupported_country_region_territory"`),
				failing(429, "insufficient_quota", `"insufficient_quota"`),
			},
			agent.KindContextLength: {failing(400, "invalid_request_error", `"context_length_exceeded"`)},
			agent.KindBadRequest: {
				failing(400, "invalid_request_error", "null"), failing(404, "invalid_request_error", `"model_not_found"`),
			},
			agent.KindModel: {failing(500, "server_error", "null"), failing(502, "", "null")},
		},
		StreamErrors: map[agent.ErrorKind][]string{
			agent.KindModel:         {failed("server_error"), nested("server_error", "null"), flat("null"), `data: {"error":"` + modeltest.Sentence + "\"}\n\n"},
			agent.KindOverloaded:    {nested("overloaded_error", "null")},
			agent.KindRateLimit:     {failed("rate_limit_exceeded"), flat(`"rate_limit_exceeded"`)},
			agent.KindAuth:          {nested("insufficient_quota", `"insufficient_quota"`), failed("insufficient_quota")},
			agent.KindContextLength: {nested("invalid_request_error", `"context_length_exceeded"`)},
			agent.KindBadRequest:    {failed("invalid_prompt"), failed("image_parse_error"), nested("invalid_request_error", "null")},
			agent.KindTimeout:       {failed("vector_store_timeout")},
		},
	}
	s.Shapes, s.Unfinished = responsesShapes()
	modeltest.TestFaults(t, s)
	modeltest.TestShapes(t, s)
}
