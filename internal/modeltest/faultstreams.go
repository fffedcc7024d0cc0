package modeltest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
)

// testBrokenStream checks streams that end early in any way.
func (s Service) testBrokenStream(t *testing.T) {
	t.Helper()
	for n := range s.Whole.Frames {
		for name, then := range map[string]End{"cut": Cut, "ended": Ends} {
			t.Run(fmt.Sprintf("%s after %d of %d frames", name, n, len(s.Whole.Frames)), func(t *testing.T) {
				reply := SSE(s.Whole.Frames[:n]...)
				reply.Then = then
				s.ask(t, true, reply).fails(t, agent.KindBrokenStream)
			})
		}
		t.Run(fmt.Sprintf("garbage in frame %d", n), func(t *testing.T) {
			frame := s.Whole.Frames[n]
			end := strings.LastIndexByte(frame, '}')
			if end < 0 {
				t.Skip("the frame has no JSON")
			}
			frames := slices.Clone(s.Whole.Frames)
			frames[n] = frame[:end] + frame[end+1:]
			s.ask(t, true, SSE(frames...)).fails(t, agent.KindBrokenStream)
		})
	}
}

func (s Service) testStreamErrors(t *testing.T) {
	t.Helper()
	for kind, frames := range s.StreamErrors {
		for i, frame := range frames {
			t.Run(fmt.Sprintf("%s %d", kind, i), func(t *testing.T) {
				frame := strings.ReplaceAll(frame, Sentence, Sentence+" ("+Key+")")
				failure := s.ask(t, true, SSE(append(slices.Clone(s.Whole.Frames[:1]), frame)...)).fails(t, kind)
				assert.Contains(t, failure.Error(), Sentence, "what the service said")
			})
		}
	}
}

// insideErrors lists error bodies that gateways send with status 200, by kind.
var insideErrors = map[agent.ErrorKind][]string{
	agent.KindRateLimit:  {`{"error":{"code":429,"message":"` + Sentence + `"}}`, `{"error":{"code":"429","message":"` + Sentence + `","type":null}}`},
	agent.KindOverloaded: {`{"error":{"code":503,"message":"` + Sentence + `"}}`, `{"error":{"code":529,"message":"` + Sentence + `"}}`},
	agent.KindAuth:       {`{"error":{"message":"` + Sentence + `","code":401},"user_id":"x"}`},
	agent.KindBadRequest: {`{"error":{"code":400,"message":"` + Sentence + `"}}`},
	agent.KindTimeout:    {`{"error":{"code":504,"message":"` + Sentence + `"}}`},
	agent.KindModel: {
		`{"error":{"code":502,"message":"` + Sentence + `"}}`, `{"error":{"message":"` + Sentence + `"}}`, `{"error":"` + Sentence + `"}`,
	},
}

// testErrorsInside checks answers with status 200 that contain an error instead of the reply, a whole stream, or part
// of a stream.
func (s Service) testErrorsInside(t *testing.T, streaming bool) {
	t.Helper()
	for kind, bodies := range insideErrors {
		for i, body := range bodies {
			body = strings.ReplaceAll(body, Sentence, Sentence+" ("+Key+")")
			replies := map[string]Reply{"whole": Body(http.StatusOK, "application/json", body)}
			if streaming {
				event := "data: " + body + "\n\n"
				replies["as a stream"] = Body(http.StatusOK, "text/event-stream", body)
				replies["after white space"] = Body(http.StatusOK, "text/event-stream", "\n  \n"+body+"\n")
				replies["without a type"] = Body(http.StatusOK, "text/plain", body)
				replies["in an event"] = SSE(event)
				replies["in a later event"] = SSE(s.Whole.Frames[0], event)
			}
			for name, reply := range replies {
				t.Run(fmt.Sprintf("%s %d %s", kind, i, name), func(t *testing.T) {
					failure := s.ask(t, streaming, reply).fails(t, kind)
					assert.Contains(t, failure.Error(), Sentence, "what the service said")
					want := kind != agent.KindAuth && kind != agent.KindBadRequest
					assert.Equal(t, want, failure.Retryable(), "whether it is retryable")
				})
			}
		}
	}
}

// testOddPieces checks that the driver accepts a stream however the network splits it, and with any line ends.
func (s Service) testOddPieces(t *testing.T) {
	t.Helper()
	text := "Grüße 東京 🌍" //nolint:gosmopolitan // characters of all lengths
	whole := strings.Join(s.saying(text).Frames, "")
	for name, stream := range map[string]string{
		"LF": whole, "CRLF": strings.ReplaceAll(whole, "\n", "\r\n"), "byte order mark": "\uFEFF" + whole,
		"comments": ": hello\n\n" + strings.ReplaceAll(whole, "\n\n", "\n\n: keep-alive\n\n"), "no space": strings.ReplaceAll(whole, "data: ", "data:"),
		"other fields":   strings.ReplaceAll(whole, "data: ", "id: 7\nretry: 10\ndata: "),
		"lines too many": "\n\n" + strings.ReplaceAll(whole, "\n\n", "\n\n\n\n"),
	} {
		for _, size := range []int{1, 7, len(stream)} {
			t.Run(fmt.Sprintf("%s in pieces of %d", name, size), func(t *testing.T) {
				pieces := lo.Map(lo.Chunk([]byte(stream), size), func(b []byte, _ int) string { return string(b) })
				var told strings.Builder
				step, err := s.ask(t, true, SSE(pieces...)).soon(t.Context(), t, func(d agent.Delta) { told.WriteString(d.Text) })
				require.NoError(t, err)
				assert.Equal(t, text, step.Message.Text(), "the text")
				assert.Equal(t, text, told.String(), "the pieces of text")
			})
		}
	}
	t.Run("no UTF-8", func(t *testing.T) {
		var told strings.Builder
		step, err := s.ask(t, true, SSE(s.saying("a\xffb").Frames...)).soon(t.Context(), t, func(d agent.Delta) { told.WriteString(d.Text) })
		require.NoError(t, err)
		assert.True(t, utf8.ValidString(step.Message.Text()), "the text %q", step.Message.Text())
		assert.Equal(t, step.Message.Text(), told.String(), "the pieces of text")
	})
}

