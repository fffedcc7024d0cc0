package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

var vendor = service.Vendor{URL: "https://api.test/v1", BaseURL: "SERVICE_URL", Keys: []string{"SERVICE_KEY", "OTHER_KEY"}}

func TestKeyGoesWhereItBelongs(t *testing.T) {
	for name, c := range map[string]struct {
		base, variable, key string
		want                string
		ofVendor            bool
	}{
		"the vendor":                       {want: "env", ofVendor: true},
		"the vendor, named":                {base: " https://api.test/v1/ ", want: "env", ofVendor: true},
		"the vendor, another path":         {base: "https://api.test", want: "env", ofVendor: true},
		"the vendor, a key":                {key: " own\n", want: "own", ofVendor: true},
		"the environment's URL":            {variable: "http://gateway", want: "env"},
		"one's own URL":                    {base: "http://gateway"},
		"one's own, as in the environment": {base: "http://gateway", variable: "http://gateway"},
		"one's own URL, a key":             {base: "http://gateway", key: "own", want: "own"},
		"in the clear":                     {base: "http://api.test/v1"},
		"below the vendor":                 {base: "https://eu.api.test/v1"},
		"like the vendor":                  {base: "https://api.test.example.com/v1"},
		"on another port":                  {base: "https://api.test:8443/v1"},
		"as a name":                        {base: "https://api.test@example.com/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SERVICE_URL", c.variable)
			t.Setenv("SERVICE_KEY", " ")
			t.Setenv("OTHER_KEY", "env\n")
			e, err := vendor.Endpoint(service.Config{BaseURL: c.base, APIKey: c.key})
			require.NoError(t, err)
			assert.Equal(t, c.want, e.Key)
			assert.Equal(t, c.ofVendor, e.Vendor)
			assert.Equal(t, c.want == "env", e.Trusted)
		})
	}
}

// No error about a base URL repeats it: there is no telling where in it a secret is.
func TestWrongEndpoints(t *testing.T) {
	t.Setenv("SERVICE_KEY", "")
	t.Setenv("SERVICE_URL", "")
	t.Setenv("OTHER_KEY", "")
	for base, want := range map[string]string{
		"":                                "no key: set the environment variable SERVICE_KEY, or Config.APIKey",
		"http://user:secret@host:no/":     "BaseURL is not a URL",
		"ftp://user:secret@host":          "BaseURL is not the address of a service: begin with https:// or http://, and name a host",
		"user:secret@host":                "BaseURL is not the address of a service: begin with https:// or http://, and name a host",
		"https://":                        "BaseURL is not the address of a service: begin with https:// or http://, and name a host",
		"https://example.com/?key=secret": "BaseURL has a query or a fragment, which cannot be sent: leave it out",
		"https://example.com/#secret":     "BaseURL has a query or a fragment, which cannot be sent: leave it out",
	} {
		_, err := vendor.Endpoint(service.Config{BaseURL: base})
		require.EqualError(t, err, want, base)
		assert.NotContains(t, service.DescribeConfig("x", "m", base), "secret")
	}
	_, err := vendor.Endpoint(service.Config{APIKey: "a\nb"})
	require.EqualError(t, err, "the key contains a line break or a control character: copy it again")
	e, err := vendor.Endpoint(service.Config{BaseURL: "http://user:secret@host/x/"})
	require.NoError(t, err)
	assert.Equal(t, "http://host/x", e.SafeURL())
	assert.Equal(t, `x.Config{"m" at http://host/x}`, service.DescribeConfig("x", "m", "http://user:secret@host/x"))
	assert.Equal(t, "a [redacted] b", e.Redact("a secret b"))
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	given := server.Client()
	e, err := vendor.Endpoint(service.Config{BaseURL: server.URL, HTTPClient: given})
	require.NoError(t, err)
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("x"))
	require.NoError(t, err)
	answer, err := e.Client.Do(ask)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusTemporaryRedirect, answer.StatusCode)
	assert.Equal(t, 1, asked)
	assert.Nil(t, given.CheckRedirect, "the client that was given stays as it was")
}

