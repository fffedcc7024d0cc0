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

// Error says what went wrong with a server, in words that a model can act on. It never holds the values of the
// server's headers or variables. It does not change once made.
type Error struct {
	// Server is the server's name.
	Server string
	// Tool is the tool that was called, by the name that the server gives it; empty when none was.
	Tool string
	// Lost says that a call was sent and no answer came that can be read, mostly because the connection ended. The
	// call may or may not have taken effect.
	Lost bool
	// Kind is what sort of error it is.
	Kind agent.ErrorKind

	doing, text string
	cause       error // a context's, never the server's
}

func (e *Error) Error() string {
	if e.Tool != "" {
		return fmt.Sprintf("%s tool %q of mcp server %q: %s", e.doing, shortenText(e.Tool), e.Server, e.text)
	}
	return fmt.Sprintf("%s mcp server %q: %s", e.doing, e.Server, e.text)
}

// ErrorKind returns Kind.
func (e *Error) ErrorKind() agent.ErrorKind { return e.Kind }

// Unwrap returns why the caller gave up, where it did.
func (e *Error) Unwrap() error { return e.cause }

// errorOf makes an Error of err, with advice behind it. What a server said last is added where it said something.
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

// plumbing is what the SDK says of its own workings, which does not help to find out what is wrong.
var plumbing = strings.NewReplacer(
	`calling "tools/call": `, "", `sending "tools/call": `, "", `calling "tools/list": `, "", `sending "tools/list": `, "",
	`calling "initialize": `, "", `sending "initialize": `, "", `rejected by transport: `, "", `: rejected by transport`, "",
)

// The longest part of a text of the server's in an error.
const maxSaid = 2 << 10

// shortenText keeps a text of a server's readable.
func shortenText(text string) string {
	if len(text) <= maxSaid {
		return text
	}
	return strings.ToValidUTF8(text[:maxSaid], "") + "…"
}

// scrubText returns a text without the secrets of the server, and not too long.
func (s Server) scrubText(text string) string {
	for _, secret := range s.secrets() {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	return shortenText(strings.ToValidUTF8(text, "\uFFFD"))
}

// secrets returns the values that no error may show, long ones first: a header's also without its scheme, a URL's
// password and query, and the variables that were named to be passed on. What is short is no secret, and would turn up everywhere.
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
