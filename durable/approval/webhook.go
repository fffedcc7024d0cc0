package approval

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// Webhook is a notifier that posts a Message to a URL. It retries with the same body when there is no response or the
// status is 408, 429 or 5xx. Any 2xx is success; the response body is ignored. Redirects are not followed. Errors contain
// only the host of the URL, because the rest is often a secret.
//
// A run does not finish parking until Notify returns, so keep the total time of all tries short.
type Webhook struct {
	// URL is the target: https, or http on the loopback. Required.
	URL string
	// Links build the links. Required.
	Links Links
	// Header are the request headers. In their values $NAME and ${NAME} stand for environment variables listed in Env,
	// read at each notice.
	Header map[string]string
	// Env names the variables that Header may use.
	Env []string
	// Key, if not empty, signs the body: the header Grapnel-Signature is "sha256=" and the HMAC-SHA256 of the body with
	// this key, in hexadecimal.
	Key []byte
	// Tries is the maximum number of tries. Zero means four.
	Tries int
	// Timeout is the time limit of one try. Zero means ten seconds.
	Timeout time.Duration
	// Wait is the pause before the second try. It doubles with each try and is partly random. Zero means half a second.
	Wait time.Duration
	// Transport sends the request. Nil means a transport of its own.
	Transport http.RoundTripper
}

// The defaults of Webhook.
const (
	defaultTries = 4
	defaultPost  = 10 * time.Second
	defaultWait  = 500 * time.Millisecond
)

// SignatureHeader is the header that contains the signature of Webhook.
const SignatureHeader = "Grapnel-Signature"

// Signature returns the value of SignatureHeader for a body and a key. Compare it in constant time (hmac.Equal).
func Signature(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

var _ durable.Notifier = Webhook{}

// Notify posts the notice.
func (h Webhook) Notify(ctx context.Context, n durable.Notice) error {
	body, _, err := newMessage(n, h.Links)
	if err != nil || body == nil {
		return err
	}
	to, header, err := h.prepare()
	if err != nil {
		return fmt.Errorf("announcing that run %s waits: %w", n.Run.ID, err)
	}
	if len(h.Key) > 0 {
		header.Set(SignatureHeader, Signature(h.Key, body))
	}
	transport := h.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // net/http documents the type
		own.DisableKeepAlives = true
		transport = own
	}
	client := http.Client{
		Transport: transport, Timeout: cmp.Or(h.Timeout, defaultPost),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	tries, wait := max(1, cmp.Or(h.Tries, defaultTries)), cmp.Or(h.Wait, defaultWait)
	for try := 1; ; try++ {
		again, err := postOnce(ctx, &client, to, header, body)
		if err == nil {
			return nil
		}
		err = fmt.Errorf("announcing to %s that run %s waits, try %d of %d: %w", to.Host, n.Run.ID, try, tries, err)
		if !again || try == tries {
			return err
		}
		timer := time.NewTimer(wait/2 + rand.N(wait/2+1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, context.Cause(ctx))
		case <-timer.C:
		}
		wait *= 2
	}
}

// postOnce posts once. Again reports whether a retry may succeed.
func postOnce(ctx context.Context, client *http.Client, to *url.URL, header http.Header, body []byte) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return false, withoutURL(err)
	}
	request.Header = header.Clone()
	response, err := client.Do(request)
	if err != nil {
		return ctx.Err() == nil, withoutURL(err)
	}
	_ = response.Body.Close() // the response body is ignored
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return false, nil
	case code >= 300 && code < 400:
		return false, fmt.Errorf("status %d: redirects are not followed: set URL to the final address", code)
	default:
		again = code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
		return again, fmt.Errorf("status %d %s", code, http.StatusText(code))
	}
}

// withoutURL returns the error without the URL, which may be a secret.
func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// prepare returns the target URL and the headers.
func (h Webhook) prepare() (*url.URL, http.Header, error) {
	to, err := url.Parse(h.URL)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("Webhook.URL: %w", withoutURL(err))
	case to.Host == "" || to.Opaque != "" || to.Scheme != "https" && to.Scheme != "http":
		return nil, nil, errors.New("Webhook.URL: must begin with https:// and name a host")
	case to.User != nil:
		return nil, nil, errors.New("Webhook.URL: contains a user name: use Header, with the secret in the environment")
	case to.Scheme == "http" && !isLocalName(to.Hostname()):
		return nil, nil, fmt.Errorf("Webhook.URL: http is allowed only for loopback addresses: use https for %s", to.Host)
	}
	header := http.Header{"Content-Type": {mediaJSON}, "User-Agent": {"grapnel"}}
	for name, value := range h.Header {
		if !headerName.MatchString(name) || slices.Contains(reserved, http.CanonicalHeaderKey(name)) {
			return nil, nil, fmt.Errorf("Webhook.Header: %q cannot be set", name)
		}
		if value, err = h.expand(value); err != nil {
			return nil, nil, fmt.Errorf("Webhook.Header: %s: %w", name, err)
		}
		header.Set(name, value)
	}
	return to, header, nil
}

var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	// reserved are headers that the HTTP client or Webhook sets.
	reserved = []string{
		"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive", "Proxy-Connection",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", SignatureHeader,
	}
)

// expand returns the value of a header with its variables expanded.
func (h Webhook) expand(value string) (string, error) {
	var err error
	value = os.Expand(value, func(name string) string {
		set, ok := os.LookupEnv(name)
		switch {
		case !slices.Contains(h.Env, name):
			err = fmt.Errorf("variable %q is not one of Webhook.Env", name)
		case !ok:
			err = fmt.Errorf("variable %s is not set", name)
		}
		return set
	})
	if err == nil && strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		err = errors.New("contains a line break or another control character")
	}
	return value, err
}

// isLocalName reports whether a host name or address is the local machine, without looking it up, because the result
// could change.
func isLocalName(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
