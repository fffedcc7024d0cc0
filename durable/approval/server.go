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

// Server serves Handler on an address of its own.
//
//	server := approval.Server{Store: store}
//	listener, err := server.Listen(ctx)
//	// …
//	links := approval.Links("http://" + listener.Addr().String())
//	err = server.Serve(ctx, listener) // until ctx is done
//
// It speaks HTTP without TLS, which is for this machine: put a proxy that speaks HTTPS
// before it when people elsewhere are to answer.
type Server struct {
	Options

	// Store is where the questions are; required.
	Store durable.Store
	// Address is where Listen listens, host and port. Empty means a free port of the
	// loopback.
	Address string
	// Remote lets it listen where other machines can reach it. A person who listens to the
	// line then reads the links.
	Remote bool
	// Timeout is how long a client may take to send a request, and as long again to read
	// the answer. Zero means 20 seconds.
	Timeout time.Duration
	// Grace is how long requests that are under way may go on when ctx is done. Zero
	// means five seconds.
	Grace time.Duration
}

// What a Server that says nothing means.
const (
	defaultTimeout = 20 * time.Second
	defaultGrace   = 5 * time.Second
	headerBytes    = 16 << 10
)

// Listen listens on the address of the server. An address that other machines can reach
// is refused unless Remote is set, before it is opened.
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

// resolveLoopback returns the address of a host, if it is one of the loopback.
func resolveLoopback(ctx context.Context, host string) (string, error) {
	if host == "" {
		return "", errReachable // it means every address
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

// Serve answers those who come until ctx is done, then lets what is under way end. It
// closes the listener, leaves no goroutine, and returns nil after ctx was done. A
// listener that other machines can reach is refused unless Remote is set.
func (s Server) Serve(ctx context.Context, l net.Listener) error {
	if at, ok := l.Addr().(*net.TCPAddr); ok && !s.Remote && !at.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("serving approvals on %s: %w", at, errReachable), l.Close())
	}
	timeout := cmp.Or(s.Timeout, defaultTimeout)
	server := &http.Server{
		Handler: Handler(s.Store, s.Options), MaxHeaderBytes: headerBytes,
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
		_ = server.Close() // those who are left had their time
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
