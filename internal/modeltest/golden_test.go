package modeltest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

func TestGoldenAnswersInOrderWithWhatWasRecorded(t *testing.T) {
	limit := modeltest.ReadReply(t, "testdata/rate_limit.http")
	stream := modeltest.ReadReply(t, "testdata/stream.http")
	assert.Equal(t, 429, limit.Status)
	assert.Len(t, stream.Frames, 3)
	assert.Equal(t, "data: [DONE]\n\n", stream.Frames[2])

	golden := modeltest.Golden(t, limit, stream)
	d := chat{url: golden.URL + "/v1", key: key, client: http.DefaultClient}
	s := agent.NewState(agent.UserText("hello"))
	_, err := d.Next(t.Context(), s).Get()
	assert.EqualError(t, err, `asking openai model "small": too many requests (429 rate_limit_exceeded): Slow down.; retry after 20s`)
	for range 2 { // the last reply answers all later requests
		var told []string
		step, err := d.Stream(t.Context(), s, func(d agent.Delta) { told = append(told, d.Text) }).Get()
		require.NoError(t, err)
		assert.Equal(t, "Hello there.", step.Message.Text())
		assert.Equal(t, []string{"Hello ", "there."}, told)
	}
	require.Len(t, golden.Requests(), 3)
	assert.Equal(t, false, golden.Requests()[0].JSON(t)["stream"])
	assert.Equal(t, true, golden.Requests()[1].JSON(t)["stream"])
}

func TestFramesAreSentOneByOne(t *testing.T) {
	begin := make(chan struct{})
	reply := modeltest.SSE("one ", "two ")
	reply.Wait, reply.Then = begin, modeltest.Hangs
	golden := modeltest.Golden(t, reply)
	close(begin)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, golden.URL, strings.NewReader("{}"))
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	text := make([]byte, len("one two "))
	n, err := answer.Body.Read(text)
	require.NoError(t, err)
	assert.Equal(t, "one two "[:n], string(text[:n]), "it arrives although the reply goes on")
	select {
	case <-golden.Requests()[0].ClientGone():
		assert.Fail(t, "the connection is closed")
	default:
	}
	require.NoError(t, answer.Body.Close())
	select {
	case <-golden.Requests()[0].ClientGone():
	case <-time.After(10 * time.Second):
		assert.Fail(t, "the connection is not closed")
	}
}
