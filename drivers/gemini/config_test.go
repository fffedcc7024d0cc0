package gemini_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// noEnvironment takes away what the machine may have set.
func noEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT"} {
		t.Setenv(name, "")
	}
}

// wire is a client whose requests reach no server: it keeps them and answers itself.
type wire struct{ asked []*http.Request }

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.asked = append(w.asked, r)
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	answer.Body = http.NoBody
	return answer, nil
}

// The key from the environment goes to the vendor and to the environment's URL; a
// BaseURL of one's own gets the key that stands beside it, or none.
func TestWhoGetsWhichKey(t *testing.T) {
	for name, tc := range map[string]struct {
		config      gemini.Config
		environment map[string]string
		url, key    string
	}{
		"the vendor, a key of the environment": {
			gemini.Config{}, map[string]string{"GEMINI_API_KEY": "k1", "GOOGLE_API_KEY": "k2"}, "https://generativelanguage.googleapis.com", "k1",
		},
		"the other variable": {
			gemini.Config{}, map[string]string{"GOOGLE_API_KEY": "k2"}, "https://generativelanguage.googleapis.com", "k2",
		},
		"a key of one's own": {
			gemini.Config{APIKey: "k3"}, map[string]string{"GEMINI_API_KEY": "k1"}, "https://generativelanguage.googleapis.com", "k3",
		},
		"the environment's URL": {
			gemini.Config{}, map[string]string{"GEMINI_API_KEY": "k1", "GOOGLE_GEMINI_BASE_URL": "http://gateway.test/g/"}, "http://gateway.test/g", "k1",
		},
		"a URL of one's own": {
			gemini.Config{BaseURL: "http://gateway.test"}, map[string]string{"GEMINI_API_KEY": "k1", "GOOGLE_API_KEY": "k2"}, "http://gateway.test", "",
		},
		"a URL and a key of one's own": {
			gemini.Config{BaseURL: "http://gateway.test", APIKey: "k3"}, map[string]string{"GEMINI_API_KEY": "k1"}, "http://gateway.test", "k3",
		},
		"the vendor's URL, said": {
			gemini.Config{BaseURL: "https://generativelanguage.googleapis.com/"}, map[string]string{"GEMINI_API_KEY": "k1"}, "https://generativelanguage.googleapis.com", "k1",
		},
		"Vertex wanted by the environment": {
			gemini.Config{}, map[string]string{"GEMINI_API_KEY": "k1", "GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_CLOUD_PROJECT": "p"},
			"https://generativelanguage.googleapis.com", "k1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			noEnvironment(t)
			for name, value := range tc.environment {
				t.Setenv(name, value)
			}
			w := &wire{}
			tc.config.Model, tc.config.HTTPClient = "gemini-3.8-flash", &http.Client{Transport: w}
			tc.config.Header = http.Header{"x-team": {"blue"}}
			d, err := gemini.New(tc.config)
			require.NoError(t, err)
			assert.Equal(t, tc.url, d.Features().Endpoint)

			_, err = d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
			require.Error(t, err, "nothing was answered")
			require.Len(t, w.asked, 1)
			r := w.asked[0]
			assert.Equal(t, tc.url+"/v1beta/models/gemini-3.8-flash:generateContent", r.URL.String())
			assert.Equal(t, tc.key, r.Header.Get("X-Goog-Api-Key"))
			assert.Equal(t, "blue", r.Header.Get("X-Team"))
			rest := fmt.Sprint(r.URL, strings.ReplaceAll(fmt.Sprint(r.Header), "X-Goog-Api-Key:["+tc.key+"]", ""))
			for _, key := range []string{"k1", "k2", "k3"} {
				assert.NotContains(t, rest, key)
			}
		})
	}
}

