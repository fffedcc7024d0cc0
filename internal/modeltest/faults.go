package modeltest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/processor"
)

// TestFaults tests requirements for every driver over real HTTP: a driver fails with the right *drivers.Error, sends
// one request, does not reveal the key, returns soon when its context ends, and leaves no goroutines running.
func TestFaults(t *testing.T, s Service) {
	t.Helper()
	s.check(t)
	for _, part := range []struct {
		name string
		test func(t *testing.T, streaming bool)
	}{
		{"good answer", s.testWhole},
		{"error", s.testErrors},
		{"error without words", s.testBareErrors},
		{"secrets in errors", s.testSecretsInErrors},
		{"redirect", s.testRedirect},
		{"request that cannot be sent", s.testUnfit},
		{"odd transcript", s.testOddTranscripts},
		{"service that is down", s.testDown},
		{"unreadable answer", s.testNoAnswer},
		{"error inside of an answer", s.testErrorsInside},
		{"answer cut off", s.testCutAnswer},
		{"malformed arguments", s.testArguments},
		{"huge answer", s.testHuge},
		{"empty answer", s.testEmpty},
		{"rate limit and retry", s.testRetry},
		{"slow first byte", s.testSlow},
		{"cancelled before the first byte", s.testCancelledEarly},
		{"cancelled within the answer", s.testCancelledWithin},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Run("blocking", func(t *testing.T) { part.test(t, false) })
			t.Run("streaming", func(t *testing.T) { part.test(t, true) })
		})
	}
	t.Run("broken stream", s.testBrokenStream)
	t.Run("error in a stream", s.testStreamErrors)
	t.Run("stream in odd pieces", s.testOddPieces)
}

// testWhole checks that the driver sends one request, with the key only in the headers.
func (s Service) testWhole(t *testing.T, streaming bool) {
	t.Helper()
	a := s.ask(t, streaming, s.Whole.reply(streaming))
	step, err := a.soon(t.Context(), t, nil)
	require.NoError(t, err)
	assert.Equal(t, s.Text, step.Message.Text(), "the text")
	assert.Equal(t, agent.FinishStop, step.FinishReason, "the finish reason")
	require.Len(t, a.Requests(), 1, "requests")
	r := a.Requests()[0]
	assert.NotContains(t, r.Path+"?"+r.Query, Key, "the address")
	assert.NotContains(t, string(r.Body), Key, "the body")
	assert.Contains(t, fmt.Sprint(r.Header), Key, "the headers")
	assert.Contains(t, string(r.Body), "hello", "what the user said")
}

func (s Service) testErrors(t *testing.T, streaming bool) {
	t.Helper()
	for kind, replies := range s.Errors {
		for i, reply := range replies {
			t.Run(fmt.Sprintf("%s %d", kind, i), func(t *testing.T) {
				if kind == agent.KindRateLimit || kind == agent.KindOverloaded {
					reply = reply.With("Retry-After", "3600")
				}
				reply.Frames = lo.Map(reply.Frames, func(frame string, _ int) string {
					return strings.ReplaceAll(frame, Sentence, Sentence+" ("+Key+")")
				})
				failure := s.ask(t, streaming, reply).fails(t, kind)
				assert.Equal(t, reply.Status, failure.Status, "the status")
				assert.Contains(t, failure.Error(), Sentence, "what the service said")
				want := lo.Ternary(reply.Header.Get("Retry-After") != "", time.Hour, 0)
				assert.Equal(t, want, failure.RetryAfter(), "the time before a retry")
				for _, told := range []struct {
					header string
					want   bool
				}{{"true", true}, {" False", false}, {"", failure.Retryable()}, {"maybe", failure.Retryable()}} {
					failure := s.ask(t, streaming, reply.With("X-Should-Retry", told.header)).fails(t, kind)
					assert.Equal(t, told.want, failure.Retryable(), "x-should-retry: %s", told.header)
				}
			})
		}
	}
}

// testBareErrors checks error pages of proxies, which do not use the service's protocol.
func (s Service) testBareErrors(t *testing.T, streaming bool) {
	t.Helper()
	page := "<html><head><title>%[1]d</title></head><body>" + strings.Repeat("<p>Something is wrong.</p>", 1000) + "</body></html>"
	for status, kind := range map[int]agent.ErrorKind{
		401: agent.KindAuth, 403: agent.KindAuth, 404: agent.KindBadRequest, 429: agent.KindRateLimit, 500: agent.KindModel,
		502: agent.KindModel, 503: agent.KindOverloaded, 504: agent.KindTimeout, 529: agent.KindOverloaded,
	} {
		for what, reply := range map[string]Reply{
			"page":           Body(status, "text/html", fmt.Sprintf(page, status)),
			"nothing":        {Status: status},
			"other JSON":     Body(status, "application/json", `{"unexpected":["something"]}`),
			"no object":      Body(status, "application/json", `"no"`),
			"broken JSON":    Body(status, "application/json", `{"error":{"message":"it bre`),
			"error of other": Body(status, "application/json", `{"error":"plain words"}`),
		} {
			t.Run(fmt.Sprintf("%d with %s", status, what), func(t *testing.T) {
				failure := s.ask(t, streaming, reply).fails(t, kind)
				assert.Equal(t, status, failure.Status, "the status")
			})
		}
	}
}

