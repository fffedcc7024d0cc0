package gemini_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/gemini"
)

// answering is a client that answers with the bytes in it, whatever is asked.
type answering struct {
	contentType string
	body        []byte
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {a.contentType}},
		Body: io.NopCloser(bytes.NewReader(a.body)), Request: r,
	}, nil
}

func (a *answering) driver(t testing.TB) *gemini.Driver {
	t.Helper()
	d, err := gemini.New(gemini.Config{Model: "gemini-3.8-flash", BaseURL: "http://test", HTTPClient: &http.Client{Transport: a}})
	require.NoError(t, err)
	return d
}

// Whatever a service answers, the driver answers with a step that can be sent back,
// or with an error that says its kind; the stream tells what the whole says.
func FuzzReply(f *testing.F) {
	f.Add([]byte(service.Whole.Body))
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{"a":1}},"thoughtSignature":"AQ=="}]},"finishReason":"STOP"}]}`))
	f.Add([]byte(`{"candidates":[{"content":{"parts":[null,{"inlineData":{"mimeType":"","data":""}}]},"finishReason":"STOP"}]}`))
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"thought":true,"text":"a"},{"text":"b"}]},"finishReason":"STOP"}],"usageMetadata":null}`))
	f.Add([]byte(`{"promptFeedback":{"blockReason":"OTHER"}}`))
	f.Add([]byte(`{"candidates":[{"content":7}],"error":{"code":500,"message":"x","status":"INTERNAL"}}`))
	f.Add([]byte(`{"usageMetadata":{"promptTokenCount":-5},"candidates":[{"finishReason":"\u0000"}]}`))
	hello := agent.NewState(agent.UserText("hello"))
	// Making a driver takes longer than all that is tested here.
	whole, stream, back := &answering{"application/json", nil}, &answering{"text/event-stream", nil}, &answering{"application/json", []byte(service.Whole.Body)}
	asWhole, asStream, again := whole.driver(f), stream.driver(f), back.driver(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		check := func(step agent.Step, err error) {
			if err != nil {
				failure := new(drivers.Error)
				require.ErrorAs(t, err, &failure)
				require.NotEmpty(t, failure.Kind)
				return
			}
			require.Equal(t, agent.RoleAssistant, step.Message.Role())
			require.GreaterOrEqual(t, step.Usage.InputTokens, int64(0))
			ids := map[string]bool{}
			for _, c := range step.Message.Calls() {
				require.False(t, c.ID == "" || ids[c.ID], "the id %q", c.ID)
				ids[c.ID] = true
			}
			s := hello.With(step.Message)
			for _, c := range step.Message.Calls() {
				s = s.With(answered(c, said("")))
			}
			if _, err := again.Next(context.Background(), s).Get(); err != nil {
				require.Equal(t, agent.KindBadRequest, agent.KindOf(err)) // an image without bytes, say
			}
		}
		whole.body = body
		stream.body = append([]byte("data: "), body...)
		check(asWhole.Next(context.Background(), hello).Get())
		told := ""
		step, err := asStream.Stream(context.Background(), hello, func(d agent.Delta) { told += d.Text }).Get()
		check(step, err)
		if err == nil {
			require.Equal(t, step.Message.Text(), told)
		}
	})
}
