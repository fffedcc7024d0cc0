package action

import (
	"cmp"
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
	// Retries is how often more it is tried when nobody answers, or with 408, 429 or 5xx; RetryDelay is the time between.
	Retries    int
	RetryDelay time.Duration
	// Timeout is how long each try may take. Zero means DefaultHTTPTimeout.
	Timeout time.Duration
	// MaxBytes is how long the body may be, and the answer. Zero means DefaultMaxBytes.
	MaxBytes int
}

var _ Declared = HTTP{}

// Type is "http".
func (HTTP) Type() string { return "http" }

// Limit is how long Do may take.
func (h HTTP) Limit() time.Duration {
	tries := time.Duration(h.Retries + 1)
	return tries*cmp.Or(h.Timeout, DefaultHTTPTimeout) + (tries-1)*h.RetryDelay + ending
}
