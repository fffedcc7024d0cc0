package agentfile

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/samber/lo"
	"go.yaml.in/yaml/v4"
)

// Part is a tool or a hook that was asked for by its kind, with its settings.
type Part[S any] struct {
	// Kind is the word in the file.
	Kind string
	// Settings is a pointer to the settings of that kind, such as *Shell.
	Settings S
	// At is where it stands.
	At Position
}

// Tools are the tools of an agent, Hooks its hooks, each in the order of the file.
type (
	Tools []Part[any]
	Hooks []Part[any]
)

// The kinds that there are, each with its settings when nothing is said of them.
var (
	toolKinds = map[string]func() any{
		"shell": func() any { return new(Shell) },
		"files": func() any { return new(Files) },
	}
	hookKinds = map[string]func() any{
		"base-dir":   func() any { return new(BaseDir) },
		"redact":     func() any { return new(Redact) },
		"rate-limit": func() any { return new(RateLimit) },
		"budget":     func() any { return new(Budget) },
		"audit":      func() any { return new(Audit) },
		"verify":     func() any { return new(Verify) },
		"deny":       func() any { return new(Deny) },
		"ask":        func() any { return new(Ask) },
		"deny-input": func() any { return new(DenyInput) },
	}
)

// ToolKinds is the words for tools, HookKinds those for hooks, sorted.
func ToolKinds() []string { return sortedKeys(toolKinds) }

// HookKinds is the words for hooks, sorted.
func HookKinds() []string { return sortedKeys(hookKinds) }

func sortedKeys(kinds map[string]func() any) []string {
	return strings.Split(strings.ReplaceAll(oneOf(lo.Keys(kinds)), `"`, ""), ", ")
}

func (t *Tools) read(d *decoder, n *yaml.Node) {
	*t = d.parts(n, "tool", toolKinds)
	for i, tool := range *t {
		if lo.ContainsBy((*t)[:i], func(other Part[any]) bool { return other.Kind == tool.Kind }) {
			d.at(tool.At, len(tool.Kind), "the tool %q stands here a second time", tool.Kind)
		}
	}
}

func (h *Hooks) read(d *decoder, n *yaml.Node) { *h = d.parts(n, "hook", hookKinds) }

// AddTool adds a tool with its settings left as they are, as a flag does.
func (t *Tools) AddTool(kind string) error { return add((*[]Part[any])(t), "tool", kind, toolKinds) }

// AddHook adds a hook with its settings left as they are, as a flag does.
func (h *Hooks) AddHook(kind string) error { return add((*[]Part[any])(h), "hook", kind, hookKinds) }

func add(parts *[]Part[any], what, kind string, kinds map[string]func() any) error {
	settings, known := kinds[kind]
	if !known {
		return fmt.Errorf("%s", unknown(what, kind, lo.Keys(kinds)))
	}
	made := settings()
	d := decoder{}
	d.check(&yaml.Node{}, reflect.ValueOf(made).Elem())
	if len(requiredKeys(reflect.TypeOf(made).Elem())) > 0 || len(d.problems) > 0 {
		return fmt.Errorf("the %s %q needs settings: give it some in an agent file", what, kind)
	}
	if lo.ContainsBy(*parts, func(p Part[any]) bool { return p.Kind == kind }) {
		return fmt.Errorf("the %s %q is there already", what, kind)
	}
	*parts = append(*parts, Part[any]{Kind: kind, Settings: made})
	return nil
}

// parts reads a list in which each item is a kind, or a kind with its settings.
func (d *decoder) parts(n *yaml.Node, what string, kinds map[string]func() any) []Part[any] {
	if n.Kind != yaml.SequenceNode {
		d.wrong(n, "expected a list of %ss, such as [%s], got %s", what, sortedKeys(kinds)[0], shown(n))
		return nil
	}
	var out []Part[any]
	for _, item := range n.Content {
		kind, settings := item, (*yaml.Node)(nil)
		if item.Kind == yaml.MappingNode {
			if len(item.Content) != 2 {
				d.wrong(item, "expected one %s with its settings below it; begin the next one with a dash of its own", what)
				continue
			}
			kind, settings = item.Content[0], item.Content[1]
		}
		if kind.Kind == yaml.AliasNode || kind.Tag == "!!merge" {
			continue // told of already
		}
		if kind.Kind != yaml.ScalarNode {
			d.wrong(kind, "expected a %s, got %s", what, shown(kind))
			continue
		}
		newSettings, known := kinds[kind.Value]
		if !known {
			d.wrong(kind, "%s", unknown(what, kind.Value, lo.Keys(kinds)))
			continue
		}
		part := Part[any]{kind.Value, newSettings(), place(kind)}
		into := reflect.ValueOf(part.Settings).Elem()
		switch {
		case settings != nil && settings.Tag != "!!null":
			d.value(settings, into)
		case len(requiredKeys(into.Type())) > 0:
			d.wrong(kind, "the %s %q needs settings: %s", what, kind.Value, strings.Join(requiredKeys(into.Type()), ", "))
		default:
			d.check(kind, into)
		}
		out = append(out, part)
	}
	return out
}

// Server is an MCP server: a command to start, or a URL.
type Server struct {
	Name    string
	Command []string `key:"command"`
	Dir     string   `key:"dir"`
	// Env are variables of the environment that the command is started with, besides
	// the few that every program needs.
	Env []EnvName `key:"env"`
	URL URL       `key:"url"`
	// TokenEnv is the variable that holds the bearer token for the URL.
	TokenEnv EnvName `key:"token_env"`
	// Only and Except pick tools by their names at the server, or by globs.
	Only    []string `key:"only"`
	Except  []string `key:"except"`
	Timeout Duration `key:"timeout"`
	At      Position
}

// Servers are the MCP servers of an agent, in the order of the file.
type Servers []Server

func (s *Servers) read(d *decoder, n *yaml.Node) {
	for _, e := range d.entries(n) {
		server := Server{Name: e.key.Value, At: place(e.key)}
		if !serverName.MatchString(server.Name) {
			d.wrong(e.key, "expected a name of letters, digits, dashes and single underscores, got %q: it becomes part of the tools' names",
				server.Name)
		}
		before := len(d.problems)
		d.value(e.value, reflect.ValueOf(&server).Elem())
		switch {
		case len(d.problems) > before:
		case len(server.Command) == 0 && server.URL == "":
			d.wrong(e.key, "the server %q has neither a command nor a url", server.Name)
		case len(server.Command) > 0 && server.URL != "":
			d.wrong(e.key, "the server %q has a command and a url: it must be one of them", server.Name)
		case server.URL != "" && (len(server.Env) > 0 || server.Dir != ""):
			d.wrong(e.key, "the server %q has a url: dir and env are for a command", server.Name)
		case server.URL == "" && server.TokenEnv != "":
			d.wrong(e.key, "the server %q has a command: token_env is for a url; name the variable in env", server.Name)
		}
		*s = append(*s, server)
	}
}
