package agentfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Part is a tool or a hook that was asked for by its kind, with its settings.
type Part[S any] struct {
	// Kind is the word in the file.
	Kind string
	// Settings is a pointer to the settings of that kind, such as *Shell.
	Settings S
	// At is where it stands.
	At yamlfile.Place
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
	return strings.Split(strings.ReplaceAll(yamlfile.OneOf(lo.Keys(kinds)), `"`, ""), ", ")
}

// ReadNode reads a list of tools, each once.
func (t *Tools) ReadNode(n yamlfile.Node) {
	*t = parts(n, "tool", toolKinds)
	for i, tool := range *t {
		if lo.ContainsBy((*t)[:i], func(other Part[any]) bool { return other.Kind == tool.Kind }) {
			tool.At.Wrong("the tool %q stands here a second time", tool.Kind)
		}
	}
}

// ReadNode reads a list of hooks.
func (h *Hooks) ReadNode(n yamlfile.Node) { *h = parts(n, "hook", hookKinds) }

// AddTool adds a tool with its settings left as they are, as a flag does.
func (t *Tools) AddTool(kind string) error { return add((*[]Part[any])(t), "tool", kind, toolKinds) }

// AddHook adds a hook with its settings left as they are, as a flag does.
func (h *Hooks) AddHook(kind string) error { return add((*[]Part[any])(h), "hook", kind, hookKinds) }

func add(parts *[]Part[any], what, kind string, kinds map[string]func() any) error {
	settings, known := kinds[kind]
	if !known {
		return errors.New(yamlfile.Unknown(what, kind, lo.Keys(kinds)))
	}
	made := settings()
	if nothing := yamlfile.Parse("settings", []byte("{}")); !fits(nothing, made) {
		return fmt.Errorf("the %s %q needs settings: give it some in an agent file", what, kind)
	}
	if lo.ContainsBy(*parts, func(p Part[any]) bool { return p.Kind == kind }) {
		return fmt.Errorf("the %s %q is there already", what, kind)
	}
	*parts = append(*parts, Part[any]{Kind: kind, Settings: made})
	return nil
}

func fits(file *yamlfile.File, settings any) bool {
	root, _ := file.Root()
	return root.Decode(settings)
}

// parts reads a list in which each item is a kind, or a kind with its settings.
func parts(n yamlfile.Node, what string, kinds map[string]func() any) []Part[any] {
	if n.Kind() != yamlfile.ListNode {
		n.Wrong("expected a list of %ss, such as [%s], got %s", what, sortedKeys(kinds)[0], n)
		return nil
	}
	var out []Part[any]
	for _, item := range n.Items() {
		kind, settings := item, yamlfile.Node{}
		if item.Kind() == yamlfile.MappingNode {
			entries := item.Entries()
			if len(entries) != 1 {
				item.Wrong("expected one %s with its settings below it; begin the next one with a dash of its own", what)
				continue
			}
			kind, settings = entries[0].Key, entries[0].Value
		}
		if kind.Kind() == yamlfile.ListNode {
			kind.Wrong("expected a %s, got %s", what, kind)
			continue
		}
		newSettings, known := kinds[kind.Raw()]
		if !known {
			kind.Wrong("%s", yamlfile.Unknown(what, kind.Raw(), lo.Keys(kinds)))
			continue
		}
		part := Part[any]{kind.Raw(), newSettings(), kind.Place()}
		required := yamlfile.Required(reflect.TypeOf(part.Settings).Elem())
		switch k := settings.Kind(); {
		case k != yamlfile.AbsentNode && k != yamlfile.NullNode:
			settings.Decode(part.Settings)
		case len(required) > 0:
			kind.Wrong("the %s %q needs settings: %s", what, kind.Raw(), strings.Join(required, ", "))
		default:
			if c, ok := part.Settings.(yamlfile.Checker); ok {
				c.Check(kind)
			}
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
	At      yamlfile.Place
}

// Servers are the MCP servers of an agent, in the order of the file.
type Servers []Server

// ReadNode reads servers under their names.
func (s *Servers) ReadNode(n yamlfile.Node) {
	for _, e := range n.Entries() {
		server := Server{Name: e.Key.Raw(), At: e.Key.Place()}
		if !serverName.MatchString(server.Name) {
			e.Key.Wrong("expected a name of letters, digits, dashes and single underscores, got %q: it becomes part of the tools' names",
				server.Name)
		}
		fits := e.Value.Decode(&server)
		switch {
		case !fits:
		case len(server.Command) == 0 && server.URL == "":
			e.Key.Wrong("the server %q has neither a command nor a url", server.Name)
		case len(server.Command) > 0 && server.URL != "":
			e.Key.Wrong("the server %q has a command and a url: it must be one of them", server.Name)
		case server.URL != "" && (len(server.Env) > 0 || server.Dir != ""):
			e.Key.Wrong("the server %q has a url: dir and env are for a command", server.Name)
		case server.URL == "" && server.TokenEnv != "":
			e.Key.Wrong("the server %q has a command: token_env is for a url; name the variable in env", server.Name)
		}
		*s = append(*s, server)
	}
}
