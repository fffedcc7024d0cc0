package service

import (
	"bytes"
	"context"
	"net/http"
)

// A PostFunc posts a JSON body to a path below an endpoint and requests an answer in a media type. For a status other
// than 2xx, it returns a *RefusalError. The caller closes the answer's body. It is safe for concurrent use. Printing it
// does not show a secret.
type PostFunc func(ctx context.Context, path, accept string, body []byte) (*http.Response, error)

// Poster returns a function that posts to the endpoint and does not retry; processor.Retry does. own holds the driver's
// headers for each request, including the key. header overrides them.
func (e Endpoint) Poster(own, header http.Header) PostFunc {
	sent := http.Header{"Content-Type": {"application/json"}}
	for _, from := range []http.Header{own, header} {
		for name, values := range from {
			sent[http.CanonicalHeaderKey(name)] = values
		}
	}
	base, client := e.URL.String()+"/", e.Client
	return func(ctx context.Context, path, accept string, body []byte) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(body))
		if err != nil {
			return nil, &UnfitError{Err: err}
		}
		req.Header = sent.Clone()
		if req.Header.Get("Accept") == "" {
			req.Header.Set("Accept", accept)
		}
		res, err := CheckReply(req, client.Do)
		if err != nil {
			return nil, err
		}
		res.Body = Reply(res.Body)
		return res, nil
	}
}
