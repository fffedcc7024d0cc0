package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// Server serves Handler, or another one, on its own address.
//
//	server := approval.Server{Store: store}
//	listener, err := server.Listen(ctx)
//	// …
//	links := approval.Links("http://" + listener.Addr().String())
//	err = server.Serve(ctx, listener) // until ctx is done
//
// It serves HTTP without TLS, which is only for the local machine. Put an HTTPS proxy in front of it for people on other
// machines.
type Server struct {
	Options

	// Store holds the questions. Required without Handler.
	Store durable.Store
	// Handler is what is served. Nil means Handler(Store, Options). Package coordinator/web has one with pages.
	Handler http.Handler
	// Address is the host and port to listen on. Empty means a free port of the loopback.
	Address string
	// Remote allows an address that other machines can reach. Without TLS, anyone on the network path can then read the
	// links.
	Remote bool
	// Timeout is the time limit for a client to send a request, and again for it to read the response. Zero means 20
	// seconds.
	Timeout time.Duration
	// Grace is the time that active requests get to finish when ctx is done. Zero means five seconds.
	Grace time.Duration
}

// The defaults of Server.
const (
	defaultTimeout = 20 * time.Second
	defaultGrace   = 5 * time.Second
	headerBytes    = 16 << 10
)

// Listen listens on the address of the server. It refuses an address that other machines can reach, before opening it,
// unless Remote is set.
func (s Server) Listen(ctx context.Context) (net.Listener, error) {
	address := cmp.Or(s.Address, "127.0.0.1:0")
	fail := func(err error) (net.Listener, error) {
		return nil, fmt.Errorf("listening for approvals on %s: %w", address, err)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fail(err)
	}
	if !s.Remote {
		if host, err = resolveLoopback(ctx, host); err != nil {
			return fail(err)
		}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fail(err)
	}
	return listener, nil
}

var errReachable = errors.New("other machines can reach this address: listen on 127.0.0.1, or set Remote to allow them")

// resolveLoopback returns the address of a host if it is a loopback address.
func resolveLoopback(ctx context.Context, host string) (string, error) {
	if host == "" {
		return "", errReachable // an empty host means all addresses
	}
	addresses, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return "", err
	}
	for _, a := range addresses {
		if !a.IP.IsLoopback() {
			return "", errReachable
		}
	}
	return addresses[0].String(), nil
}

// Serve serves requests until ctx is done, then waits for active requests. It closes the listener, leaves no goroutine,
// and returns nil after ctx was done. It refuses a listener that other machines can reach unless Remote is set.
func (s Server) Serve(ctx context.Context, l net.Listener) error {
	if at, ok := l.Addr().(*net.TCPAddr); ok && !s.Remote && !at.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("serving approvals on %s: %w", at, errReachable), l.Close())
	}
	timeout, handler := cmp.Or(s.Timeout, defaultTimeout), s.Handler
	if handler == nil {
		handler = Handler(s.Store, s.Options)
	}
	server := &http.Server{
		Handler: handler, MaxHeaderBytes: headerBytes,
		ReadHeaderTimeout: timeout, ReadTimeout: timeout, WriteTimeout: 2 * timeout, IdleTimeout: 2 * timeout,
		ErrorLog: s.errorLog(),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving approvals on %s: %w", l.Addr(), errors.Join(err, server.Close()))
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(s.Grace, defaultGrace))
	defer cancel()
	if server.Shutdown(grace) != nil {
		_ = server.Close() // the grace period of the remaining requests is over
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving approvals on %s: %w", l.Addr(), err)
	}
	return nil
}

func (s Server) errorLog() *log.Logger {
	if s.Log == nil {
		return slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	}
	return slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)
}
