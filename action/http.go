package action

import (
	"cmp"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// HTTP is a request to a web service, whose answer is the action's. "webhook" is another word for it.
//
// The URL is https, or http on the loopback. Redirects are not followed, proxies not used, and a name that stands for a
// private address is refused unless Private lists it; that is looked at when the connection is made, so that a name
// cannot mean another thing by then.
type HTTP struct {
	// URL is where to. ${NAME} stands for one of the variables, escaped, behind the host, or for a secret anywhere.
	// Required.
	URL string
	// Method is POST if it is left out.
	Method string
	// Headers are sent along; values may name variables and secrets as the URL does.
	Headers map[string]string
	// Body is anything that can be JSON. ${NAME} in its strings stands for a variable and is put in as a value, so that
	// the body stays what it is; secrets are not for bodies. Nil means the Request.
	Body any
	// Fields, with no Body, are the members of the Request that are sent; version, hook and point always are. None means
	// all of them.
	Fields []string
	// Env names variables of this program's environment that URL and Headers may use besides Host.Secrets.
	Env []string
	// Private lists private addresses that may be reached: prefixes such as "10.1.0.0/16", or addresses.
	Private []string
	// Retries is how often more it is tried when there is no answer, or with 408, 429 or 5xx; RetryDelay is the time between.
	Retries    int
	RetryDelay time.Duration
	// Timeout is how long each try may take. Zero means 30 seconds.
	Timeout time.Duration
	// MaxBytes is how long the body may be, and the answer. Zero means DefaultMaxBytes.
	MaxBytes int
}

var _ Declared = HTTP{}

// Type returns "http".
func (HTTP) Type() string { return "http" }

// Limit returns how long Do may take.
func (h HTTP) Limit() time.Duration {
	try := cmp.Or(h.Timeout, defaultHTTPTimeout)
	return try + time.Duration(h.Retries)*(h.RetryDelay+try) + ending
}

// Validate finds what is wrong with it.
func (h HTTP) Validate() error {
	var p problems
	h.checkURL(&p)
	if !slices.Contains(methods, h.method()) {
		p.say("method", "%q is none that can be used: it is one of %s", h.Method, strings.Join(methods, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		h.checkHeader(&p, name, h.Headers[name])
	}
	if h.method() == http.MethodGet && (h.Body != nil || len(h.Fields) > 0) {
		p.say("body", "GET has no body: use another method, or the URL")
	}
	if h.Body != nil && len(h.Fields) > 0 {
		p.say("fields", "they choose from the request, which is not sent when there is a body: use one of both")
	}
	for _, field := range h.Fields {
		if !slices.Contains(requestMembers(), field) {
			p.say("fields", "there is no %q in a request: there are %s", field, strings.Join(requestMembers(), ", "))
		}
	}
	for _, text := range h.Private {
		if _, err := prefixOf(text); err != nil {
			p.say("private", "%q is no address and no prefix such as 10.1.0.0/16", text)
		}
	}
	if h.Retries < 0 || h.Retries > 100 {
		p.say("retries", "%d: it must be from 0 to 100", h.Retries)
	}
	p.body("body", h.Body)
	p.size("max_bytes", h.MaxBytes)
	p.times(map[string]time.Duration{"timeout": h.Timeout, "retry_delay": h.RetryDelay})
	return p.join()
}

// methods are what a request can be.
var methods = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet}

func (h HTTP) method() string { return cmp.Or(h.Method, http.MethodPost) }

// checkURL checks what can be known of the URL before the secrets are.
func (h HTTP) checkURL(p *problems) {
	t := wordingOf(h.URL)
	switch {
	case h.URL == "":
		p.say("url", "it is missing: say where to, such as https://hooks.example.com/x")
		return
	case strings.ContainsFunc(h.URL, isControl):
		p.say("url", "it has a line break or another control character in it")
		return
	}
	before, known := "", true
	for i, name := range t.names {
		before += t.pieces[i]
		switch {
		case behindHost(before):
		case isValue(name):
			p.say("url", "%s stands in the host, which no value of a run can choose", name)
			return
		default:
			known = false // a secret says where to: it is looked at when that is known
		}
		before += "x"
	}
	if _, err := parseTarget(before + t.pieces[len(t.pieces)-1]); err != nil && known {
		p.say("url", "%v", err)
	}
}

// checkHeader checks a header.
func (HTTP) checkHeader(p *problems, name, value string) {
	field := "headers." + name
	media, _, err := mime.ParseMediaType(value)
	switch {
	case !headerName.MatchString(name):
		p.say("headers", "%q is no name of a header", name)
	case slices.Contains(reserved, http.CanonicalHeaderKey(name)) || strings.HasPrefix(http.CanonicalHeaderKey(name), "Proxy-"):
		p.say(field, "it is HTTP's own business, and cannot be set")
	case http.CanonicalHeaderKey(name) == "Content-Type" && (err != nil || media != "application/json" && !strings.HasSuffix(media, "+json")):
		p.say(field, "the body is JSON: it is application/json, or ends in +json")
	case strings.ContainsFunc(value, isControl):
		p.say(field, "it has a line break or another control character in it")
	}
}

var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	reserved   = []string{
		"Connection", "Content-Encoding", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}
)

// Lint finds names in the body that stand for nothing.
func (h HTTP) Lint() []Warning {
	plain, err := plainJSON(h.Body)
	if err != nil {
		return nil
	}
	var all []Warning
	fillValue(plain, func(name string) (string, bool) {
		if !isValue(name) {
			all = append(all, Warning{Field: "body", Text: "${" + name + "}", Message: "${" + name + "} is none of the variables and stays as it stands: " +
				"secrets are for the URL and for headers"})
		}
		return "", false
	})
	return all
}
