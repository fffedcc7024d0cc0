package openai_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// caught is a client that sends nothing: it notes the request and answers.
type caught struct {
	requests []*http.Request
	answer   string
}

func (c *caught) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests = append(c.requests, r)
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(c.answer))),
	}, nil
}

// TestKeys: which key goes where.
func TestKeys(t *testing.T) {
	for name, c := range map[string]struct {
		environment map[string]string
		config      openai.Config
		url         string
		header      map[string]string // empty means none
		err         string
	}{
		"no key": {err: "making an openai driver: no key: set the environment variable OPENAI_API_KEY, or Config.APIKey"},
		"the environment's, to the vendor": {
			environment: map[string]string{"OPENAI_API_KEY": "sk-env\n", "OPENAI_ORG_ID": "org", "OPENAI_PROJECT_ID": "proj"},
			url:         "https://api.openai.com/v1/chat/completions",
			header:      map[string]string{"Authorization": "Bearer sk-env", "Openai-Organization": "org", "Openai-Project": "proj"},
		},
		"one's own, to the vendor": {
			environment: map[string]string{"OPENAI_API_KEY": "sk-env", "OPENAI_ORG_ID": "org", "OPENAI_PROJECT_ID": "proj"},
			config:      openai.Config{APIKey: "sk-own", Organization: "ours", Project: "mine"},
			url:         "https://api.openai.com/v1/chat/completions",
			header:      map[string]string{"Authorization": "Bearer sk-own", "Openai-Organization": "ours", "Openai-Project": "mine"},
		},
		"one's own key, and nothing of the environment's": {
			environment: map[string]string{"OPENAI_API_KEY": "sk-env", "OPENAI_ORG_ID": "org", "OPENAI_PROJECT_ID": "proj"},
			config:      openai.Config{APIKey: "sk-own"},
			url:         "https://api.openai.com/v1/chat/completions",
			header:      map[string]string{"Authorization": "Bearer sk-own", "Openai-Organization": "", "Openai-Project": ""},
		},
		"the environment's, to the environment's URL": {
			environment: map[string]string{"OPENAI_API_KEY": "sk-env", "OPENAI_BASE_URL": "http://gateway/openai/v1/"},
			url:         "http://gateway/openai/v1/chat/completions",
			header:      map[string]string{"Authorization": "Bearer sk-env"},
		},
		"the environment's, to a region of the vendor's": {
			environment: map[string]string{"OPENAI_API_KEY": "sk-env"},
			config:      openai.Config{BaseURL: "https://eu.api.openai.com/v1"},
			url:         "https://eu.api.openai.com/v1/chat/completions",
			header:      map[string]string{"Authorization": "Bearer sk-env"},
		},
		"the environment's, never to a URL of one's own": {
			environment: map[string]string{
				"OPENAI_API_KEY": "sk-env", "OPENAI_ORG_ID": "org", "OPENAI_PROJECT_ID": "proj", "OPENAI_ADMIN_KEY": "sk-admin",
				"OPENAI_BASE_URL": "http://gateway/v1", "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer sk-custom",
			},
			config: openai.Config{BaseURL: "http://localhost:11434/v1"},
			url:    "http://localhost:11434/v1/chat/completions",
			header: map[string]string{"Authorization": "", "Openai-Organization": "", "Openai-Project": ""},
		},
		"nor to one that looks like the vendor's": {
			environment: map[string]string{"OPENAI_API_KEY": "sk-env"},
			config:      openai.Config{BaseURL: "https://api.openai.com.example.com/v1"},
			url:         "https://api.openai.com.example.com/v1/chat/completions",
			header:      map[string]string{"Authorization": ""},
		},
		"nor in the clear": {
			environment: map[string]string{"OPENAI_API_KEY": "sk-env"},
			config:      openai.Config{BaseURL: "http://api.openai.com/v1"},
			url:         "http://api.openai.com/v1/chat/completions",
			header:      map[string]string{"Authorization": ""},
		},
		"one's own, to a URL of one's own": {
			config: openai.Config{BaseURL: "http://vllm:8000", APIKey: "sk-own"},
			url:    "http://vllm:8000/chat/completions",
			header: map[string]string{"Authorization": "Bearer sk-own"},
		},
		"further headers": {
			config: openai.Config{BaseURL: "https://x.openai.azure.com/openai/v1", Header: http.Header{"Api-Key": {"azure-1"}, "X-Two": {"a", "b"}}},
			url:    "https://x.openai.azure.com/openai/v1/chat/completions",
			header: map[string]string{"Api-Key": "azure-1", "X-Two": "a, b", "Authorization": ""},
		},
		"a key for Azure": {
			environment: map[string]string{"OPENAI_API_KEY": "sk-env"},
			config:      openai.Config{BaseURL: "https://X.openai.azure.com/openai/v1/", APIKey: "sk-own"},
			url:         "https://X.openai.azure.com/openai/v1/chat/completions",
			header:      map[string]string{"Api-Key": "sk-own", "Authorization": ""},
		},
		"the environment's, to Azure in the environment": {
			environment: map[string]string{"OPENAI_API_KEY": "sk-env", "OPENAI_BASE_URL": "https://x.openai.azure.com/openai/v1"},
			url:         "https://x.openai.azure.com/openai/v1/chat/completions",
			header:      map[string]string{"Api-Key": "sk-env", "Authorization": ""},
		},
		"never to Azure in the Config": {
			environment: map[string]string{"OPENAI_API_KEY": "sk-env"},
			config:      openai.Config{BaseURL: "https://x.openai.azure.com/openai/v1"},
			url:         "https://x.openai.azure.com/openai/v1/chat/completions",
			header:      map[string]string{"Api-Key": "", "Authorization": ""},
		},
		"what looks like Azure": {
			config: openai.Config{BaseURL: "https://openai.azure.com.example.com/v1", APIKey: "sk-own"},
			url:    "https://openai.azure.com.example.com/v1/chat/completions",
			header: map[string]string{"Api-Key": "", "Authorization": "Bearer sk-own"},
		},
		"a deployment at Azure": {
			config: openai.Config{BaseURL: "https://x.openai.azure.com", APIKey: "sk-own", APIVersion: "2024-10-21"},
			url:    "https://x.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
			header: map[string]string{"Api-Key": "sk-own", "Authorization": ""},
		},
		"a deployment behind a gateway": {
			config: openai.Config{BaseURL: "https://gateway.example.com/team/openai", APIKey: "sk-own", APIVersion: "2024-10-21"},
			url:    "https://gateway.example.com/team/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
			header: map[string]string{"Api-Key": "sk-own", "Authorization": ""},
		},
		"Azure's v1 API behind a gateway": {
			config: openai.Config{BaseURL: "https://gateway.example.com/openai/v1", APIKey: "sk-own", Azure: true},
			url:    "https://gateway.example.com/openai/v1/chat/completions",
			header: map[string]string{"Api-Key": "sk-own", "Authorization": ""},
		},
		"a version of Azure's v1 API": {
			config: openai.Config{BaseURL: "https://x.openai.azure.com/openai/v1", APIKey: "sk-own", APIVersion: "preview"},
			url:    "https://x.openai.azure.com/openai/v1/chat/completions?api-version=preview",
			header: map[string]string{"Api-Key": "sk-own"},
		},
		"a token": {
			environment: map[string]string{"OPENAI_API_KEY": "sk-env", "OPENAI_ORG_ID": "org"},
			config:      openai.Config{Token: func(context.Context) (string, error) { return " token-1\n", nil }},
			url:         "https://api.openai.com/v1/chat/completions",
			header:      map[string]string{"Authorization": "Bearer token-1", "Api-Key": "", "Openai-Organization": ""},
		},
		"a token and a key": {
			config: openai.Config{APIKey: "sk-own", Token: func(context.Context) (string, error) { return "x", nil }},
			err:    "making an openai driver: both a key and a token are set: leave one of them out",
		},
		"a header for a key": {
			config: openai.Config{Header: http.Header{"Authorization": {"Bearer own"}}},
			url:    "https://api.openai.com/v1/chat/completions",
			header: map[string]string{"Authorization": "Bearer own"},
		},
		"a broken key": {
			config: openai.Config{APIKey: "sk-\nown"},
			err:    "making an openai driver: the key contains a line break or a control character: copy it again",
		},
		"no URL": {
			config: openai.Config{BaseURL: "localhost:11434"},
			err:    "making an openai driver: BaseURL is not the address of a service: begin with https:// or http://, and name a host",
		},
		"nonsense": {
			environment: map[string]string{"OPENAI_BASE_URL": "http://user:pass\x7f@host"},
			err:         "making an openai driver: OPENAI_BASE_URL is not a URL",
		},
		"a query": {
			config: openai.Config{BaseURL: "https://user:secret@host/v1?api-version=1"},
			err:    "making an openai driver: BaseURL has a query or a fragment, which cannot be sent: leave it out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{"API_KEY", "ORG_ID", "PROJECT_ID", "BASE_URL", "ADMIN_KEY", "CUSTOM_HEADERS"} {
				t.Setenv("OPENAI_"+name, c.environment["OPENAI_"+name])
			}
			client := &caught{answer: good}
			c.config.Model, c.config.HTTPClient = "gpt-4o", &http.Client{Transport: client}
			d, err := openai.New(c.config)
			if c.err != "" {
				require.EqualError(t, err, c.err)
				return
			}
			require.NoError(t, err)
			_, err = d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
			require.NoError(t, err)
			require.Len(t, client.requests, 1)
			r := client.requests[0]
			assert.Equal(t, c.url, r.URL.String())
			for name, want := range c.header {
				assert.Equal(t, want, strings.Join(r.Header.Values(name), ", "), name)
			}
			for name, values := range r.Header {
				assert.NotContains(t, strings.Join(values, " "), "sk-admin", name)
				assert.NotContains(t, strings.Join(values, " "), "sk-custom", name)
			}
		})
	}
}

