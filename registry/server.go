package registry

import (
	"regexp"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Server is an MCP server: a command to start, or a URL. A Server with neither refers to the registry's server with
// that name.
type Server struct {
	// Name becomes part of its tools' names.
	Name    string
	Command []string `key:"command"`
	Dir     string   `key:"dir"`
	// Env are environment variables that the command gets in addition to the few that every program needs.
	Env []EnvName `key:"env"`
	URL URL       `key:"url"`
	// TokenEnv is the variable that holds the bearer token for the URL.
	TokenEnv EnvName `key:"token_env"`
	// Only and Except select tools by their names on the server, or by globs.
	Only    []string      `key:"only"`
	Except  []string      `key:"except"`
	Timeout time.Duration `key:"timeout,positive"`
}

// Servers are an agent's MCP servers, in the definition's order: a mapping from names to servers, or a list of names.
type Servers []Server //nolint:recvcheck // they are read into a pointer, and written as a value

var serverName = regexp.MustCompile(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`)

// ReadNode reads servers.
func (l *Servers) ReadNode(n yamlfile.Node) {
	if n.Kind() == yamlfile.ListNode {
		for _, item := range n.Items() {
			if name, ok := item.Text(); ok {
				*l = append(*l, Server{Name: name})
			}
		}
		return
	}
	for _, e := range n.Entries() {
		server := Server{Name: e.Key.Raw()}
		if !serverName.MatchString(server.Name) {
			e.Key.Wrong("expected a name of letters, digits, dashes and single underscores, got %q: it becomes part of the tools' names",
				server.Name)
		}
		if e.Value.Kind() == yamlfile.NullNode || e.Value.Decode(&server) {
			server.checkServer(e.Key)
		}
		*l = append(*l, server)
	}
}

func (s Server) checkServer(key yamlfile.Node) {
	switch {
	case len(s.Command) > 0 && s.URL != "":
		key.Wrong("the server %q has a command and a url: remove one of them", s.Name)
	case s.URL != "" && (len(s.Env) > 0 || s.Dir != ""):
		key.Wrong("the server %q has a url: dir and env are for a command", s.Name)
	case s.URL == "" && s.TokenEnv != "":
		key.Wrong("the server %q has a command: token_env is for a url; name the variable in env", s.Name)
	}
}

// known reports whether the server refers to one in the registry.
func (s Server) known() bool { return len(s.Command) == 0 && s.URL == "" }

// YAMLValue returns a list of names if all servers are only names. Otherwise it returns a list of pairs, in the
// servers' order.
func (l Servers) YAMLValue() any {
	if lo.EveryBy(l, func(s Server) bool { return s.isName() }) {
		return lo.Map(l, func(s Server, _ int) string { return s.Name })
	}
	return yamlfile.Pairs(lo.Map(l, func(s Server, _ int) yamlfile.Pair { return yamlfile.Pair{Key: s.Name, Value: s} }))
}

// isName reports whether only the server's name is set.
func (s Server) isName() bool {
	return s.known() && s.Dir == "" && s.TokenEnv == "" && s.Timeout == 0 && len(s.Env)+len(s.Only)+len(s.Except) == 0
}