// A part of a secret is secret, too.
func TestExcerpt(t *testing.T) {
	e, err := vendor.Endpoint(service.Config{
		BaseURL: "http://host", APIKey: "sk-0123456789", Header: http.Header{"Authorization": {"Bearer sk-0123456789-longer"}, "X": {"abc"}},
	})
	require.NoError(t, err)
	for n := 980; n <= 1010; n++ {
		text := service.Excerpt(strings.Repeat("x", n)+" sk-0123456789 and more", e.Redact)
		assert.NotContains(t, text, "sk-", "%d", n)
		assert.LessOrEqual(t, len(text), 1003, "%d", n)
	}
	assert.Equal(t, "[redacted] [redacted]. \uFFFD abc", service.Excerpt("sk-0123456789-longer\n\tsk-0123456789. \xff abc", e.Redact))
	under := service.RedactError(&url.Error{Op: "Post", URL: "http://user:pass@host", Err: errors.New("no sk-0123456789")}, e.Redact)
	require.EqualError(t, under, "no [redacted]")
	assert.Equal(t, io.ErrUnexpectedEOF, service.RedactError(io.ErrUnexpectedEOF, e.Redact), "an error without a secret stays what it is")
}

// Each request gets the token of its moment, and no error shows it, nor one before it.
func TestTokens(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	tokens := []string{"token-0001", "token-0001-longer\n", "", "a\nb"}
	problem := errors.New("no network")
	given := server.Client()
	e, err := vendor.Endpoint(service.Config{BaseURL: server.URL, HTTPClient: given, Token: func(context.Context) (string, error) {
		if len(tokens) == 0 {
			return "token-0003", problem
		}
		token := tokens[0]
		tokens = tokens[1:]
		return token, nil
	}})
	require.NoError(t, err)
	assert.False(t, e.Keyless)
	post := e.Poster(http.Header{}, http.Header{"Authorization": {"Bearer other"}})
	for _, want := range []string{"", "", "getting a token: the token is empty", "getting a token: the token contains a line break", "getting a token: no network"} {
		res, err := post(t.Context(), "x", "", []byte("{}"))
		if want == "" {
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			continue
		}
		require.ErrorContains(t, err, want)
		assert.Equal(t, agent.KindAuth, service.KindOf(err))
	}
	assert.Equal(t, []string{"Bearer token-0001", "Bearer token-0001-longer"}, got)
	assert.Equal(t, "[redacted] and [redacted]", e.Redact("token-0001 and token-0001-longer"))
	_, err = post(t.Context(), "x", "", nil) //nolint:bodyclose // there is no response
	require.ErrorIs(t, err, problem)
	assert.NotContains(t, fmt.Sprintf("%+v %#v", given, given), "token-")

	_, err = vendor.Endpoint(service.Config{BaseURL: server.URL, APIKey: "k", Token: func(context.Context) (string, error) { return "", nil }})
	require.EqualError(t, err, "both a key and a token are set: leave one of them out")
}

// A location is a part of the host that gets the token.
func TestVertexEndpoint(t *testing.T) {
	t.Setenv("SERVICE_KEY", "env")
	token := func(context.Context) (string, error) { return "x", nil }
	for location, want := range map[string]string{
		"europe-west4": "https://europe-west4-aiplatform.googleapis.com", "global": "https://aiplatform.googleapis.com",
		"eu": "https://aiplatform.eu.rep.googleapis.com",
	} {
		e, err := service.VertexEndpoint(drivers.Vertex{Project: "p-1", Location: location, Token: token}, service.Config{})
		require.NoError(t, err)
		assert.Equal(t, want, e.SafeURL())
		assert.Empty(t, e.Key)
	}
	for _, location := range []string{"", "evil.com/", "a@b", "EU", "x?", "a#"} {
		_, err := service.VertexEndpoint(drivers.Vertex{Project: "p-1", Location: location, Token: token}, service.Config{})
		require.ErrorContains(t, err, "is not a location of Vertex AI", location)
	}
	_, err := service.VertexEndpoint(drivers.Vertex{Project: "../x", Location: "eu"}, service.Config{})
	require.EqualError(t, err, "the project \"../x\" is not the id of a Google Cloud project: set Vertex.Project\nno token: set Vertex.Token")
}

