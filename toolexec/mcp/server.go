package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/toolexec"
)

const (
	// defaultConnectTimeout is how long a server has to start and to list its tools.
	defaultConnectTimeout = 30 * time.Second
	// defaultCallTimeout is how long one attempt at a tool call may take.
	defaultCallTimeout = 2 * time.Minute
	// defaultCloseGrace is the wait at each stage of ending a server.
	defaultCloseGrace = 2 * time.Second
	// defaultMaxMessageBytes is the longest message that is read.
	defaultMaxMessageBytes = 16 << 20
)

// DefaultInherit returns the environment variables that a server gets when Server.Inherit is nil. Programs use these
// variables to find other programs and their files. They are unlikely to be secret.
func DefaultInherit() []string {
	return []string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "SYSTEMROOT"}
}

// Server configures the connection to an MCP server: Name, and either Command or URL. Connect reads it and never
// changes it.
type Server struct {
	// Name is the part of the tools' names that identifies the server: at most 32 characters of [A-Za-z0-9_-],
	// without "__".
	Name string

	// Command starts a server that uses standard input and output. It is the program and its arguments, without a
	// shell.
	Command []string
	// Dir is the working directory. Empty means this process's directory.
	Dir string
	// Inherit names the environment variables that the server gets from this process. Nil means DefaultInherit, an
	// empty list none. Errors can show values of variables in DefaultInherit, but no other values, including values in
	// Env.
	Inherit []string
	// Env holds additional variables. They take precedence over inherited ones.
	Env map[string]string

	// URL is the address of a server that speaks streamable HTTP.
	URL string
	// Headers are sent with each request to the URL's origin, and to no other origin. Errors never show their values.
	Headers http.Header
	// HTTPClient makes the requests. Nil means a client of this package, which does not follow redirects to another
	// origin.
	HTTPClient *http.Client

	// Only and Except select tools by the server's own names, or by path.Match patterns. Only selects all tools if it
	// is empty. Except then excludes tools. A name without *, ? or [ that matches no tool is an error.
	Only, Except []string

	// Policy configures how the tools run. A zero Timeout means two minutes, less than zero means no limit. Without
	// Retry.Attempts, a tool that declares itself read-only or idempotent gets a second attempt when the answer was
	// lost: see Error.Lost.
	Policy toolexec.Policy
	// ConnectTimeout limits starting, initializing and listing, at Connect and at each reconnect. Zero means 30
	// seconds. Less than zero means no limit.
	ConnectTimeout time.Duration
	// CloseGrace is how long Close waits for a process after closing its input, and again after SIGTERM, before it
	// kills the process. Zero means two seconds. Less than zero means that it kills the process immediately.
	CloseGrace time.Duration
	// MaxMessageBytes is the maximum size of a message or a tool list. A larger one closes the connection. Zero means
	// 16 MiB.
	MaxMessageBytes int
}

// withDefaults returns a deep copy of the server with defaults for its zero fields.
func (s Server) withDefaults() Server {
	s.ConnectTimeout = cmp.Or(s.ConnectTimeout, defaultConnectTimeout)
	s.CloseGrace = max(0, cmp.Or(s.CloseGrace, defaultCloseGrace))
	s.MaxMessageBytes = cmp.Or(max(0, s.MaxMessageBytes), defaultMaxMessageBytes)
	s.Policy.Timeout = cmp.Or(s.Policy.Timeout, defaultCallTimeout)
	if s.Inherit == nil {
		s.Inherit = DefaultInherit()
	}
	s.Command, s.Inherit = slices.Clone(s.Command), slices.Clone(s.Inherit)
	s.Only, s.Except = slices.Clone(s.Only), slices.Clone(s.Except)
	s.Env, s.Headers = lo.Assign(s.Env), s.Headers.Clone()
	return s
}

// check returns an error that joins all problems of the server.
func (s Server) check() error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if err := checkName(s.Name); err != nil {
		wrong = append(wrong, err)
	}
	switch {
	case len(s.Command) > 0 && s.URL != "":
		say("it has both a Command and a URL: set one")
	case len(s.Command) == 0 && s.URL == "":
		say("it has neither a Command nor a URL: set one")
	case s.URL != "":
		if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			say("the URL must be a whole http or https address")
		}
	case s.Command[0] == "":
		say("the Command begins with an empty word: it must be a program")
	}
	for _, pattern := range slices.Concat(s.Only, s.Except) {
		if _, err := path.Match(pattern, ""); err != nil {
			say("the pattern %q in Only or Except is malformed", pattern)
		}
	}
	for name, value := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			say("the variable %q in Env cannot be set", name)
		}
	}
	return errors.Join(wrong...)
}

// picks reports whether Only and Except select the tool with this name.
func (s Server) picks(tool string) bool {
	matches := func(pattern string) bool {
		ok, _ := path.Match(pattern, tool)
		return ok || pattern == tool
	}
	return (len(s.Only) == 0 || slices.ContainsFunc(s.Only, matches)) && !slices.ContainsFunc(s.Except, matches)
}
