package anthropic

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers"
)

const (
	vendorHost = "api.anthropic.com"
	vendorURL  = "https://" + vendorHost
)

// endpoint is where requests go and what they show there.
type endpoint struct {
	url    *url.URL
	vendor bool // it is Anthropic itself
	key    string
}

// endpoint finds out where c points to. The environment's key is for the
// environment's URL and for the vendor's, and goes nowhere else.
func (c Config) endpoint() (endpoint, error) {
	base, ofEnvironment := c.BaseURL, false
	if base == "" {
		base = os.Getenv("ANTHROPIC_BASE_URL")
		ofEnvironment = base != ""
	}
	base = lo.CoalesceOrEmpty(base, vendorURL)
	from := lo.Ternary(ofEnvironment, "ANTHROPIC_BASE_URL", "BaseURL")
	u, err := url.Parse(strings.TrimSpace(base))
	switch {
	case err != nil:
		return endpoint{}, fmt.Errorf("%s is not a URL", from) // the error would show its password
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return endpoint{}, fmt.Errorf("%s %q is not the address of a service: begin with https:// or http://", from, u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return endpoint{}, fmt.Errorf("%s %q has a query or a fragment, which cannot be sent: leave it out", from, u.Redacted())
	}
	e := endpoint{url: u, vendor: u.Scheme == "https" && u.Host == vendorHost, key: strings.TrimSpace(c.APIKey)}
	if e.key == "" && (e.vendor || ofEnvironment) {
		e.key = strings.TrimSpace(os.Getenv("ANTHROPIC_API_KEY"))
	}
	if e.key == "" && e.vendor && c.Header.Get("Authorization") == "" {
		return endpoint{}, errors.New("there is no key: set the environment variable ANTHROPIC_API_KEY, or Config.APIKey")
	}
	if strings.ContainsFunc(e.key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return endpoint{}, errors.New("the key has a line break or a control character in it: copy it anew")
	}
	return e, nil
}

// options is what every request of the driver is sent with. A request is sent once:
// trying again is processor.Retry's affair.
func (e endpoint) options(c Config) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithEnvironmentProduction(), option.WithBaseURL(e.url.String()), option.WithHTTPClient(client(c.HTTPClient)),
		option.WithMaxRetries(0), option.WithMiddleware(refused),
	}
	if e.key != "" {
		opts = append(opts, option.WithAPIKey(e.key))
	}
	for name, values := range c.Header {
		for i, value := range values {
			opts = append(opts, lo.Ternary(i == 0, option.WithHeader, option.WithHeaderAdd)(name, value))
		}
	}
	return opts
}

// shown is the base URL without credentials.
func (e endpoint) shown() string {
	shown := *e.url
	shown.User = nil
	return strings.TrimSuffix(shown.String(), "/")
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

// redact takes the driver's secrets out of a text.
func (d *Driver) redact(text string) string {
	for _, secret := range d.secrets {
		text = drivers.Redact(text, secret)
	}
	return text
}

// client is what sends the requests: given, or our own. It does not follow redirects,
// which would take the key along to wherever they point.
func client(given *http.Client) *http.Client {
	own := *lo.CoalesceOrEmpty(given, ownClient())
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// ownClient is the client of all drivers that were given none, so that they share its
// connections. No limit is set on a whole call: that is the context's affair.
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
