package openai

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
	// APIKey is the key. Empty means OPENAI_API_KEY, which is sent only to the vendor itself or to the URL in
	// OPENAI_BASE_URL. A BaseURL in this Config gets only this Config's APIKey.
	APIKey string
	// Token, when set, returns the token for each request. The token replaces the key. It can be a Microsoft Entra ID
	// token with the scope https://cognitiveservices.azure.com/.default. If APIKey is set, too, New returns an error.
	Token drivers.TokenFunc
	// BaseURL is the service's address without /chat/completions or /responses: "http://localhost:11434/v1",
	// "https://RESOURCE.openai.azure.com/openai/v1". Empty means OPENAI_BASE_URL, or the vendor if that is empty, too.
	BaseURL string
	// APIVersion is Azure's API version for addresses that require one, such as "2024-10-21". BaseURL is then the
	// resource's address, "https://RESOURCE.openai.azure.com", and Model the name of a deployment in it. Leave it empty
	// for all other services, and for Azure's v1 API.
	APIVersion string
	// Azure declares that the service is Azure OpenAI behind your own host, such as a gateway. The key is then sent as
	// api-key, and requests have the vendor's format. Hosts of Azure, or an APIVersion, do not need it.
	Azure bool
	// Organization and Project are the organization and the project that the vendor charges, for keys that belong to
	// several. Empty means OPENAI_ORG_ID and OPENAI_PROJECT_ID if the key is from the environment, too. Otherwise it
	// means the key's default.
	Organization, Project string
	// Header is sent with every request, for endpoints that require more headers than the key. Errors show neither
	// its values nor the key.
	Header http.Header
	// HTTPClient sends the requests. Nil means a client that honors the proxy variables. It fails if it cannot connect
	// or gets no answer for ten minutes, and otherwise runs until the context ends. Redirects are never followed,
	// because they would pass the key on.
	HTTPClient *http.Client
	// Prices are the prices for replies. Nil means ListPrices for api.openai.com, and an unknown cost for other
	// endpoints. A free model has a price of zero.
	Prices *drivers.Prices
	// Features, when set, corrects the driver's features. New calls it once, with the endpoint's usual features. It
	// cannot change Model, Endpoint and Priced.
	Features func(f *agent.Features)
	// Dialect describes how the endpoint's chat format differs from the usual one. NewResponses ignores it.
	Dialect Dialect
}

// Format prints the model and the endpoint, but neither keys nor headers, for every verb.
func (c Config) Format(to fmt.State, _ rune) {
	_, _ = io.WriteString(to, service.DescribeConfig("openai", c.Model, c.BaseURL))
}

// Dialect describes how an endpoint's chat format differs from the usual one. The zero Dialect is right for
// OpenAI, Ollama, vLLM and llama.cpp.
type Dialect struct {
	// Instructions is the role of the message with agent.Request.Instructions. Empty means "system", which
	// OpenAI converts to "developer" for models that know only that role.
	Instructions string
	// MaxTokens is the name of agent.Request.MaxOutputTokens in the request. Empty means
	// "max_completion_tokens" at OpenAI and "max_tokens" elsewhere.
	MaxTokens string
	// Reasoning is the name under which a reply's reasoning is sent back with its message, such as "reasoning_content".
	// Empty means that it is not sent back, because some services refuse it. A few require it.
	Reasoning string
	// NoStreamUsage omits stream_options, which requests the usage of a streamed reply, for endpoints that
	// refuse it.
	NoStreamUsage bool
}
