package service

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers"
)

// Vendor is whose service it is by default, and what it is called in
// the environment.
type Vendor struct {
	// URL is the vendor's base URL.
	URL string
	// Regions: hosts below the vendor's are the vendor's, too.
	Regions bool
	// BaseURL is the variable that names another base URL, Keys those that hold a key;
	// the first that does counts.
	BaseURL string
	Keys    []string
}

// Config is what a driver was told of its endpoint.
type Config struct {
	APIKey, BaseURL string
	// Token, when set, is asked for a token before each request, in place of a key.
	Token      drivers.TokenFunc
	Header     http.Header
	HTTPClient *http.Client
}

// Endpoint is where requests go and what they show there. A driver keeps none, as it
// would be printed with the driver.
type Endpoint struct {
	URL *url.URL
	// Vendor: it is the vendor itself, over https.
	Vendor bool
	// Trusted: what stands in the environment is for this endpoint, and nothing was
	// given instead.
	Trusted bool
	Key     string
	// Keyless: requests are sent with neither a key nor a token.
	Keyless bool
	// Client follows no redirect, which would take the key along.
	Client *http.Client
	// Redact takes everything secret out of a text.
	Redact func(text string) string
}

// Endpoint finds out where c points to, and joins all that is wrong with it. The
// environment's key is for the environment's URL and for the vendor's, and goes
// nowhere else.
func (v Vendor) Endpoint(c Config) (Endpoint, error) {
	base, from := c.BaseURL, "BaseURL"
	if base == "" {
		base, from = os.Getenv(v.BaseURL), v.BaseURL
	}
	ofEnvironment := c.BaseURL == "" && base != ""
	u, err := parseBase(from, lo.CoalesceOrEmpty(base, v.URL))
	if err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{URL: u, Vendor: v.is(u), Key: strings.TrimSpace(c.APIKey), Client: client(c.HTTPClient)}
	tokens := &secrets{}
	if c.Token != nil {
		if e.Key != "" {
			return Endpoint{}, errors.New("there are both a key and a token: leave one of them out")
		}
		e.Client = withToken(e.Client, c.Token, tokens)
	}
	if e.Trusted = e.Key == "" && c.Token == nil && (e.Vendor || ofEnvironment); e.Trusted {
		for _, name := range v.Keys {
			e.Key = lo.CoalesceOrEmpty(e.Key, strings.TrimSpace(os.Getenv(name)))
		}
	}
	e.Redact, e.Keyless = newRedactor(e, c.Header, tokens), e.Key == "" && c.Token == nil
	if e.Keyless && e.Vendor && c.Header.Get("Authorization") == "" {
		return e, fmt.Errorf("there is no key: set the environment variable %s, or Config.APIKey", v.Keys[0])
	}
	if hasControl(e.Key) {
		return e, errors.New("the key has a line break or a control character in it: copy it again")
	}
	return e, nil
}

// hasControl reports whether a text has a character in it that no header may have.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// parseBase reads a base URL. No error repeats it: there may be a password in it, or a
// key, wherever these were put.
func parseBase(from, base string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(strings.TrimSpace(base), "/"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is not a URL", from)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("%s is not the address of a service: begin with https:// or http://, and name a host", from)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s has a query or a fragment, which cannot be sent: leave it out", from)
	}
	return u, nil
}

func (v Vendor) is(u *url.URL) bool {
	host := strings.TrimPrefix(v.URL, "https://")
	host, _, _ = strings.Cut(host, "/")
	return u.Scheme == "https" && (u.Host == host || v.Regions && strings.HasSuffix(u.Host, "."+host))
}

// SafeURL returns the base URL without credentials.
func (e Endpoint) SafeURL() string {
	shown := *e.URL
	shown.User = nil
	return shown.String()
}

// DescribeConfig returns a driver's Config as it may be printed: without keys and headers.
func DescribeConfig(name, model, base string) string {
	shown := "a BaseURL that is not one"
	if base == "" {
		shown = "the usual BaseURL"
	} else if u, err := parseBase("", base); err == nil {
		shown = Endpoint{URL: u}.SafeURL()
	}
	return fmt.Sprintf("%s.Config{%q at %s}", name, model, shown)
}
