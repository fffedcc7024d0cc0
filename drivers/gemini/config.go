package gemini

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// Config is what a driver is made of. Only Model is required, and a key where the
// vendor itself is asked.
type Config struct {
	// Model is the model that is asked when agent.Request.Model is empty, by its
	// name at the service: "gemini-3.8-flash". Required.
	Model string
	// APIKey is the key. Empty means GEMINI_API_KEY, and GOOGLE_API_KEY where that is
	// empty, too; they are only sent to the vendor itself or to the URL that
	// GOOGLE_GEMINI_BASE_URL names: a BaseURL of one's own gets the key that stands
	// here, or none.
	APIKey string
	// BaseURL is where the service is, up to what stands before /v1beta/models:
	// "http://localhost:4000". Empty means GOOGLE_GEMINI_BASE_URL, and the vendor
	// where that is empty, too.
	BaseURL string
	// Vertex, when set, is where Vertex AI is asked instead of the Gemini API, with a token
	// and no key. A BaseURL is then what stands before /v1/projects, and the environment
	// is not read.
	Vertex *drivers.Vertex
	// Header is sent with every request, for endpoints that want more than a key.
	// Its values are kept out of errors as the key is.
	Header http.Header
	// HTTPClient sends the requests. Nil means a client that honours the proxy
	// variables, gives up where no connection comes about or nothing is answered for
	// ten minutes, and else leaves it to the context to end a call. Redirects are not
	// followed, whatever the client says: they would take the key along.
	HTTPClient *http.Client
	// Prices says what a reply costs. None means ListPrices for the vendor, and no
	// known cost for other endpoints. What costs nothing has a price of zero.
	Prices mo.Option[drivers.Prices]
	// Features, when set, corrects what the driver says of itself and what it may be
	// asked. It is called once, by New, with what is usual for the model; the model,
	// the endpoint and whether it is priced stay as they are.
	Features func(f *agent.Features)
}

// Format prints which model is asked, and where; neither keys nor headers, whatever
// the verb.
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

// pathOf returns what stands behind the base URL when a model is asked, up to the method. On Vertex AI a model may also be
// named by its whole path, as tuned ones are: projects/…/endpoints/….
func (c Config) pathOf(model string) string {
	switch {
	case c.Vertex == nil:
		return "v1beta/" + modelPath(model)
	case strings.HasPrefix(model, "projects/"):
		return "v1/" + model
	}
	return service.VertexPath(*c.Vertex, "google") + bareModel(model)
}
