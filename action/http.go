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

// HTTP sends a request to a web service. The response is the action's answer. "webhook" is an alias in files.
//
// The URL must use https, or http on the loopback interface. HTTP does not follow redirects and uses no proxies. It
// refuses host names that resolve to private addresses unless Private lists them. It checks the address when it
// connects, so that the name cannot resolve differently afterwards.
type HTTP struct {
	// URL is the target. ${NAME} after the host stands for a variable, which is escaped. Anywhere in the URL it may
	// stand for a secret. Required.
	URL string
	// Method defaults to POST.
	Method string
	// Headers are the request headers. Their values may name variables and secrets as the URL does.
	Headers map[string]string
	// Body is any value that can be encoded as JSON. ${NAME} in its strings stands for a variable. A variable is
	// inserted as a value and cannot change the structure. A body cannot contain secrets. Nil sends the Request.
	Body any
	// Fields selects the Request members to send when there is no Body. The members version, hook and point are always
	// sent. Empty means all members.
	Fields []string
	// Env lists environment variables of this program that URL and Headers may use in addition to Host.Secrets.
	Env []string
	// Private lists the private addresses that may be reached, as addresses or prefixes such as "10.1.0.0/16".
	Private []string
	// Retries is the number of retries after a connection error or a status of 408, 429 or 5xx. RetryDelay is the pause
	// between tries.
	Retries    int
	RetryDelay time.Duration
	// Timeout is the time limit for each try. Zero means 30 seconds.
	Timeout time.Duration
	// MaxBytes limits the request body and the response body, each. Zero means DefaultMaxBytes.
	MaxBytes int
}

var _ Declared = HTTP{}

// Type returns "http".
func (HTTP) Type() string { return "http" }

// Limit returns the longest time that Do may take.
func (h HTTP) Limit() time.Duration {
	try := cmp.Or(h.Timeout, defaultHTTPTimeout)
	return try + time.Duration(h.Retries)*(h.RetryDelay+try) + ending
}

// Validate returns an error for each invalid field.
func (h HTTP) Validate() error {
	var p problems
	h.checkURL(&p)
	if !slices.Contains(methods, h.method()) {
		p.say("method", "unknown method %q: expected one of %s", h.Method, strings.Join(methods, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		h.checkHeader(&p, name, h.Headers[name])
	}
	if h.method() == http.MethodGet && (h.Body != nil || len(h.Fields) > 0) {
		p.say("body", "GET has no body: use another method, or the URL")
	}
	if h.Body != nil && len(h.Fields) > 0 {
		p.say("fields", "not allowed with body: fields select members of the request, which is not sent")
	}
	for _, field := range h.Fields {
		if !slices.Contains(requestMembers(), field) {
			p.say("fields", "unknown field %q: a request has %s", field, strings.Join(requestMembers(), ", "))
		}
	}
	for _, text := range h.Private {
		if _, err := prefixOf(text); err != nil {
			p.say("private", "%q is not an address or a prefix such as 10.1.0.0/16", text)
		}
	}
	if h.Retries < 0 || h.Retries > 100 {
		p.say("retries", "%d is out of range: expected 0 to 100", h.Retries)
	}
	p.body("body", h.Body)
	p.size("max_bytes", h.MaxBytes)
	p.times(map[string]time.Duration{"timeout": h.Timeout, "retry_delay": h.RetryDelay})
	return p.join()
}

var methods = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet}

func (h HTTP) method() string { return cmp.Or(h.Method, http.MethodPost) }

// checkURL checks the URL's parts that do not depend on secrets.
func (h HTTP) checkURL(p *problems) {
	t := wordingOf(h.URL)
	switch {
	case h.URL == "":
		p.say("url", "missing: set the target, such as https://hooks.example.com/x")
		return
	case strings.ContainsFunc(h.URL, isControl):
		p.say("url", "contains a line break or another control character")
		return
	}
	before, known := "", true
	for i, name := range t.names {
		before += t.pieces[i]
		switch {
		case behindHost(before):
		case isValue(name):
			p.say("url", "%s is in the host, where values of a run are not allowed", name)
			return
		default:
			known = false // the host is a secret, checked when it is read
		}
		before += "x"
	}
	if _, err := parseTarget(before + t.pieces[len(t.pieces)-1]); err != nil && known {
		p.say("url", "%v", err)
	}
}

func (HTTP) checkHeader(p *problems, name, value string) {
	field := "headers." + name
	media, _, err := mime.ParseMediaType(value)
	switch {
	case !headerName.MatchString(name):
		p.say("headers", "%q is not a valid header name", name)
	case slices.Contains(reserved, http.CanonicalHeaderKey(name)) || strings.HasPrefix(http.CanonicalHeaderKey(name), "Proxy-"):
		p.say(field, "set by the HTTP client: remove it")
	case http.CanonicalHeaderKey(name) == "Content-Type" && (err != nil || media != "application/json" && !strings.HasSuffix(media, "+json")):
		p.say(field, "the body is JSON: expected application/json or a type that ends in +json")
	case strings.ContainsFunc(value, isControl):
		p.say(field, "contains a line break or another control character")
	}
}

var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	reserved   = []string{
		"Connection", "Content-Encoding", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}
)

// Lint returns a warning for each undefined name in the body.
func (h HTTP) Lint() []Warning {
	plain, err := plainJSON(h.Body)
	if err != nil {
		return nil
	}
	var all []Warning
	fillValue(plain, func(name string) (string, bool) {
		if !isValue(name) {
			all = append(all, Warning{Field: "body", Text: "${" + name + "}", Message: "${" + name + "} is not a variable and is sent unchanged: " +
				"use secrets only in the URL and in headers"})
		}
		return "", false
	})
	return all
}