func (s Service) testArguments(t *testing.T, streaming bool) {
	t.Helper()
	if s.Call.Body == "" && len(s.Call.Frames) == 0 {
		t.Skip("the protocol cannot carry malformed arguments")
	}
	if !streaming && s.Call.Body == "" {
		t.Skip("the protocol carries malformed arguments only in a stream")
	}
	var told strings.Builder
	step, err := s.ask(t, streaming, s.Call.reply(streaming)).soon(t.Context(), t, func(d agent.Delta) { told.WriteString(d.Call.Arguments) })
	require.NoError(t, err)
	require.Equal(t, 1, step.Message.CallCount(), "calls")
	assert.Equal(t, s.Arguments, step.Message.Call(0).Arguments, "the arguments as the model wrote them")
	assert.Equal(t, agent.FinishToolCalls, step.FinishReason, "the finish reason")
	if streaming {
		assert.Equal(t, s.Arguments, told.String(), "the pieces of arguments")
	}
}

// testHuge checks a delta that is longer than usual buffers.
func (s Service) testHuge(t *testing.T, streaming bool) {
	t.Helper()
	text := strings.Repeat("All work and no play. ", 4<<20/22)
	step, err := s.ask(t, streaming, s.saying(text).reply(streaming)).soon(t.Context(), t, nil)
	require.NoError(t, err)
	checkText(t, text, step.Message.Text())
}

// testEmpty checks a valid reply without content.
func (s Service) testEmpty(t *testing.T, streaming bool) {
	t.Helper()
	step, err := s.ask(t, streaming, s.saying("").reply(streaming)).soon(t.Context(), t, nil)
	require.NoError(t, err)
	assert.Equal(t, agent.RoleAssistant, step.Message.Role(), "the role")
	assert.Empty(t, step.Message.Text(), "the text")
	assert.Zero(t, step.Message.CallCount(), "calls")
	assert.Equal(t, agent.FinishStop, step.FinishReason, "the finish reason")
}

// testSlow checks that a slow answer arrives in time, or that the driver fails with a timeout.
func (s Service) testSlow(t *testing.T, streaming bool) {
	t.Helper()
	t.Run("too slow", func(t *testing.T) {
		a := s.ask(t, streaming, Reply{Wait: make(chan struct{})})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := a.soon(ctx, t, nil)
		require.Error(t, err, "nothing was answered")
		assert.Equal(t, agent.KindTimeout, agent.KindOf(err), "the kind of: %v", err)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		a.checkSecret(t, err)
	})
	t.Run("in time", func(t *testing.T) {
		begin := make(chan struct{})
		reply := s.Whole.reply(streaming)
		reply.Wait = begin
		a := s.ask(t, streaming, reply)
		go func() {
			<-a.Arrivals()
			close(begin)
		}()
		step, err := a.soon(t.Context(), t, nil)
		require.NoError(t, err)
		assert.Equal(t, s.Text, step.Message.Text(), "the text")
	})
}

func (s Service) testCancelledEarly(t *testing.T, streaming bool) {
	t.Helper()
	reply := Reply{Wait: make(chan struct{})}
	s.testCancellation(t, streaming, reply, func(a exchange, cancel func()) func(agent.Delta) {
		go func() {
			<-a.Arrivals()
			cancel()
		}()
		return nil
	})
}

func (s Service) testCancelledWithin(t *testing.T, streaming bool) {
	t.Helper()
	reply := s.Whole.reply(streaming)
	reply.Then = Hangs
	if !streaming {
		reply.Frames[0] = reply.Frames[0][:len(reply.Frames[0])/2]
	} else {
		last := lo.IndexOf(lo.Map(reply.Frames, func(f string, _ int) bool { return strings.Contains(f, s.Text) }), true)
		reply.Frames = reply.Frames[:last+1]
	}
	s.testCancellation(t, streaming, reply, func(a exchange, cancel func()) func(agent.Delta) {
		if streaming {
			return func(agent.Delta) { cancel() }
		}
		go func() {
			<-a.Arrivals()
			time.AfterFunc(5*time.Millisecond, cancel) // no event reports that the first half was read
		}()
		return nil
	})
}

// testCancellation checks that the driver returns soon after its context ends, closes the connection, and leaves no
// goroutines running.
func (s Service) testCancellation(t *testing.T, streaming bool, reply Reply, when func(a exchange, cancel func()) func(agent.Delta)) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	a := s.ask(t, streaming, reply)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := a.soon(ctx, t, when(a, cancel))
	require.ErrorIs(t, err, context.Canceled, "the error")
	a.checkSecret(t, err)
	require.Len(t, a.Requests(), 1, "requests")
	wait(t, a.Requests()[0].ClientGone(), "the connection is still open")
	a.client.CloseIdleConnections()
	a.Close()
	assert.NoError(t, goleak.Find(before), "goroutines left running")
}