func TestNewSaysAllThatIsWrong(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	_, err := openai.New(openai.Config{})
	require.EqualError(t, err, "making an openai driver: no model: set Config.Model\n"+
		"no key: set the environment variable OPENAI_API_KEY, or Config.APIKey")
}

func TestFeatures(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "")
	usual := agent.Features{
		Provider: "openai", Streaming: true, Tools: true, ParallelCalls: true, StructuredOutput: true, Images: true,
	}
	for name, c := range map[string]struct {
		config openai.Config
		want   func(f *agent.Features)
	}{
		"the vendor": {openai.Config{Model: "gpt-4o-2024-08-06", APIKey: "k"}, func(f *agent.Features) {
			f.Endpoint, f.Files, f.Priced = "https://api.openai.com/v1", true, true
		}},
		"a model without a price": {openai.Config{Model: "gpt-99", APIKey: "k"}, func(f *agent.Features) {
			f.Endpoint, f.Files = "https://api.openai.com/v1", true
		}},
		"a region, whose prices are others": {openai.Config{Model: "gpt-4o", APIKey: "k", BaseURL: "https://eu.api.openai.com/v1"}, func(f *agent.Features) {
			f.Endpoint, f.Files = "https://eu.api.openai.com/v1", true
		}},
		"an endpoint of one's own": {openai.Config{Model: "gpt-4o", BaseURL: "http://user:secret@localhost:11434/v1/"}, func(f *agent.Features) {
			f.Endpoint, f.Reasoning = "http://localhost:11434/v1", true
		}},
		"Azure": {openai.Config{Model: "gpt-4o", APIKey: "k", BaseURL: "https://x.openai.azure.com/openai/v1"}, func(f *agent.Features) {
			f.Endpoint, f.Files = "https://x.openai.azure.com/openai/v1", true
		}},
		"corrected": {openai.Config{
			Model: "qwen3:8b", BaseURL: "http://localhost:11434/v1",
			Prices: new(drivers.NewPrices("2026-11-21", map[string]drivers.Price{"qwen3:8b": {}})),
			Features: func(f *agent.Features) {
				f.Provider, f.Images, f.ContextTokens, f.Model = "ollama", false, 32_768, "another"
			},
		}, func(f *agent.Features) {
			f.Provider, f.Endpoint, f.Reasoning, f.Images, f.ContextTokens, f.Priced = "ollama", "http://localhost:11434/v1", true, false, 32_768, true
		}},
		"not counted": {openai.Config{Model: "gpt-4o", APIKey: "k", Dialect: openai.Dialect{NoStreamUsage: true}}, func(f *agent.Features) {
			f.Endpoint, f.Files = "https://api.openai.com/v1", true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := openai.New(c.config)
			require.NoError(t, err)
			want := usual
			want.Model = c.config.Model
			c.want(&want)
			assert.Equal(t, want, d.Features())
			assert.Equal(t, want.Provider+"/"+want.Model, d.String())
		})
	}
}

