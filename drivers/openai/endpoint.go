package openai

import (
	"net/url"
	"os"

	"github.com/openai/openai-go/v3/option"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

var vendor = service.Vendor{
	URL: "https://api.openai.com/v1", Regions: true, BaseURL: "OPENAI_BASE_URL", Keys: []string{"OPENAI_API_KEY"},
}

// globally reports whether an address is the vendor's own and not that of a region,
// which costs more.
func globally(u *url.URL) bool { return u.Scheme == "https" && u.Host == "api.openai.com" }

func (c Config) endpoint() (service.Endpoint, error) {
	return vendor.Endpoint(service.Config{APIKey: c.APIKey, BaseURL: c.BaseURL, Header: c.Header, HTTPClient: c.HTTPClient})
}

// options is what every request of the driver is sent with. A request is sent
// once: trying again is processor.Retry's affair.
func (c Config) options(at service.Endpoint) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithBaseURL(at.URL.String()), option.WithHTTPClient(at.Client), option.WithMaxRetries(0),
		option.WithMiddleware(service.Refused),
	}
	organization, project := c.Organization, c.Project
	if at.Trusted {
		organization = lo.CoalesceOrEmpty(organization, os.Getenv("OPENAI_ORG_ID"))
		project = lo.CoalesceOrEmpty(project, os.Getenv("OPENAI_PROJECT_ID"))
	}
	if at.Key != "" {
		opts = append(opts, option.WithAPIKey(at.Key))
	}
	if organization != "" {
		opts = append(opts, option.WithOrganization(organization))
	}
	if project != "" {
		opts = append(opts, option.WithProject(project))
	}
	for name, values := range c.Header {
		for i, value := range values {
			opts = append(opts, lo.Ternary(i == 0, option.WithHeader, option.WithHeaderAdd)(name, value))
		}
	}
	return opts
}
