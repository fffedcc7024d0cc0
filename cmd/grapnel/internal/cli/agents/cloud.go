package agents

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/drivers/openai"
)

// The variables of the clouds. Those without GRAPNEL in their names are also read by the vendors' own SDKs
// and tools.
const (
	azureEndpoint     = "AZURE_OPENAI_ENDPOINT"
	azureKey          = "AZURE_OPENAI_API_KEY"
	azureToken        = "AZURE_OPENAI_AD_TOKEN"       //nolint:gosec // a name, not a token
	azureTokenCommand = "GRAPNEL_AZURE_TOKEN_COMMAND" //nolint:gosec // likewise
	azureVersion      = "OPENAI_API_VERSION"

	vertexProject      = "GOOGLE_CLOUD_PROJECT"
	vertexLocation     = "GOOGLE_CLOUD_LOCATION"
	vertexBaseURL      = "GOOGLE_VERTEX_BASE_URL"
	vertexToken        = "GOOGLE_OAUTH_ACCESS_TOKEN"    //nolint:gosec // likewise
	vertexTokenCommand = "GRAPNEL_VERTEX_TOKEN_COMMAND" //nolint:gosec // likewise
)

// cloudSecrets are the variables that hold keys and tokens of clouds.
var cloudSecrets = []string{azureKey, azureToken, vertexToken}

// cloudModel is the part of a definition about a model in a cloud. For a user-defined address, the only
// secret from the environment is Key, which the definition names.
type cloudModel struct {
	agentfile.Model
	BaseURL, Key string
	Prices       *drivers.Prices
}

// setting returns the value of an environment variable, without surrounding space.
func setting(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// unset returns an error for a missing variable, with its meaning.
func unset(name, remedy string) error {
	return fmt.Errorf("%s is not set: set it to %s", name, remedy)
}

// azureDriver returns the driver for a deployment of Azure OpenAI.
func azureDriver(m cloudModel) (agent.Driver, error) {
	c := openai.Config{Model: m.Name, Azure: true, APIKey: m.Key, Prices: m.Prices}
	endpoint := cmp.Or(m.BaseURL, setting(azureEndpoint))
	c.BaseURL, c.APIVersion = azureAddress(endpoint, setting(azureVersion))
	var errs []error
	if endpoint == "" {
		errs = append(errs, unset(azureEndpoint, "the address of the resource, such as https://RESOURCE.openai.azure.com"))
	}
	if m.BaseURL == "" && m.Key == "" {
		token, err := tokenOf(azureToken, azureTokenCommand)
		c.Token = token
		if token == nil {
			c.APIKey = setting(azureKey)
		}
		if err == nil && token == nil && c.APIKey == "" {
			err = unset(azureKey, "a key of the resource, or "+azureToken+" to a token of Microsoft Entra ID, or "+azureTokenCommand+
				" to a command that prints one")
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("asking %s: %w", &m.Model, err)
	}
	if m.Provider == "azure-responses" {
		return driverOf(openai.NewResponses(c))
	}
	return driverOf(openai.New(c))
}

// azureAddress returns the base URL of a resource and its API version. With a dated version, the base URL is
// the endpoint; the v1 API, which has no version or one such as "preview", is below the endpoint.
func azureAddress(endpoint, version string) (base, apiVersion string) {
	base = strings.TrimRight(endpoint, "/")
	dated := version != "" && version[0] >= '0' && version[0] <= '9'
	if base == "" || dated || strings.HasSuffix(base, "/v1") {
		return base, version
	}
	return strings.TrimSuffix(base, "/openai") + "/openai/v1", version
}

// vertexDriver returns the driver for a model of Vertex AI.
func vertexDriver(m cloudModel) (agent.Driver, error) {
	claude := strings.HasPrefix(m.Name, "claude")
	var errs []error
	if !claude && !lo.SomeBy([]string{"gemini", "projects/"}, func(p string) bool { return strings.HasPrefix(m.Name, p) }) {
		errs = append(errs, errors.New("not a Gemini or Claude model: name one such as gemini-3.8-flash or claude-sonnet-5-5, "+
			"or an endpoint of a tuned model as projects/PROJECT/locations/LOCATION/endpoints/ID"))
	}
	at := &drivers.Vertex{Project: setting(vertexProject), Location: setting(vertexLocation)}
	if at.Project == "" {
		errs = append(errs, unset(vertexProject, "the id of a Google Cloud project"))
	}
	if at.Location == "" {
		errs = append(errs, unset(vertexLocation, "a region such as europe-west4, or global"))
	}
	base := cmp.Or(m.BaseURL, setting(vertexBaseURL))
	switch {
	case m.Key != "":
		at.Token = constantToken(m.Key)
	case m.BaseURL != "":
		errs = append(errs, errors.New("a custom base URL gets no token from the environment: name a variable with api_key_env, or set "+
			vertexBaseURL+" instead of the base URL"))
	default:
		token, err := tokenOf(vertexToken, vertexTokenCommand)
		if token == nil && err == nil {
			err = unset(vertexTokenCommand, "a command that prints a token, such as gcloud auth print-access-token, or "+vertexToken+" to a token")
		}
		at.Token = token
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("asking %s: %w", &m.Model, err)
	}
	if claude {
		return driverOf(anthropic.New(anthropic.Config{Model: m.Name, Vertex: at, BaseURL: base, Prices: m.Prices}))
	}
	return driverOf(gemini.New(gemini.Config{Model: m.Name, Vertex: at, BaseURL: base, Prices: m.Prices}))
}
