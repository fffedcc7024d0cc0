package anthropic

import (
	"fmt"
	"io"
	"net/http"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// Config configures a driver. Model is required. The vendor's own service also requires a key.
type Config struct {
	// Model is the service's name for the model to use when agent.Request.Model is empty. Required.
	Model string
	// APIKey is the key. Empty means ANTHROPIC_API_KEY, which is sent only to the vendor itself or to the URL in
	// ANTHROPIC_BASE_URL. A BaseURL in this Config gets only this Config's APIKey.
	APIKey string
	// BaseURL is the service's address without /v1/messages: "http://localhost:4000". Empty means ANTHROPIC_BASE_URL,
	// or the vendor if that is empty, too.
	BaseURL string
	// Vertex, when set, selects Vertex AI instead of Anthropic, with a token instead of a key. Model is then the Vertex
	// AI name, such as "claude-sonnet-4-5@20250929". BaseURL is then the address without /v1/projects, and the
	// environment is not read.
	Vertex *drivers.Vertex
	// Header is sent with every request, for endpoints that require more headers than the key, or the key in another
	// header: Authorization, anthropic-beta. Errors show neither its values nor the key.
	Header http.Header
	// HTTPClient sends the requests. Nil means a client that honors the proxy variables. It fails if it cannot connect
	// or gets no answer for ten minutes, and otherwise runs until the context ends. Redirects are never followed,
	// because they would pass the key on.
	HTTPClient *http.Client
	// Cache says whether, and for how long, the service caches the prompt. The zero Cache
	// disables caching.
	Cache Cache
	// Prices are the prices for replies. Nil means ListPrices for api.anthropic.com, and an unknown cost for other
	// endpoints. A free model has a price of zero.
	Prices *drivers.Prices
	// Features, when set, corrects the driver's features. New calls it once, with the model's usual features. It cannot
	// change Model, Endpoint and Priced.
	Features func(f *agent.Features)
}

// Format prints the model and the endpoint, but neither keys nor headers, for every verb.
func (c Config) Format(to fmt.State, _ rune) {
	_, _ = io.WriteString(to, service.DescribeConfig("anthropic", c.Model, c.BaseURL))
}

// Cache says how long the service caches the prompt, so that the next step reads it for a fraction of the price.
// Writing to the cache costs a quarter more than uncached input; caching for an hour costs twice as much. The cache has
// two breakpoints: the end of the instructions (without instructions, the end of the tools), and the end of the
// messages.
type Cache string

// The durations for which the service caches the prompt.
const (
	// CacheOff disables caching.
	CacheOff Cache = ""
	// CacheShort caches for five minutes after the last use. It suits an agent whose steps follow each other directly.
	CacheShort Cache = "5m"
	// CacheLong caches for an hour, for agents that wait for people.
	CacheLong Cache = "1h"
)
