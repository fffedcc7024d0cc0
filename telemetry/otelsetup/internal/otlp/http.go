package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// httpTransport posts messages to a signal's URL.
type httpTransport struct {
	settings

	client *http.Client
}

// post implements transport.
func (h *httpTransport) post(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	if h.gzip {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write(body)
		if err = errors.Join(err, z.Close()); err != nil {
			return false, 0, fmt.Errorf("compressing for %s: %w", h.shown, err)
		}
		body = packed.Bytes()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, fmt.Errorf("sending telemetry: %w", err)
	}
	req.Header = h.header.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	if h.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := h.client.Do(req)
	if err != nil {
		timeout, ok := errors.AsType[net.Error](err)
		return ok && timeout.Timeout() && ctx.Err() == nil, 0, fmt.Errorf("sending telemetry: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(res.Body, mostBytes))
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return again, retryAfter(res.Header), fmt.Errorf("sending telemetry to %s: %s: %s", h.shown, res.Status, strings.TrimSpace(string(said)))
	}
	if err == nil && res.Header.Get("Content-Type") == "application/x-protobuf" {
		err = partialError(said)
	}
	return false, 0, err
}

func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	return 0
}
