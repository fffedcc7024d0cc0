package condition

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// urlFunctions returns the functions that split URLs. Text without a scheme or host is an error, because programs
// read it differently.
func urlFunctions() []Function {
	part := func(name string, result *cel.Type, of func(u *url.URL) ref.Val) Function {
		return onText(name, result, func(text string) (ref.Val, error) {
			u, err := wholeURL(text)
			if err != nil {
				return nil, err
			}
			return of(u), nil
		})
	}
	return []Function{
		part("url.host", cel.StringType, func(u *url.URL) ref.Val { return types.String(hostName(u)) }),
		part("url.scheme", cel.StringType, func(u *url.URL) ref.Val { return types.String(strings.ToLower(u.Scheme)) }),
		part("url.path", cel.StringType, func(u *url.URL) ref.Val { return types.String(u.Path) }),
		part("url.user", cel.StringType, func(u *url.URL) ref.Val { return types.String(u.User.Username()) }),
		part("url.query", cel.StringType, func(u *url.URL) ref.Val { return types.String(u.RawQuery) }),
		part("url.port", cel.IntType, func(u *url.URL) ref.Val { return types.Int(portOf(u)) }),
	}
}

func wholeURL(text string) (*url.URL, error) {
	if len(text) > 64<<10 {
		return nil, fmt.Errorf("the URL %q is too long", shortenText(text))
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", shortenText(text))
	case u.Scheme == "" || u.Hostname() == "":
		return nil, fmt.Errorf("%q is not a URL with a scheme and a host", shortenText(text))
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' || r <= ' ' || r == '\\' || r == '%' }) || hostName(u) == "":
		return nil, fmt.Errorf("programs read the host of %q differently", shortenText(text))
	}
	return u, nil
}

// hostName returns a URL's host like wholeHost; empty if that is an error.
func hostName(u *url.URL) string {
	host, _, _ := wholeHost(u.Hostname())
	return host
}

// defaultPorts holds the default port of each scheme.
var defaultPorts = map[string]int{"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ftps": 990, "ssh": 22, "git": 9418}

// portOf returns the port, the scheme's default port, or 0.
func portOf(u *url.URL) int {
	if n, err := strconv.Atoi(u.Port()); err == nil {
		return n
	}
	return defaultPorts[strings.ToLower(u.Scheme)]
}
