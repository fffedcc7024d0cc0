package anthropic

import (
	"fmt"
	"io"
	"net/http"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// Config is what a driver is made of. Only Model is required, and a key where the
// vendor itself is asked.
type Config struct {
	// Model is the model that is asked when agent.Request.Model is empty, by its
	// name at the service. Required.
	Model string
	// APIKey is the key. Empty means ANTHROPIC_API_KEY, which is only sent to the
	// vendor itself or to the URL that ANTHROPIC_BASE_URL names: a BaseURL of one's
	// own gets the key that stands here, or none.
	APIKey string
	// BaseURL is where the service is, up to what stands before /v1/messages:
	// "http://localhost:4000". Empty means ANTHROPIC_BASE_URL, and the vendor where
	// that is empty, too.
	BaseURL string
	// Vertex, when set, is where Vertex AI is asked for the model instead of Anthropic, with a
	// token and no key; the model has its name there, such as "claude-sonnet-4-5@20250929". A
	// BaseURL is then what stands before /v1/projects, and the environment is not read.
	Vertex *drivers.Vertex
	// Header is sent with every request, for endpoints that want more than a key, or
	// want it elsewhere: Authorization, anthropic-beta. Its values are kept out of
	// errors as the key is.
	Header http.Header
	// HTTPClient sends the requests. Nil means a client that honours the proxy
	// variables, gives up where no connection comes about or nothing is answered for
	// ten minutes, and else leaves it to the context to end a call. Redirects are not
	// followed, whatever the client says: they would take the key along.
	HTTPClient *http.Client
	// Cache says whether, and for how long, the service keeps what it has read. The
	// zero Cache does not ask it to.
	Cache Cache
	// Prices says what a reply costs. None means ListPrices for api.anthropic.com, and
	// no known cost for other endpoints. What costs nothing has a price of zero.
	Prices mo.Option[drivers.Prices]
	// Features, when set, corrects what the driver says of itself and what it may be
	// asked. It is called once, by New, with what is usual for the model; the model,
	// the endpoint and whether it is priced stay as they are.
	Features func(f *agent.Features)
}

// Format prints which model is asked, and where; neither keys nor headers, whatever
// the verb.
func (c Config) Format(to fmt.State, _ rune) {
	_, _ = io.WriteString(to, service.DescribeConfig("anthropic", c.Model, c.BaseURL))
}

// Cache is for how long the service keeps what it has read, so that the next step
// reads it for a fraction of the price; writing costs a quarter more than reading
// (an hour: twice as much). There are two places up to which is kept: the end of the
// instructions, or of the tools where there are none, and the end of the messages.
type Cache string

// How long the service may keep what it has read.
const (
	// CacheOff: not at all.
	CacheOff Cache = ""
	// CacheShort: for five minutes after it was last used, which is right for an
	// agent that takes a step after the other.
	CacheShort Cache = "5m"
	// CacheLong: for an hour, where a person answers in between.
	CacheLong Cache = "1h"
)
