package approval

import (
	"net/url"
	"strings"
)

// Links is the base URL of the handler, such as "https://desk.example.com": the part of the links before "/approvals/".
type Links string

// To returns the link for a token.
func (l Links) To(token string) string {
	return strings.TrimRight(string(l), "/") + prefix + url.PathEscape(token)
}
