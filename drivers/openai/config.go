package openai

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
	// APIKey is the key. Empty means OPENAI_API_KEY, which is only sent to the
	// vendor itself or to the URL that OPENAI_BASE_URL names: a BaseURL of one's own
	// gets the key that stands here, or none.
	APIKey string
	// Token, when set, is asked for a token before each request, in place of the key: one of
	// Microsoft Entra ID with the scope https://cognitiveservices.azure.com/.default, say.
	// With an APIKey beside it New returns an error.
	Token drivers.TokenFunc
	// BaseURL is where the service is, up to what stands before /chat/completions or
	// /responses: "http://localhost:11434/v1", "https://RESOURCE.openai.azure.com/openai/v1".
	// Empty means OPENAI_BASE_URL, and the vendor where that is empty, too.
	BaseURL string
	// APIVersion is the version of Azure's API for addresses that want one, such as
	// "2024-10-21": then BaseURL is the resource, "https://RESOURCE.openai.azure.com", and
	// the model the name of a deployment there. Empty is right for all other services, and
	// for Azure's v1 API.
	APIVersion string
	// Azure says that the service is Azure OpenAI at a host of one's own, such as a gateway: the key is sent as api-key
	// there, and requests have the vendor's format. Hosts of Azure, and an APIVersion, need it not.
	Azure bool
	// Organization and Project are whom the vendor charges, for keys that belong to
	// several. Empty means OPENAI_ORG_ID and OPENAI_PROJECT_ID where the key is from
	// the environment, too; otherwise the key's own.
	Organization, Project string
	// Header is sent with every request, for endpoints that want more than a key.
	// Its values are kept out of errors as the key is.
	Header http.Header
	// HTTPClient sends the requests. Nil means a client that honours the proxy
	// variables, gives up where no connection comes about or nothing is answered for
	// ten minutes, and else leaves it to the context to end a call. Redirects are not
	// followed, whatever the client says: they would take the key along.
	HTTPClient *http.Client
	// Prices says what a reply costs. None means ListPrices for api.openai.com, and
	// no known cost for other endpoints. What costs nothing has a price of zero.
	Prices mo.Option[drivers.Prices]
	// Features, when set, corrects what the driver says of itself and what it may be
	// asked. It is called once, by New, with what is usual for the endpoint; the model,
	// the endpoint and whether it is priced stay as they are.
	Features func(f *agent.Features)
	// Dialect is how the endpoint's chat format differs from the usual. NewResponses
	// ignores it.
	Dialect Dialect
}

// Format prints which model is asked, and where; neither keys nor headers, whatever
// the verb.
func (c Config) Format(to fmt.State, _ rune) {
	_, _ = io.WriteString(to, service.DescribeConfig("openai", c.Model, c.BaseURL))
}

// Dialect is how an endpoint's chat format differs from what is usual. The zero
// Dialect is right for OpenAI, Ollama, vLLM and llama.cpp.
type Dialect struct {
	// Instructions is the role that agent.Request.Instructions is sent in. Empty means
	// "system", which OpenAI takes for "developer" where a model knows only that.
	Instructions string
	// MaxTokens is the name that agent.Request.MaxOutputTokens has. Empty means
	// "max_completion_tokens" at OpenAI and "max_tokens" elsewhere.
	MaxTokens string
	// Reasoning is the name under which a reply's reasoning is sent back with the
	// message it belongs to, such as "reasoning_content". Empty means that it is not
	// sent back: some services refuse it, a few cannot do without.
	Reasoning string
	// NoStreamUsage: the endpoint refuses stream_options, by which it is told to count
	// the tokens of a streamed reply.
	NoStreamUsage bool
}
