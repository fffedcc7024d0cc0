package anthropic_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
)

// answering is a service without a network, which tells of each request.
type answering struct {
	answer string
	asked  io.Writer
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(a.asked, r.Body); err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	contentType := "application/json"
	if strings.HasPrefix(a.answer, "event:") {
		contentType = "text/event-stream"
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {contentType}}, Request: r,
		Body: io.NopCloser(strings.NewReader(a.answer)),
	}, nil
}

func offline(tb testing.TB, answer string) *anthropic.Driver {
	tb.Helper()
	return recorded(tb, answer, io.Discard)
}

func recorded(tb testing.TB, answer string, asked io.Writer) *anthropic.Driver {
	tb.Helper()
	d, err := anthropic.New(anthropic.Config{
		Model: "claude-test", BaseURL: "http://127.0.0.1:1", HTTPClient: &http.Client{Transport: answering{answer, asked}},
	})
	require.NoError(tb, err)
	return d
}

// long returns a state of n messages: questions, calls and their answers.
func long(n int) agent.State {
	var messages []agent.Message
	text := strings.Repeat("All work and no play. ", 10)
	for i := 0; len(messages) < n; i++ {
		c := agent.ToolCall{ID: fmt.Sprintf("toolu_%d", i), Name: "weather", Arguments: `{"city":"Bern"}`}
		messages = append(messages, agent.UserText(text), agent.Assistant(text, c), answer(c, "", agent.Text(text)), agent.Assistant(text))
	}
	return agent.NewState(messages[:n]...)
}

// BenchmarkStep measures a step at the end of a transcript that was sent before, but for the
// last message. What grows with the transcript is that its bytes are copied and sent.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			d, s := offline(b, good), long(n)
			require.NoError(b, d.Next(b.Context(), s).Error())
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Next(b.Context(), s.With(agent.UserText("hello"))).Error(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStream measures a reply of a thousand pieces.
func BenchmarkStream(b *testing.B) {
	frames := events(start, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	for range 1000 {
		frames = append(frames, event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Good day! "}}`))
	}
	frames = append(frames, events(ends("end_turn"), stop)...)
	d := offline(b, strings.Join(frames, ""))
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Stream(b.Context(), hello, func(agent.Delta) {}).Error(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestStepDoesNotEncodeAnew: how much is allocated for a step at ten thousand messages
// does not depend on their number.
func TestStepDoesNotEncodeAnew(t *testing.T) {
	allocations := func(n int) float64 {
		d, s := offline(t, good), long(n)
		require.NoError(t, d.Next(t.Context(), s).Error())
		return testing.AllocsPerRun(20, func() { _ = d.Next(t.Context(), s) })
	}
	few, many := allocations(10), allocations(10_000)
	require.Less(t, many, few+60, "allocations at 10 messages %v, at 10,000 %v: only growing the request may cost more", few, many)
}
