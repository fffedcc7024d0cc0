// Package rates limits how often each client may send requests.
package rates

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits limits the requests of each client. It is safe for concurrent use.
type Limits struct {
	limit rate.Limit
	burst int

	mu        sync.Mutex
	all       map[string]*rate.Limiter
	forgotten time.Time // when clients were last forgotten
}

// New returns limits of requests a second, with a burst at once. Zero requests a second mean no limits.
func New(perSecond float64, burst int) *Limits {
	return &Limits{limit: rate.Limit(perSecond), burst: max(1, burst), all: map[string]*rate.Limiter{}}
}

// maxClients is how many clients have a limit of their own. Further ones share one.
const maxClients = 10_000

// Allow reports whether a client may send a request now, and counts it.
func (l *Limits) Allow(client string) bool {
	if l.limit <= 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[client] == nil && len(l.all) >= maxClients {
		l.forget(time.Now())
		if len(l.all) >= maxClients {
			client = ""
		}
	}
	limiter := l.all[client]
	if limiter == nil {
		limiter = rate.NewLimiter(l.limit, l.burst)
		l.all[client] = limiter
	}
	return limiter.Allow()
}

// forget forgets the clients that have sent nothing lately, at most once a second.
func (l *Limits) forget(now time.Time) {
	if now.Sub(l.forgotten) < time.Second {
		return
	}
	l.forgotten = now
	for client, limiter := range l.all {
		if limiter.TokensAt(now) >= float64(l.burst) {
			delete(l.all, client)
		}
	}
}

// AddressOf returns the address that a request came from: of IPv6, the network of one customer.
func AddressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Unmap().Is4() {
		return host
	}
	network, _ := ip.WithZone("").Prefix(64) // every IPv6 address has one
	return network.String()
}
