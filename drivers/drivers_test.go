package drivers_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/drivers/openai"
)

func TestErrorSaysWhatToDo(t *testing.T) {
	err := error(&drivers.Error{
		Provider: "openai", Model: "gpt-4o", Kind: agent.KindRateLimit, Status: 429, Code: "rate_limit_exceeded",
		Message: "slow down", RequestID: "req_1", After: 2 * time.Second, Advice: "ask for a higher limit",
	})
	assert.EqualError(t, err, `asking openai model "gpt-4o": too many requests (429 rate_limit_exceeded): slow down; `+
		`retry after 2s; ask for a higher limit [request req_1]`)
	assert.Equal(t, agent.KindRateLimit, agent.KindOf(fmt.Errorf("around it: %w", err)))

	cause := errors.New("connection refused")
	err = &drivers.Error{Provider: "openai", Kind: agent.KindModel, Err: cause}
	assert.EqualError(t, err, "asking openai: the call failed: connection refused")
	assert.ErrorIs(t, err, cause)
}

func TestWhatIsTriedAgain(t *testing.T) {
	for kind, want := range map[agent.ErrorKind]bool{
		agent.KindRateLimit: true, agent.KindOverloaded: true, agent.KindBrokenStream: true, agent.KindModel: true,
		agent.KindTimeout: true, agent.KindAuth: false, agent.KindBadRequest: false, agent.KindContextLength: false,
		agent.KindInvalid: false,
	} {
		assert.Equal(t, want, (&drivers.Error{Kind: kind}).Retryable(), kind)
	}
}

func TestKindOfStatus(t *testing.T) {
	for status, want := range map[int]agent.ErrorKind{
		400: agent.KindBadRequest, 401: agent.KindAuth, 403: agent.KindAuth, 404: agent.KindBadRequest,
		408: agent.KindTimeout, 409: agent.KindModel, 413: agent.KindBadRequest, 422: agent.KindBadRequest,
		429: agent.KindRateLimit, 500: agent.KindModel, 502: agent.KindModel, 503: agent.KindOverloaded,
		504: agent.KindTimeout, 529: agent.KindOverloaded,
	} {
		assert.Equal(t, want, drivers.KindOfStatus(status), status)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"":                              0,
		"3":                             3 * time.Second,
		"0.5":                           500 * time.Millisecond,
		"-1":                            0,
		"soon":                          0,
		"NaN":                           0,
		"1e300":                         365 * 24 * time.Hour,
		"Sat, 21 Nov 2026 12:00:07 GMT": 7 * time.Second,
		"Sat, 21 Nov 2026 11:00:00 GMT": 0,
	} {
		assert.Equal(t, want, drivers.RetryAfter(http.Header{"Retry-After": {text}}, now), text)
	}
	both := http.Header{"Retry-After": {"2"}, "Retry-After-Ms": {"1500"}}
	assert.Equal(t, 1500*time.Millisecond, drivers.RetryAfter(both, now), "the more exact one")
}

func TestPrices(t *testing.T) {
	prices := drivers.NewPrices("2026-11-21", map[string]drivers.Price{
		"small":            {Input: 1, Output: 4, CacheRead: mo.Some(0.1), CacheWrite: mo.Some(1.25)},
		"small-2025-01-01": {Input: 2, Output: 8},
		"tiered":           {Input: 1, Output: 10, OverTokens: 200_000, Over: &drivers.Price{Input: 2, Output: 15}},
	})
	million := agent.Usage{InputTokens: 1_000_000, OutputTokens: 1_000_000}
	for model, want := range map[string]mo.Option[float64]{
		"small":            mo.Some(5.0),
		"small-2024-08-06": mo.Some(5.0), // a version that has no line of its own
		"small-20240806":   mo.Some(5.0),
		"small-001":        mo.Some(5.0),
		"small-latest":     mo.Some(5.0),
		"small-2025-01-01": mo.Some(10.0), // one that has
		"tiered":           mo.Some(17.0),
		"small-mini":       mo.None[float64](), // another model
		"smal":             mo.None[float64](),
		"":                 mo.None[float64](),
	} {
		assert.Equal(t, want, prices.Cost(model, million), model)
	}

	cached := agent.Usage{InputTokens: 1_000_000, CacheReadTokens: 500_000, CacheWriteTokens: 300_000}
	assert.InDelta(t, 0.2+0.05+0.375, prices.Cost("small", cached).MustGet(), 1e-9)
	assert.InDelta(t, 2.0, prices.Cost("small-2025-01-01", cached).MustGet(), 1e-9, "no cache prices: all is input")
	assert.InDelta(t, 0.2, prices.Cost("tiered", agent.Usage{InputTokens: 200_000}).MustGet(), 1e-9, "on the limit")

	assert.Equal(t, mo.None[float64](), drivers.Prices{}.Cost("small", million))
	assert.Equal(t, "2026-11-21", prices.AsOf())
}

func TestRedact(t *testing.T) {
	assert.Equal(t, "wrong key: [redacted].", drivers.Redact("wrong key: sk-1.", "sk-1"))
	assert.Equal(t, "unchanged", drivers.Redact("unchanged", ""))
}

// A wrong configuration is a permanent error, however it is wrapped: a worker does not try it again.
func TestConfigErrorsArePermanent(t *testing.T) {
	for _, name := range []string{
		"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL",
	} {
		t.Setenv(name, "")
	}
	_, noKey := openai.New(openai.Config{Model: "m"})
	_, noModel := anthropic.New(anthropic.Config{APIKey: "k"})
	_, noURL := gemini.New(gemini.Config{Model: "m", BaseURL: "ftp://x"})
	for want, err := range map[string]error{
		"making an openai driver: no key": noKey, "making an anthropic driver: no model": noModel, "making a gemini driver: BaseURL is not": noURL,
	} {
		require.ErrorContains(t, err, want)
		err = fmt.Errorf("building: %w", errors.Join(errors.New("first"), err))
		assert.False(t, agent.Retryable(err), want)
		assert.Equal(t, agent.KindBadRequest, agent.KindOf(err), want)
		_, typed := errors.AsType[*drivers.ConfigError](err)
		assert.True(t, typed, want)
	}
	assert.False(t, agent.Retryable(&drivers.Error{Kind: agent.KindAuth, Status: 401}))
	assert.True(t, agent.Retryable(&drivers.Error{Kind: agent.KindOverloaded, Status: 529}))
	assert.True(t, agent.Retryable(errors.New("unknown")))
}
