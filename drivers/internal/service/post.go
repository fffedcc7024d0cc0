package service

import (
	"bytes"
	"context"
	"net/http"
)

// A PostFunc posts a JSON body to a path below an endpoint and asks for an answer of a media type. A status other than 2xx
// is a *RefusalError. The caller closes the body of the answer. It is safe for concurrent use, and prints no secret.
type PostFunc func(ctx context.Context, path, accept string, body []byte) (*http.Response, error)

// Poster returns a function that posts to the endpoint, once: to try again is the affair of processor.Retry. Own is what the
// driver sends with each request, the key included; what header says replaces it.
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