// TestVendor: what is different before the vendor itself.
func TestVendor(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "")
	ask := func(answer string, r agent.Request) (agent.Step, string) {
		client := &caught{answer: answer}
		d, err := openai.New(openai.Config{Model: "gpt-4o", APIKey: "k", HTTPClient: &http.Client{Transport: client}})
		require.NoError(t, err)
		step, err := d.Next(t.Context(), agent.NewState(agent.UserText("hi")).WithRequest(r)).Get()
		require.NoError(t, err)
		body, err := client.requests[0].GetBody()
		require.NoError(t, err)
		text, err := io.ReadAll(body)
		require.NoError(t, err)
		return step, string(text)
	}
	_, body := ask(good, agent.Request{MaxOutputTokens: 5, Output: &agent.Output{Schema: `{"type":"array"}`}})
	assert.Equal(t, `{"model":"gpt-4o","stream":false,"max_completion_tokens":5,"messages":[{"content":"hi","role":"user"}]}`, body,
		"the vendor has a name of its own for the limit, and answers with objects alone")

	step, _ := ask(good, agent.Request{})
	assert.InDelta(t, 9*2.5e-6+3*10e-6, step.Usage.Cost.MustGet(), 1e-12, "the list price")
	step, _ = ask(strings.Replace(good, `"model"`, `"service_tier":"flex","model"`, 1), agent.Request{})
	assert.Equal(t, mo.None[float64](), step.Usage.Cost, "the list has the standard tier")
	step, _ = ask(strings.Replace(good, "gpt-4o-2024-08-06", "gpt-99", 1), agent.Request{})
	assert.Equal(t, mo.None[float64](), step.Usage.Cost, "another model answered")
	step, _ = ask(strings.Replace(good, `"usage"`, `"used"`, 1), agent.Request{})
	assert.Equal(t, agent.Usage{}, step.Usage, "the service counted nothing")
}