func TestArguments(t *testing.T) {
	for text, want := range map[string]string{
		"":                           `{}`,
		` {"a": 1.0} `:               ` {"a": 1.0} `,
		`{"a":1,"a":2}`:              `{"_malformed_arguments":"{\"a\":1,\"a\":2}"}`,
		`{"a`:                        `{"_malformed_arguments":"{\"a"}`,
		`[1]`:                        `{"_malformed_arguments":"[1]"}`,
		"{\"a\":\"\xff\"}":           `{"_malformed_arguments":"{\"a\":\"\ufffd\"}"}`,
		`null`:                       `{"_malformed_arguments":"null"}`,
		`{"a":1} {"b":2}`:            `{"_malformed_arguments":"{\"a\":1} {\"b\":2}"}`,
		`{"n":12345678901234567890}`: `{"n":12345678901234567890}`,
	} {
		assert.Equal(t, want, string(service.Arguments(text)), text)
	}
}

func TestDataURL(t *testing.T) {
	kind, data, ok := service.DataURL("data:image/png;base64,AAE=")
	assert.True(t, ok)
	assert.Equal(t, "image/png", kind)
	assert.Equal(t, agent.Bytes("\x00\x01"), data)
	for _, url := range []string{"https://x/data:", "data:text/plain,hello", "data:image/png;base64,!"} {
		_, _, ok := service.DataURL(url)
		assert.False(t, ok, url)
	}
}

// endless is a service that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestReply(t *testing.T) {
	read := func(text string) string {
		out, err := io.ReadAll(service.Reply(io.NopCloser(strings.NewReader(text))))
		require.NoError(t, err)
		return string(out)
	}
	for text, want := range map[string]string{
		"": "", "a": "a", "\xef\xbb": "\xef\xbb", "\xef\xbb\xbf": "", "\xef\xbb\xbf\xef\xbb\xbfa": "\xef\xbb\xbfa", "data: {}\n": "data: {}\n",
	} {
		assert.Equal(t, want, read(text))
	}
	n, err := io.Copy(io.Discard, service.Reply(io.NopCloser(endless{})))
	require.EqualError(t, err, "the reply is longer than 256 MB")
	assert.Equal(t, int64(256<<20), n)
}

func TestAdvice(t *testing.T) {
	for want, c := range map[string]struct {
		e       drivers.Error
		keyless bool
	}{
		"no key was sent":                           {drivers.Error{Kind: agent.KindAuth, Status: 403}, true},
		"the permissions of the key":                {drivers.Error{Kind: agent.KindAuth, Status: 403}, false},
		"the key belongs to this service":           {drivers.Error{Kind: agent.KindAuth, Status: 400}, false},
		"send less":                                 {drivers.Error{Kind: agent.KindContextLength}, false},
		"the part of the address before /v1/things": {drivers.Error{Kind: agent.KindBadRequest, Status: 404}, false},
		"redirects are not followed":                {drivers.Error{Kind: drivers.KindOfStatus(308), Status: 308}, false},
	} {
		assert.Contains(t, service.Advice(&c.e, c.keyless, "/v1/things"), want)
	}
	assert.Empty(t, service.Advice(&drivers.Error{Kind: agent.KindBadRequest, Status: 304}, false, "/v1/things"))
	assert.Empty(t, service.Advice(&drivers.Error{Kind: agent.KindRateLimit, Status: 429}, false, "/v1/things"))
	assert.False(t, (&drivers.Error{Kind: drivers.KindOfStatus(302)}).Retryable(), "a redirect leads to the same next time")
}
