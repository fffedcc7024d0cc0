package approval

import (
	"net"
	"net/http"
	"strings"
)

// The host of a request is checked, so that a name of another site which points to this machine (DNS rebinding) does not
// reach the pages.

// hostOf returns the name or address of the host of a request, without the port.
func hostOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

// isOwnHost reports whether the host of a request is this server: a name of the loopback, the address of the connection, or
// the host of one of Options.Origins.
func (h *handler) isOwnHost(r *http.Request) bool {
	host := hostOf(r)
	if isLocalName(host) || h.hosts[host] {
		return true
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		if ip := net.ParseIP(host); ip != nil {
			return ip.Equal(at.IP)
		}
	}
	return false
}