func TestListPrices(t *testing.T) {
	prices := openai.ListPrices()
	assert.Equal(t, "2026-10-04", prices.AsOf())
	astra, _ := prices.Of("gpt-6-astra-2026-09-03")
	assert.Equal(t, drivers.Price{Input: 20, CacheRead: mo.Some(2.0), CacheWrite: mo.Some(25.0), Output: 75}, *astra.Over)
	assert.InDelta(t, 0.272*20+0.000001*20, prices.Cost("gpt-6-astra", agent.Usage{InputTokens: 272_001}).MustGet(), 1e-9)
	assert.InDelta(t, 0.272*10, prices.Cost("gpt-6-astra", agent.Usage{InputTokens: 272_000}).MustGet(), 1e-9)
	for _, model := range []string{"gpt-5.6-sol", "gpt-4o-audio-preview"} { // audio has prices of its own
		_, listed := prices.Of(model)
		assert.False(t, listed, model)
	}
}

// TestRequestsThatAreNotSent: what cannot be asked fails before a request is sent.
func TestRequestsThatAreNotSent(t *testing.T) {
	hello := agent.UserText("hello")
	tools := agent.ToolsOf(weather)
	lacks := func(take func(f *agent.Features)) func(*openai.Config) {
		return func(c *openai.Config) { c.Features = take }
	}
	for name, c := range map[string]struct {
		message agent.Message
		request agent.Request
		change  func(*openai.Config)
		says    string
	}{
		"no tools":         {hello, agent.Request{Tools: tools}, lacks(func(f *agent.Features) { f.Tools = false }), "the request has tools, which openai/gpt-4o does not accept"},
		"nothing to call":  {hello, agent.Request{ToolChoice: agent.ToolsRequired}, nil, "a tool call is required, but the request has no tools"},
		"unknown tool":     {hello, agent.Request{Tools: tools, ToolChoice: "bash"}, nil, `the tool choice "bash" is not a tool of the request`},
		"schema":           {hello, agent.Request{Tools: agent.ToolsOf(agent.ToolSpec{Name: "x", Parameters: "{"})}, nil, `the parameters of tool "x" are not a JSON object`},
		"output":           {hello, agent.Request{Output: &agent.Output{Schema: "{"}}, nil, "the schema of the output is not JSON"},
		"reserved option":  {hello, agent.Request{Options: agent.Options{}.With("messages", 1)}, nil, `the option "messages" cannot be set: the driver sends the messages of the run`},
		"streaming option": {hello, agent.Request{Options: agent.Options{}.With("stream", true)}, nil, `the option "stream" cannot be set: the run decides whether a reply is streamed`},
		"choices":          {hello, agent.Request{Options: agent.Options{}.With("n", 2)}, nil, `the option "n" cannot be set: a step has one reply`},
		"option twice": {hello, agent.Request{Tools: tools, ToolChoice: agent.ToolsNone, Options: agent.Options{}.With("tool_choice", "auto")}, nil,
			`the option "tool_choice" is set by the request already: leave one of them out`},
		"option of a request": {hello, agent.Request{Options: agent.Options{}.With("max_tokens", 7)}, nil,
			`the option "max_tokens" cannot be set: set agent.Request.MaxOutputTokens`},
		"option that is no JSON": {hello, agent.Request{Options: agent.Options{}.With("x", func() {})}, nil, `the value of "x" cannot be encoded as JSON`},
		"image": {agent.User(agent.ImageURL("https://example.com")), agent.Request{}, lacks(func(f *agent.Features) { f.Images = false }),
			"a message has an image: openai/gpt-4o does not accept images"},
		"file": {agent.User(agent.File("a.pdf", "application/pdf", nil)), agent.Request{}, nil, `a message has the file "a.pdf": openai/gpt-4o does not accept files`},
		"file by URL": {agent.User(agent.FileURL("a.pdf", "https://example.com/a.pdf")), agent.Request{}, lacks(func(f *agent.Features) { f.Files = true }),
			`a message has the file "a.pdf" by its URL: chat completions accept files only as bytes`},
		"no role": {agent.Message{}, agent.Request{}, nil, `a message has the role "", which the chat format does not have`},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", good))
			change := c.change
			if change == nil {
				change = func(*openai.Config) {}
			}
			d := newDriver(t, endpoint.URL, change)
			s := agent.NewState(c.message).WithRequest(c.request)
			for _, ask := range []func() error{
				func() error { return d.Next(t.Context(), s).Error() },
				func() error { return d.Stream(t.Context(), s, func(agent.Delta) {}).Error() },
			} {
				err := ask()
				require.ErrorContains(t, err, c.says)
				assert.Equal(t, agent.KindBadRequest, agent.KindOf(err))
			}
			assert.Empty(t, endpoint.Requests())
		})
	}
}

// TestWithoutStreaming: before an endpoint that cannot stream, Stream tells of the
// whole.
func TestWithoutStreaming(t *testing.T) {
	endpoint := modeltest.Golden(t, modeltest.ReadReply(t, "testdata/replies/whole-calls.http"))
	d := newDriver(t, endpoint.URL, func(c *openai.Config) { c.Features = func(f *agent.Features) { f.Streaming = false } })
	var got pieces
	step, err := d.Stream(t.Context(), agent.NewState(agent.UserText("hello")), got.add).Get()
	require.NoError(t, err)
	got.check(t, step)
	assert.Equal(t, false, endpoint.Requests()[0].JSON(t)["stream"], "some services stream unless told otherwise")
}
