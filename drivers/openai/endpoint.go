package openai

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/samber/lo"
)

const (
	vendorHost = "api.openai.com"
	vendorURL  = "https://" + vendorHost + "/v1"
)

// endpoint is where requests go and who sends them.
type endpoint struct {
	url                   *url.URL
	vendor                bool // it is OpenAI itself, in whatever region
	key                   string
	organization, project string
}

// endpoint finds out where c points to. The environment's key is for the
// environment's URL and for the vendor's, and goes nowhere else.
func (c Config) endpoint() (endpoint, error) {
	base, ofEnvironment := c.BaseURL, false
	if base == "" {
		base = os.Getenv("OPENAI_BASE_URL")
		ofEnvironment = base != ""
	}
	base = lo.CoalesceOrEmpty(base, vendorURL)
	from := lo.Ternary(ofEnvironment, "OPENAI_BASE_URL", "BaseURL")
	u, err := url.Parse(strings.TrimSpace(base))
	switch {
	case err != nil:
		return endpoint{}, fmt.Errorf("%s is not a URL", from) // the error would show its password
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return endpoint{}, fmt.Errorf("%s %q is not the address of a service: begin with https:// or http://", from, u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return endpoint{}, fmt.Errorf("%s %q has a query or a fragment, which cannot be sent: leave it out", from, u.Redacted())
	}
	e := endpoint{
		url: u, vendor: u.Scheme == "https" && (u.Host == vendorHost || strings.HasSuffix(u.Host, "."+vendorHost)),
		key: strings.TrimSpace(c.APIKey), organization: c.Organization, project: c.Project,
	}
	if e.key == "" && (e.vendor || ofEnvironment) {
		e.key = strings.TrimSpace(os.Getenv("OPENAI_API_KEY"))
		e.organization = lo.CoalesceOrEmpty(e.organization, os.Getenv("OPENAI_ORG_ID"))
		e.project = lo.CoalesceOrEmpty(e.project, os.Getenv("OPENAI_PROJECT_ID"))
	}
	if e.key == "" && e.vendor && c.Header.Get("Authorization") == "" {
		return endpoint{}, errors.New("there is no key: set the environment variable OPENAI_API_KEY, or Config.APIKey")
	}
	if strings.ContainsFunc(e.key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return endpoint{}, errors.New("the key has a line break or a control character in it: copy it anew")
	}
	return e, nil
}

// options is what every request of the driver is sent with. A request is sent
// once: trying again is processor.Retry's affair.
func (e endpoint) options(c Config) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithBaseURL(e.url.String()),
		option.WithHTTPClient(lo.CoalesceOrEmpty(c.HTTPClient, ownClient())),
		option.WithMaxRetries(0),
		option.WithMiddleware(refused),
	}
	if e.key != "" {
		opts = append(opts, option.WithAPIKey(e.key))
	}
	if e.organization != "" {
		opts = append(opts, option.WithOrganization(e.organization))
	}
	if e.project != "" {
		opts = append(opts, option.WithProject(e.project))
	}
	for name, values := range c.Header {
		for i, value := range values {
			opts = append(opts, lo.Ternary(i == 0, option.WithHeader, option.WithHeaderAdd)(name, value))
		}
	}
	return opts
}

// secrets is what no error may show: the key, a password in the URL, the values of
// further headers that are long enough to be secrets.
func (e endpoint) secrets(c Config) []string {
	secrets := []string{e.key}
	if password, ok := e.url.User.Password(); ok {
		secrets = append(secrets, password)
	}
	for _, values := range c.Header {
		for _, value := range values {
			secrets = append(secrets, value, strings.TrimPrefix(value, "Bearer "))
		}
	}
	return lo.Filter(secrets, func(s string, _ int) bool { return len(s) >= 4 })
}

// ownClient is the client of all drivers that were given none, so that they share
// its connections. No limit is set on a whole call: that is the context's affair,
// and a reasoning model may be silent for minutes before it answers.
var ownClient = sync.OnceValue(func() *http.Client {
	shared, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // somebody wrapped it, to trace it for example
		return &http.Client{Transport: http.DefaultTransport}
	}
	t := shared.Clone() // with its proxy variables, and its limits on connecting
	t.ResponseHeaderTimeout = 10 * time.Minute
	t.MaxIdleConnsPerHost = 16
	return &http.Client{Transport: t}
})
