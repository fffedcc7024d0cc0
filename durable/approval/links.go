package approval

import (
	"net/url"
	"strings"
)

// Links is where the handler is served, such as "https://desk.example.com": what stands
// before "/approvals/" in the links that people get.
type Links string

// To returns the link that a token opens.
func (l Links) To(token string) string {
	return strings.TrimRight(string(l), "/") + prefix + url.PathEscape(token)
}
