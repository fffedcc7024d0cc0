package condition

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/samber/lo"
)

// hostFunctions returns the functions that judge host names and addresses. They never query DNS.
func hostFunctions() []Function {
	return []Function{
		matching("host.matches", hostMatches),
		onText("host.private", cel.BoolType, func(text string) (ref.Val, error) {
			host, _, err := wholeHost(text)
			return types.Bool(err == nil && isPrivate(host)), err
		}),
	}
}

// hostForm matches a host: a name or an address, with an optional port. The character … stands for a part of a name
// that package bash does not know.
var hostForm = regexp.MustCompile(`^(?:\[([0-9a-f:.]+(?:%[0-9a-z._-]+)?)\]|([0-9a-z._…-]*))(?::([0-9]*))?$`)

// wholeHost returns a host in canonical form (lower case, without trailing dot, brackets and zone) and its port. Any
// other notation is an error: "good.com%2eevil.com" and "good.com:80@evil.com" lead to evil.com in programs that
// decode them or prepend "https://".
func wholeHost(text string) (host, port string, err error) {
	small := strings.ToLower(strings.TrimSpace(text))
	if address, err := netip.ParseAddr(small); err == nil {
		return address.WithZone("").String(), "", nil
	}
	m := hostForm.FindStringSubmatch(small)
	if m == nil {
		return "", "", fmt.Errorf("%q is not a plain host name or address, and programs read it differently", shortenText(text))
	}
	address, _, _ := strings.Cut(m[1], "%") // the zone
	return strings.TrimSuffix(address+m[2], "."), m[3], nil
}

// hostMatches compares a host with a name, an address, a network (10.0.0.0/8), or *.name, which stands for all names
// below name.
func hostMatches(text, pattern string) (bool, error) {
	host, _, err := wholeHost(text)
	if err != nil {
		return false, err
	}
	if strings.Contains(pattern, "/") {
		network, err := netip.ParsePrefix(pattern)
		if err != nil {
			return false, fmt.Errorf("%q is not a network", shortenText(pattern))
		}
		if network.Addr().Is4In6() && network.Bits() >= 96 {
			network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
		}
		address, ok := addressOf(host)
		return ok && network.Contains(address), nil
	}
	if pattern == "*" {
		return true, nil
	}
	name, below := strings.CutPrefix(pattern, "*.")
	if strings.Contains(name, "*") {
		return false, fmt.Errorf("host pattern %q: * is allowed only as the first label, as in *.example.com", shortenText(pattern))
	}
	wanted, port, err := wholeHost(name)
	switch {
	case err != nil:
		return false, fmt.Errorf("host pattern %q: expected a name or an address", shortenText(pattern))
	case port != "":
		return false, fmt.Errorf("host pattern %q: ports are not compared: use url.port", shortenText(pattern))
	case below:
		return strings.HasSuffix(host, "."+wanted), nil
	case host == wanted:
		return true, nil
	}
	a, isAddress := addressOf(host)
	b, isToo := addressOf(wanted)
	return isAddress && isToo && a == b, nil
}

// privateNetworks lists networks for which package netip has no method.
var privateNetworks = lo.Map([]string{
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"240.0.0.0/4", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10",
}, func(text string, _ int) netip.Prefix { return netip.MustParsePrefix(text) })

// isPrivate reports whether a host is this machine or belongs to a network other than the internet. It checks the
// address, or whether only such hosts have the name, such as one without a dot.
func isPrivate(host string) bool {
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
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	compatible = netip.MustParsePrefix("::/96")
	sixTo4     = netip.MustParsePrefix("2002::/16")
)

// addressOf parses an address in any notation that programs accept: 127.1, 0x7f.1 and 2130706433 are 127.0.0.1, and
// so are IPv6 addresses that embed it.
func addressOf(host string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap().WithZone("")
		bytes := a.As16()
		switch {
		case a.Is6() && (nat64.Contains(a) || compatible.Contains(a) && !a.IsLoopback() && !a.IsUnspecified()):
			return netip.AddrFrom4([4]byte(bytes[12:])), true
		case a.Is6() && sixTo4.Contains(a):
			return netip.AddrFrom4([4]byte(bytes[2:6])), true
		}
		return a, true
	}
	return oldAddress(host)
}

// oldAddress parses an address like inet_aton: one to four numbers, each decimal, octal or hexadecimal. The last
// number fills the remaining bytes.
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
			return 0, true // many programs accept this
		}
	case len(text) > 1 && text[0] == '0':
		text, base = text[1:], 8
	}
	n, err := strconv.ParseUint(text, base, 33)
	return n, err == nil
}
