package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// Error describes a server's failure, in words that a model can act on. It never contains values of the server's
// headers or variables. It is immutable.
type Error struct {
	Server string
	// Tool is the server's own name for the called tool. It is empty if no tool was called.
	Tool string
	// Lost reports that a call was sent and no readable answer came, mostly because the connection ended. The call may
	// or may not have taken effect.
	Lost bool
	// Kind is the error's kind.
	Kind agent.ErrorKind

	doing, text string
	cause       error // a context's error, never the server's
}

func (e *Error) Error() string {
	if e.Tool != "" {
		return fmt.Sprintf("%s tool %q of mcp server %q: %s", e.doing, shortenText(e.Tool), e.Server, e.text)
	}
	return fmt.Sprintf("%s mcp server %q: %s", e.doing, e.Server, e.text)
}

// ErrorKind returns Kind.
func (e *Error) ErrorKind() agent.ErrorKind { return e.Kind }

// Unwrap returns the caller's context error if it ended the call.
func (e *Error) Unwrap() error { return e.cause }

// errorOf makes an Error from err, followed by advice and by the server's last output, if any.
func (s Server) errorOf(doing, tool string, err error, advice, said string) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		again := *known
		again.Tool, again.doing, again.text = tool, doing, known.doing+" it again: "+known.text
		return &again
	}
	e := &Error{Server: s.Name, Tool: tool, Kind: agent.KindTool, doing: doing}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			e.cause = known
		}
	}
	if e.cause == context.DeadlineExceeded { //nolint:errorlint // set three lines above
		e.Kind = agent.KindTimeout
	}
	e.text = s.scrubText(plumbing.Replace(strings.Join(lo.Compact([]string{err.Error(), advice}), ": ")))
	if said != "" {
		e.text += fmt.Sprintf("; it said: %q", s.scrubText(said))
	}
	return e
}

// plumbing removes text about the SDK's internals, which does not help to find the problem.
var plumbing = strings.NewReplacer(
	`calling "tools/call": `, "", `sending "tools/call": `, "", `calling "tools/list": `, "", `sending "tools/list": `, "",
	`calling "initialize": `, "", `sending "initialize": `, "", `rejected by transport: `, "", `: rejected by transport`, "",
)

// maxSaid is the maximum length of a server's text in an error.
const maxSaid = 2 << 10

func shortenText(text string) string {
	if len(text) <= maxSaid {
		return text
	}
	return strings.ToValidUTF8(text[:maxSaid], "") + "…"
}

// scrubText returns a shortened text without the server's secrets.
func (s Server) scrubText(text string) string {
	for _, secret := range s.secrets() {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	return shortenText(strings.ToValidUTF8(text, "\uFFFD"))
}

// secrets returns the values that an error must not show, long values first: header values with and without their
// scheme, the URL's password and query, and the variables that Inherit and Env pass on. It omits short values, because
// they would match everywhere.
func (s Server) secrets() []string {
	var all []string
	for _, values := range s.Headers {
		for _, value := range values {
			_, withoutScheme, _ := strings.Cut(value, " ")
			all = append(all, value, withoutScheme)
		}
	}
	all = append(all, lo.Values(s.Env)...)
	for _, name := range lo.Without(s.Inherit, DefaultInherit()...) {
		all = append(all, os.Getenv(name))
	}
	if u, err := url.Parse(s.URL); err == nil {
		all = append(all, u.RawQuery, u.User.String())
		password, _ := u.User.Password()
		all = append(all, password)
		for _, values := range u.Query() {
			all = append(all, values...)
		}
	}
	all = lo.Filter(all, func(value string, _ int) bool { return len(value) >= 6 })
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}
