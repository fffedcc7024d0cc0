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

// Vendor describes a driver's default service and the names of its environment variables.
type Vendor struct {
	// URL is the vendor's base URL.
	URL string
	// Regions reports that subdomains of the vendor's host belong to the vendor, too.
	Regions bool
	// BaseURL is the variable for another base URL. Keys are the variables for a key; the first one that is set is
	// used.
	BaseURL string
	Keys    []string
}

// Config is the part of a driver's Config about its endpoint.
type Config struct {
	APIKey, BaseURL string
	// Token, when set, returns the token for each request. The token replaces the key.
	Token      drivers.TokenFunc
	Header     http.Header
	HTTPClient *http.Client
}

// Endpoint is a service's address and credentials. A driver does not store an Endpoint, because printing the driver
// would print the key.
type Endpoint struct {
	URL *url.URL
	// Vendor reports that the endpoint is the vendor itself, over https.
	Vendor bool
	// Trusted reports that environment variables are meant for this endpoint, and that c has no other values.
	Trusted bool
	Key     string
	// Keyless reports that requests have neither a key nor a token.
	Keyless bool
	// Client does not follow redirects, which would pass the key on.
	Client *http.Client
	// Redact removes secrets from a text.
	Redact func(text string) string
}

// Endpoint returns the endpoint for c, or joins all mistakes in c. A key from the environment is used only for the URL
// in the environment and for the vendor's URL.
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
			return Endpoint{}, errors.New("both a key and a token are set: leave one of them out")
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
		return e, fmt.Errorf("no key: set the environment variable %s, or Config.APIKey", v.Keys[0])
	}
	if hasControl(e.Key) {
		return e, errors.New("the key contains a line break or a control character: copy it again")
	}
	return e, nil
}

// hasControl reports whether a text contains a character that is not allowed in a header.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// parseBase parses a base URL. Its errors do not repeat the URL, which may contain a password or a key.
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

// DescribeConfig returns a driver's Config for printing: without keys and headers.
func DescribeConfig(name, model, base string) string {
	shown := "an invalid BaseURL"
	if base == "" {
		shown = "the usual BaseURL"
	} else if u, err := parseBase("", base); err == nil {
		shown = Endpoint{URL: u}.SafeURL()
	}
	return fmt.Sprintf("%s.Config{%q at %s}", name, model, shown)
}
