package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// serveHealth serves the health of a worker at a loopback address.
func serveHealth(ctx context.Context, address string, w *durable.Worker, log *Log) (stop func(), err error) {
	listener, err := ListenLocally(ctx, "--health", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) { showHealth(out, w.Health()) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = server.Serve(listener) }() // it ends with stop
	log.Note(fmt.Sprintf("Health: http://%s/healthz", listener.Addr()))
	return func() { _ = server.Close() }, nil
}

// showHealth writes the health: 200 while the worker works or drains and reaches its store, otherwise 503.
func showHealth(out http.ResponseWriter, h durable.WorkerHealth) {
	out.Header().Set("Content-Type", "application/json")
	out.Header().Set("Cache-Control", "no-store")
	if h.State == durable.WorkerStopped || h.Error != "" {
		out.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(out).Encode(h) //nolint:errchkjson // an error says that the client has gone
}

// ListenLocally listens at a loopback address, which a flag has given.
func ListenLocally(ctx context.Context, flag, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err == nil && host != "localhost" {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			err = errors.New("it must be a loopback address, such as localhost:8080")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%s %s: it is no loopback address", flag, address), listener.Close())
	}
	return listener, nil
}
