package openai

import (
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

var vendor = service.Vendor{
	URL: "https://api.openai.com/v1", Regions: true, BaseURL: "OPENAI_BASE_URL", Keys: []string{"OPENAI_API_KEY"},
}

// azureHosts lists the suffixes of Azure OpenAI hosts.
var azureHosts = []string{
	".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com", ".openai.azure.us", ".openai.azure.cn",
}

// isAzure reports whether an address belongs to an Azure OpenAI resource.
func isAzure(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return lo.SomeBy(azureHosts, func(end string) bool { return strings.HasSuffix(host, end) })
}

// asksAzure reports whether an endpoint is Azure OpenAI.
func (c Config) asksAzure(at service.Endpoint) bool {
	return c.Azure || c.APIVersion != "" || isAzure(at.URL)
}

// globally reports whether an address is the vendor's global address. Regional addresses cost more.
func globally(u *url.URL) bool { return u.Scheme == "https" && u.Host == "api.openai.com" }

func (c Config) endpoint() (service.Endpoint, error) {
	return vendor.Endpoint(service.Config{
		APIKey: c.APIKey, BaseURL: c.BaseURL, Token: c.Token, Header: c.Header, HTTPClient: c.HTTPClient,
	})
}

// pathOf returns the path after the base URL for a model call. With an api-version, Azure has one address for each
// deployment, unless the base URL belongs to its v1 API.
func (c Config) pathOf(at service.Endpoint, api *api) func(model string) string {
	if c.APIVersion == "" {
		return func(string) string { return api.path }
	}
	query := "?api-version=" + url.QueryEscape(c.APIVersion)
	before := lo.Ternary(strings.HasSuffix(at.URL.Path, "/openai"), "", "openai/")
	switch {
	case strings.HasSuffix(at.URL.Path, "/v1"):
		return func(string) string { return api.path + query }
	case api.path == "responses":
		return func(string) string { return before + api.path + query }
	}
	return func(model string) string {
		return before + "deployments/" + url.PathEscape(model) + "/" + api.path + query
	}
}

// ownHeader returns the headers that the driver itself sends with every request.
func (c Config) ownHeader(at service.Endpoint) http.Header {
	organization, project := c.Organization, c.Project
	if at.Trusted {
		organization = lo.CoalesceOrEmpty(organization, os.Getenv("OPENAI_ORG_ID"))
		project = lo.CoalesceOrEmpty(project, os.Getenv("OPENAI_PROJECT_ID"))
	}
	own := http.Header{}
	switch {
	case at.Key == "":
	case c.asksAzure(at):
		own.Set("Api-Key", at.Key)
	default:
		own.Set("Authorization", "Bearer "+at.Key)
	}
	if organization != "" {
		own.Set("Openai-Organization", organization)
	}
	if project != "" {
		own.Set("Openai-Project", project)
	}
	return own
}
