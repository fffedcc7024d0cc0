package gemini

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// Config configures a driver. Model is required. The vendor's own service also requires a key.
type Config struct {
	// Model is the service's name for the model to use when agent.Request.Model is empty: "gemini-3.8-flash". Required.
	Model string
	// APIKey is the key. Empty means GEMINI_API_KEY, or GOOGLE_API_KEY if that is empty, too. Keys from the environment
	// are sent only to the vendor itself or to the URL in GOOGLE_GEMINI_BASE_URL. A BaseURL in this Config gets only
	// this Config's APIKey.
	APIKey string
	// BaseURL is the service's address without /v1beta/models: "http://localhost:4000". Empty means
	// GOOGLE_GEMINI_BASE_URL, or the vendor if that is empty, too.
	BaseURL string
	// Vertex, when set, selects Vertex AI instead of the Gemini API, with a token instead of
	// a key. A BaseURL is then the address without /v1/projects, and the environment is not
	// read.
	Vertex *drivers.Vertex
	// Header is sent with every request, for endpoints that require more headers than the key. Errors show
	// neither its values nor the key.
	Header http.Header
	// HTTPClient sends the requests. Nil means a client that honors the proxy variables. It fails if it cannot connect
	// or gets no answer for ten minutes, and otherwise runs until the context ends. Redirects are never followed,
	// because they would pass the key on.
	HTTPClient *http.Client
	// Prices are the prices for replies. Nil means ListPrices for the vendor, and an unknown cost for other endpoints.
	// A free model has a price of zero.
	Prices *drivers.Prices
	// Features, when set, corrects the driver's features. New calls it once, with the model's usual features. It cannot
	// change Model, Endpoint and Priced.
	Features func(f *agent.Features)
}

// Format prints the model and the endpoint, but neither keys nor headers, for every verb.
func (c Config) Format(to fmt.State, _ rune) {
	_, _ = io.WriteString(to, service.DescribeConfig("gemini", c.Model, c.BaseURL))
}

var vendor = service.Vendor{
	URL: "https://generativelanguage.googleapis.com", BaseURL: "GOOGLE_GEMINI_BASE_URL",
	Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
}

func (c Config) endpoint() (service.Endpoint, error) {
	own := service.Config{APIKey: c.APIKey, BaseURL: c.BaseURL, Header: c.Header, HTTPClient: c.HTTPClient}
	if c.Vertex != nil {
		return service.VertexEndpoint(*c.Vertex, own)
	}
	return vendor.Endpoint(own)
}

// pathOf returns the path after the base URL for a model call, without the method. On Vertex AI, a model name can also
// be a full path, for example a tuned model's: projects/…/endpoints/….
func (c Config) pathOf(model string) string {
	switch {
	case c.Vertex == nil:
		return "v1beta/" + modelPath(model)
	case strings.HasPrefix(model, "projects/"):
		return "v1/" + model
	}
	return service.VertexPath(*c.Vertex, "google") + bareModel(model)
}
