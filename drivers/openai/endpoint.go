package openai

import (
	"net/http"
	"net/url"
	"os"

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

// ownHeader returns what the driver itself sends with every request.
func (c Config) ownHeader(at service.Endpoint) http.Header {
	organization, project := c.Organization, c.Project
	if at.Trusted {
		organization = lo.CoalesceOrEmpty(organization, os.Getenv("OPENAI_ORG_ID"))
		project = lo.CoalesceOrEmpty(project, os.Getenv("OPENAI_PROJECT_ID"))
	}
	own := http.Header{}
	if at.Key != "" {
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
