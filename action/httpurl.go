package action

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// parseTarget parses a URL and checks that it can be called. The error contains no part of the URL.
func parseTarget(text string) (*url.URL, error) {
	to, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("not a valid URL")
	case to.Scheme != "https" && to.Scheme != "http" || to.Opaque != "":
		return nil, errors.New("must begin with https://, or with http:// for a loopback address")
	case to.Hostname() == "":
		return nil, errors.New("missing host")
	case to.User != nil:
		return nil, errors.New("contains a user name: use a header, with the secret in the environment")
	case to.Scheme == "http" && !isLoopback(to.Hostname()):
		return nil, errors.New("http is allowed only for loopback addresses: use https")
	}
	to.Fragment = ""
	return to, nil
}

// isLoopback reports whether a host name or address is the loopback. It does not resolve names.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// refusedError is returned when the dialer refuses a connection to addr.
type refusedError struct{ addr netip.Addr }

func (e *refusedError) Error() string {
	return fmt.Sprintf("the host resolves to %s, which is not a public address: list it under private to allow it", e.addr)
}

// unpublic lists local, private and reserved addresses, and notations that embed such an address.
var unpublic = parsePrefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16",
	"fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

func parsePrefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// prefixOf parses a prefix or an address.
func prefixOf(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// newDialer returns the dial function for a URL. It checks the resolved address when it connects, so that the name
// cannot resolve differently afterwards.
func newDialer(to *url.URL, private []netip.Prefix) func(ctx context.Context, network, address string) (net.Conn, error) {
	local := isLoopback(to.Hostname())
	dialer := net.Dialer{
		Timeout: 10 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			resolved, err := netip.ParseAddrPort(address)
			if err != nil {
				return errors.New("the host resolves to no IP address")
			}
			return checkAddress(resolved.Addr(), local, to.Scheme == "https", private)
		},
	}
	return dialer.DialContext
}

// checkAddress returns an error if connections to addr are not allowed. Set local when the URL names this machine.
func checkAddress(addr netip.Addr, local, encrypted bool, private []netip.Prefix) error {
	addr = addr.Unmap().WithZone("")
	switch {
	case local && addr.IsLoopback():
		return nil
	case !encrypted:
		return &refusedError{addr}
	}
	for _, p := range private {
		if p.Contains(addr) {
			return nil
		}
	}
	for _, p := range unpublic {
		if p.Contains(addr) {
			return &refusedError{addr}
		}
	}
	return nil
}
