package anthropic

import (
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

var vendor = service.Vendor{
	URL: "https://api.anthropic.com", BaseURL: "ANTHROPIC_BASE_URL", Keys: []string{"ANTHROPIC_API_KEY"},
}

func (c Config) endpoint() (service.Endpoint, error) {
	return vendor.Endpoint(service.Config{APIKey: c.APIKey, BaseURL: c.BaseURL, Header: c.Header, HTTPClient: c.HTTPClient})
}

// options is what every request of the driver is sent with. A request is sent once:
// trying again is processor.Retry's affair.
func (c Config) options(at service.Endpoint) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithEnvironmentProduction(), option.WithBaseURL(at.URL.String()), option.WithHTTPClient(at.Client),
		option.WithMaxRetries(0), option.WithMiddleware(service.Refused),
	}
	if at.Key != "" {
		opts = append(opts, option.WithAPIKey(at.Key))
	}
	for name, values := range c.Header {
		for i, value := range values {
			opts = append(opts, lo.Ternary(i == 0, option.WithHeader, option.WithHeaderAdd)(name, value))
		}
	}
	return opts
}