func TestWrongConfigurations(t *testing.T) {
	noEnvironment(t)
	_, err := gemini.New(gemini.Config{})
	require.EqualError(t, err, "making a gemini driver: no model: set Config.Model\n"+
		"no key: set the environment variable GEMINI_API_KEY, or Config.APIKey")
	for url, want := range map[string]string{
		"localhost:4000":                  "BaseURL is not ",
		"ftp://example.com":               "BaseURL is not ",
		"http://user:secret@host:no/":     "BaseURL is not ",
		"https://example.com/?key=secret": "BaseURL has a query",
	} {
		_, err := gemini.New(gemini.Config{Model: "m", BaseURL: url})
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestFeatures(t *testing.T) {
	noEnvironment(t)
	d, err := gemini.New(gemini.Config{Model: "gemini-3.8-flash", APIKey: "key-1"})
	require.NoError(t, err)
	assert.Equal(t, agent.Features{
		Provider: "gcp.gemini", Model: "gemini-3.8-flash", Endpoint: "https://generativelanguage.googleapis.com",
		Streaming: true, Tools: true, ParallelCalls: true, StructuredOutput: true, Images: true, Files: true, Reasoning: true,
		ContextTokens: 1_048_576, MaxOutputTokens: 65_536, Priced: true,
	}, d.Features())
	assert.Equal(t, "gemini/gemini-3.8-flash", d.String())

	d, err = gemini.New(gemini.Config{Model: "gemma", BaseURL: "http://user:secret@localhost:1/x", Prices: new(gemini.ListPrices())})
	require.NoError(t, err)
	assert.Equal(t, "http://localhost:1/x", d.Features().Endpoint, "without credentials")
	assert.False(t, d.Features().Priced)
	assert.Zero(t, d.Features().ContextTokens, "unknown")
}

// A service that answers with every secret it was sent leaks none of them through us.
func TestSecretsStaySecret(t *testing.T) {
	const header = "Bearer team-secret-1"
	words := modeltest.Key + " " + header + " team-secret-1"
	for name, reply := range map[string]modeltest.Reply{
		"message": refusal(400, "INVALID_ARGUMENT", words, ""),
		"reason":  refusal(400, "INVALID_ARGUMENT", "x", `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"`+words+`"}`),
		"status":  refusal(400, strings.ReplaceAll(words, " ", "_"), "x", ""),
		"page":    modeltest.Body(502, "text/html", "<p>"+words),
		"reply":   modeltest.Body(200, "application/json", `{"candidates":"`+words+`"}`),
		"finish":  modeltest.Body(200, "application/json", `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"`+words+`"}]}`),
		"reasons": modeltest.Body(200, "application/json", `{"candidates":[{"finishReason":"`+words+`"}]}`),
		"request": modeltest.Body(500, "text/plain", "x").With("X-Request-Id", words),
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := newDriver(t, gemini.Config{Header: http.Header{"Authorization": {header}}}, reply)
			_, err := d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
			require.Error(t, err)
			for e := err; e != nil; {
				said := fmt.Sprintf("%s %+v", e, e)
				assert.NotContains(t, said, modeltest.Key)
				assert.NotContains(t, said, "team-secret-1")
				under, ok := e.(interface{ Unwrap() error })
				if !ok {
					break
				}
				e = under.Unwrap()
			}
			assert.NotContains(t, fmt.Sprintf("%+v", d.Features()), modeltest.Key)
		})
	}
}

// A redirect would take the key to wherever it leads.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := modeltest.Golden(t, modeltest.Body(200, "application/json", service.Whole.Body))
	d, _ := newDriver(t, gemini.Config{}, modeltest.Reply{Status: http.StatusTemporaryRedirect}.With("Location", elsewhere.URL))
	_, err := d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.ErrorContains(t, err, "redirects are not followed")
	assert.Equal(t, agent.KindBadRequest, agent.KindOf(err))
	assert.Empty(t, elsewhere.Requests())
}

// The service says in the body how long it wants to be left alone.
func TestRetryDelay(t *testing.T) {
	d, _ := newDriver(t, gemini.Config{}, refusal(429, "RESOURCE_EXHAUSTED", "quota",
		`{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36.5s"}`))
	_, err := d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	failure := new(drivers.Error)
	require.ErrorAs(t, err, &failure)
	require.EqualError(t, failure, `asking gcp.gemini model "gemini-3.8-flash": too many requests (429 RESOURCE_EXHAUSTED): quota; `+
		`retry after 36.5s`)
}

func TestMissingKeyIsNamed(t *testing.T) {
	noEnvironment(t)
	e := modeltest.Golden(t, refusal(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers", ""))
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	d, err := gemini.New(gemini.Config{Model: "gemini-3.8-flash", BaseURL: e.URL, HTTPClient: client})
	require.NoError(t, err)
	_, err = d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.ErrorContains(t, err, "no key was sent: set Config.APIKey")
	assert.Equal(t, agent.KindAuth, agent.KindOf(err))
	assert.NotContains(t, e.Requests()[0].Header, "X-Goog-Api-Key")
}

// A panic of the listener is its own.
func TestPanicOfTheListener(t *testing.T) {
	d, _ := newDriver(t, gemini.Config{}, modeltest.SSE(service.Whole.Frames...))
	assert.PanicsWithValue(t, "listener", func() {
		d.Stream(context.Background(), agent.NewState(agent.UserText("hello")), func(agent.Delta) { panic("listener") })
	})
}
