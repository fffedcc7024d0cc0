package condition

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// hostFunctions judge names and addresses of machines. Nobody is asked what a name stands for.
func hostFunctions() []Function {
	return []Function{
		matching("host.matches", true, hostMatches),
		onText("host.private", cel.BoolType, func(host string) (ref.Val, error) { return types.Bool(isPrivate(host)), nil }),
	}
}

// plainHost is a host in one way of writing: small letters, no dot at the end, no brackets, no port.
func plainHost(host string) string {
	host = strings.ToLower(strings.TrimSpace(host))
	if inside, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(inside, "]")
	} else if name, _, ok := strings.Cut(host, ":"); ok && strings.Count(host, ":") == 1 {
		host = name
	}
	host, _, _ = strings.Cut(host, "%") // the zone of an address
	return strings.TrimSuffix(host, ".")
}

// hostMatches compares a host with a name, an address, a network (10.0.0.0/8), or *.name for all names below one.
func hostMatches(host, pattern string) (bool, error) {
	host = plainHost(host)
	if below, ok := strings.CutPrefix(pattern, "*."); ok {
		return strings.HasSuffix(host, "."+strings.ToLower(below)), nil
	}
	if strings.Contains(pattern, "/") {
		network, err := netip.ParsePrefix(pattern)
		if err != nil {
			return false, fmt.Errorf("%q is no network", shortened(pattern))
		}
		address, ok := addressOf(host)
		return ok && network.Contains(address), nil
	}
	if strings.Contains(pattern, "*") && pattern != "*" {
		return false, fmt.Errorf("in the host pattern %q, * may only stand for all that comes before a dot: *.example.com", shortened(pattern))
	}
	if pattern == "*" || host == plainHost(pattern) {
		return true, nil
	}
	a, isAddress := addressOf(host)
	b, isToo := addressOf(plainHost(pattern))
	return isAddress && isToo && a == b, nil
}

// privateNetworks are those that netip has no word for.
var privateNetworks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
}

// isPrivate reports whether a host is this machine or one of a network that is not the internet: by its address, or by a
// name that only such have. A name without a dot is one.
func isPrivate(host string) bool {
	host = plainHost(host)
	a, ok := addressOf(host)
	if !ok {
		last := host[strings.LastIndexByte(host, '.')+1:]
		switch last {
		case host, "localhost", "local", "internal", "intranet", "lan", "home", "corp", "localdomain", "test":
			return true
		}
		return strings.HasSuffix(host, ".home.arpa")
	}
	if a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() || a.IsInterfaceLocalMulticast() {
		return true
	}
	for _, network := range privateNetworks {
		if network.Contains(a) {
			return true
		}
	}
	return false
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4 = netip.MustParsePrefix("2002::/16")
)

// addressOf is the address that a text is, in any way that programs read one: 127.1, 0x7f.1 and 2130706433 are 127.0.0.1,
// and so are the forms of IPv6 that hold it.
func addressOf(host string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap().WithZone("")
		bytes := a.As16()
		switch {
		case a.Is6() && nat64.Contains(a):
			return netip.AddrFrom4([4]byte(bytes[12:])), true
		case a.Is6() && sixTo4.Contains(a):
			return netip.AddrFrom4([4]byte(bytes[2:6])), true
		}
		return a, true
	}
	return oldAddress(host)
}

// oldAddress reads an address as inet_aton does: one to four numbers, each decimal, octal or hexadecimal, of which the
// last fills what is left.
func oldAddress(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var whole uint64
	for i, part := range parts {
		n, ok := oldNumber(part)
		most := uint64(255)
		if i == len(parts)-1 {
			most = 1<<(8*(5-len(parts))) - 1
		}
		if !ok || n > most {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			whole = whole<<(8*(5-len(parts))) | n
		} else {
			whole = whole<<8 | n
		}
	}
	return netip.AddrFrom4([4]byte{byte(whole >> 24), byte(whole >> 16), byte(whole >> 8), byte(whole)}), true
}

func oldNumber(text string) (uint64, bool) {
	base := 10
	switch {
	case strings.HasPrefix(text, "0x"):
		text, base = text[2:], 16
		if text == "" {
			return 0, true // as many read it
		}
	case len(text) > 1 && text[0] == '0':
		text, base = text[1:], 8
	}
	n, err := strconv.ParseUint(text, base, 33)
	return n, err == nil
}
