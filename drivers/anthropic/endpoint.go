package anthropic

import (
	"net/url"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

var vendor = service.Vendor{
	URL: "https://api.anthropic.com", BaseURL: "ANTHROPIC_BASE_URL", Keys: []string{"ANTHROPIC_API_KEY"},
}

func (c Config) endpoint() (service.Endpoint, error) {
	own := service.Config{APIKey: c.APIKey, BaseURL: c.BaseURL, Header: c.Header, HTTPClient: c.HTTPClient}
	if c.Vertex != nil {
		return service.VertexEndpoint(*c.Vertex, own)
	}
	return vendor.Endpoint(own)
}

// vertexVersion is Vertex AI's version of the Messages API. It replaces the model in the body; see
// https://docs.claude.com/en/api/claude-on-vertex-ai and the SDK's package vertex, which needs Google's libraries.
const vertexVersion = "vertex-2023-10-16"

// pathOf returns the path after the base URL for a model call.
func (c Config) pathOf(model string, stream bool) string {
	if c.Vertex == nil {
		return "v1/messages"
	}
	return service.VertexPath(*c.Vertex, "anthropic") + url.PathEscape(model) + lo.Ternary(stream, ":streamRawPredict", ":rawPredict")
}

// countPath returns the path after the base URL for counting tokens.
func (c Config) countPath() string {
	if c.Vertex == nil {
		return "v1/messages/count_tokens"
	}
	return service.VertexPath(*c.Vertex, "anthropic") + "count-tokens:rawPredict"
}

// options returns the options for every request. The SDK does not retry; processor.Retry does.
func (c Config) options(at service.Endpoint) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithEnvironmentProduction(), option.WithBaseURL(at.URL.String()), option.WithHTTPClient(at.Client),
		option.WithMaxRetries(0), option.WithMiddleware(service.CheckReply),
	}
	if at.Key != "" {
		opts = append(opts, option.WithAPIKey(at.Key))
	}
	for name, values := range c.Header {
		for i, value := range values {
			opts = append(opts, lo.Ternary(i == 0, option.WithHeader, option.WithHeaderAdd)(name, value))
		}
	}
	return opts
}
