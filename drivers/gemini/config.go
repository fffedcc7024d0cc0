package gemini

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
)

// vendor is where the service is when nobody says otherwise.
const vendor = "https://generativelanguage.googleapis.com"

// Config is what a driver is made of. Only Model is required, and a key where the
// vendor itself is asked.
type Config struct {
	// Model is the model that is asked when agent.Request.Model is empty, by its
	// name at the service: "gemini-3.8-flash". Required.
	Model string
	// APIKey is the key. Empty means GEMINI_API_KEY, and GOOGLE_API_KEY where that is
	// empty, too; they are only sent to the vendor itself or to the URL that
	// GOOGLE_GEMINI_BASE_URL names: a BaseURL of one's own gets the key that stands
	// here, or none.
	APIKey string
	// BaseURL is where the service is, up to what stands before /v1beta/models:
	// "http://localhost:4000". Empty means GOOGLE_GEMINI_BASE_URL, and the vendor
	// where that is empty, too.
	BaseURL string
	// Header is sent with every request, for endpoints that want more than a key.
	// Its values are kept out of errors as the key is.
	Header http.Header
	// HTTPClient sends the requests. Nil means a client that honours the proxy
	// variables, gives up where no connection comes about or nothing is answered for
	// ten minutes, and else leaves it to the context to end a call. Redirects are not
	// followed, whatever the client says: they would take the key along.
	HTTPClient *http.Client
	// Prices says what a reply costs. None means ListPrices for the vendor, and no
	// known cost for other endpoints. What costs nothing has a price of zero.
	Prices mo.Option[drivers.Prices]
	// Features, when set, corrects what the driver says of itself and what it may be
	// asked. It is called once, by New, with what is usual for the model; the model,
	// the endpoint and whether it is priced stay as they are.
	Features func(f *agent.Features)
}

// endpoint is where the service is and what it is shown.
type endpoint struct {
	base    string // without a slash at its end
	key     string
	header  http.Header
	client  *http.Client
	secrets []string // what no error repeats
}

// endpoint finds out where the service is, joining all that is wrong with the
// configuration.
func (c Config) endpoint() (endpoint, error) {
	e := endpoint{header: c.Header.Clone(), key: c.APIKey}
	env := strings.TrimRight(os.Getenv("GOOGLE_GEMINI_BASE_URL"), "/")
	own := strings.TrimRight(c.BaseURL, "/")
	e.base = cmp.Or(own, env, vendor)
	if e.key == "" && (own == "" || own == vendor || own == env) {
		e.key = cmp.Or(os.Getenv("GEMINI_API_KEY"), os.Getenv("GOOGLE_API_KEY"))
	}

	var wrong []error
	if c.Model == "" {
		wrong = append(wrong, errors.New(`no model: set Config.Model, to "gemini-3.8-flash" for example`))
	}
	if e.key == "" && e.vendor() && e.header.Get("Authorization") == "" {
		wrong = append(wrong, fmt.Errorf("no key for %s: set GEMINI_API_KEY or Config.APIKey", vendor))
	}
	if u, err := url.Parse(e.base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// What does not parse may hold a password anywhere: it is not repeated.
		wrong = append(wrong, errors.New("the base URL is not one: it must begin with http:// or https:// and name a host"))
	} else if u.RawQuery != "" || u.Fragment != "" {
		wrong = append(wrong, errors.New("the base URL has a query: put what the service wants to know into Config.Header"))
	} else if password, ok := u.User.Password(); ok {
		e.secrets = append(e.secrets, password)
	}
	e.secrets = append(e.secrets, e.key)
	for _, values := range e.header {
		for _, value := range values {
			e.secrets = append(e.secrets, value, strings.TrimPrefix(value, "Bearer "))
		}
	}
	client := *cmp.Or(c.HTTPClient, sharedClient())
	client.Transport = &transport{base: client.Transport, key: e.key, header: e.header}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e.client = &client
	return e, errors.Join(wrong...)
}

// vendor reports whether the vendor itself is asked.
func (e endpoint) vendor() bool { return e.base == vendor }

// shown is the base URL without credentials.
func (e endpoint) shown() string {
	u, err := url.Parse(e.base)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// redact takes everything secret out of a text.
func (e endpoint) redact(text string) string {
	for _, secret := range e.secrets {
		text = drivers.Redact(text, secret)
	}
	return text
}

// sharedClient is the client of all drivers that were not given one, so that they
// share connections.
var sharedClient = sync.OnceValue(func() *http.Client {
	usual, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return &http.Client{} // the program has put something of its own in its place
	}
	usual = usual.Clone()
	usual.ResponseHeaderTimeout = 10 * time.Minute
	return &http.Client{Transport: usual}
})