// testDown checks a service that does not listen, and a service that closes the connection.
func (s Service) testDown(t *testing.T, streaming bool) {
	t.Helper()
	t.Run("no server", func(t *testing.T) {
		a := s.ask(t, streaming, Reply{})
		a.Close()
		_, err := a.soon(t.Context(), t, nil)
		failure := a.checkFailure(t, err, agent.KindModel)
		assert.True(t, failure.Retryable(), "another attempt may succeed")
		assert.Empty(t, a.Requests(), "requests")
	})
	t.Run("no answer", func(t *testing.T) {
		a := s.ask(t, streaming, Reply{Then: Dropped})
		_, err := a.soon(t.Context(), t, nil)
		assert.Contains(t, []agent.ErrorKind{agent.KindModel, agent.KindBrokenStream}, agent.KindOf(err), "the kind of: %v", err)
		a.checkFailure(t, err, agent.KindOf(err))
		assert.Len(t, a.Requests(), 1, "requests: trying again is up to processor.Retry")
	})
}

// testNoAnswer checks answers with status 200 whose body is not a reply.
func (s Service) testNoAnswer(t *testing.T, streaming bool) {
	t.Helper()
	contentType := lo.Ternary(streaming, "text/event-stream", "application/json")
	for name, reply := range map[string]Reply{
		"page":          Body(http.StatusOK, "text/html", "<html><body>Please log in.</body></html>"),
		"page as reply": Body(http.StatusOK, contentType, "<html><body>Please log in.</body></html>"),
		"nothing":       {},
		"nothing typed": Body(http.StatusOK, contentType, ""),
		"empty object":  Body(http.StatusOK, contentType, lo.Ternary(streaming, "data: {}\n\n", "{}")),
		"null":          Body(http.StatusOK, contentType, lo.Ternary(streaming, "data: null\n\n", "null")),
		"list":          Body(http.StatusOK, contentType, lo.Ternary(streaming, "data: []\n\n", "[]")),
		"other types":   Body(http.StatusOK, contentType, lo.Ternary(streaming, "data: {\"a\":1,\n\n", `{"choices":"none","content":7,"candidates":{}}`)),
	} {
		t.Run(name, func(t *testing.T) { s.ask(t, streaming, reply).fails(t, agent.KindBrokenStream) })
	}
}

// testCutAnswer checks answers whose connection is closed before the body is complete.
func (s Service) testCutAnswer(t *testing.T, streaming bool) {
	t.Helper()
	whole := s.Whole.Body
	if streaming {
		whole = strings.TrimRight(strings.Join(s.Whole.Frames, ""), "\n")
	}
	for _, n := range []int{0, 1, len(whole) / 3, len(whole) / 2, len(whole) - 1} {
		t.Run(fmt.Sprintf("after %d bytes", n), func(t *testing.T) {
			reply := s.Whole.reply(streaming)
			reply.Frames, reply.Then = []string{whole[:n]}, Cut
			s.ask(t, streaming, reply).fails(t, agent.KindBrokenStream)
		})
	}
}

// testRetry checks that, after a rate limit, processor.Retry repeats the request, and not too early.
func (s Service) testRetry(t *testing.T, streaming bool) {
	t.Helper()
	limit := s.Errors[agent.KindRateLimit][0].With("Retry-After-Ms", "30")
	d := s.ask(t, streaming, limit, limit, s.Whole.reply(streaming))
	var waits []time.Duration
	a, err := agent.New(agent.Config{
		Driver: d.driver, AroundStep: []agent.Processor{processor.Retry{Delay: time.Nanosecond}},
		Observer: newObserver(func(e agent.Event) {
			if r, ok := e.(processor.Retrying); ok {
				waits = append(waits, r.Wait)
			}
		}),
	}).Get()
	require.NoError(t, err)
	began := time.Now()
	final, err := runWay(t, a, streaming)
	require.NoError(t, err)
	assert.Equal(t, s.Text, final.Answer(), "the answer")
	assert.Equal(t, 1, final.RunStepCount(), "steps: a retried step counts once")
	assert.Len(t, d.Requests(), 3, "requests")
	assert.Equal(t, []time.Duration{30 * time.Millisecond, 30 * time.Millisecond}, waits, "the waits")
	assert.GreaterOrEqual(t, time.Since(began), 60*time.Millisecond, "the time it took")
}
