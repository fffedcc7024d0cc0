package registry

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// checker looks up names and collects errors.
type checker struct {
	Registry
	file    *File
	sources []*yamlfile.File
	once    map[string]map[string]bool // by kind, the parts that may occur only once
}

// checkFile reports all mistakes in a definition that can be found before any part is made.
func (r Registry) checkFile(file *File) error {
	c := &checker{Registry: r, file: file, once: map[string]map[string]bool{}}
	if file.source != nil {
		c.sources = append(c.sources, file.source)
	}
	c.model()
	partsOf(c, "tool", "tools", r.Tools, file.Tools)
	partsOf(c, "hook", "preHooks", r.Hooks, file.PreHooks)
	partsOf(c, "hook", "hooks", r.Hooks, file.Hooks)
	partsOf(c, "hook", "postHooks", r.Hooks, file.PostHooks)
	partsOf(c, "capability", "capabilities", r.Capabilities, file.Capabilities)
	for i, name := range file.Policies {
		at := func() yamlfile.Node { return c.at("the policy "+name, name, "policies", i) }
		switch {
		case r.Policies == nil:
			at().Wrong("policies: this program does not support policies: set Registry.Policies")
		case name == "":
			at().Wrong("policies: expected a file with rules, or a policy such as library:safe-shell")
		case c.once["policy"][name]:
			at().Wrong("the policy %q is listed twice", name)
		}
		c.note("policy", name)
	}
	for i, name := range file.Agents {
		c.known("agent", name, lo.Keys(r.Agents), true, "agents", i)
	}
	c.circles(nil, file.Agents)
	for i, s := range file.MCP {
		if s.known() {
			c.server(i, s)
		}
	}
	return yamlfile.Join(c.sources...)
}

// at returns a value's node, or a node in a separate text if the file does not contain the value.
func (c *checker) at(what string, said any, path ...any) yamlfile.Node {
	if n := c.file.node(said, path...); n.Kind() != yamlfile.AbsentNode {
		return n
	}
	source, n := encodePart(what, said)
	c.sources = append(c.sources, source)
	return n
}

// known reports an unknown name, or a duplicate.
func (c *checker) known(what, name string, names []string, single bool, path ...any) bool {
	at := func() yamlfile.Node { return c.at("the "+what+" "+name, name, path...) }
	switch {
	case !slices.Contains(names, name):
		at().Wrong("%s", yamlfile.Unknown(what, name, names))
		return false
	case single && c.once[what][name]:
		at().Wrong("the %s %q is listed twice", what, name)
		return false
	}
	c.note(what, name)
	return true
}

func (c *checker) note(what, name string) {
	if c.once[what] == nil {
		c.once[what] = map[string]bool{}
	}
	c.once[what][name] = true
}

func (c *checker) model() {
	if model := c.file.Model; model != "" {
		if _, _, ok := c.driver(model); !ok {
			c.at("the model", model, "model").Wrong("%s", c.wrongModel(model))
		}
	}
}

// driver returns the maker for a model, and the name to pass to it.
func (r Registry) driver(model string) (maker DriverMaker, name string, ok bool) {
	begins := lo.Filter(lo.Keys(r.Drivers), func(prefix string, _ int) bool {
		return len(model) > len(prefix) && strings.HasPrefix(model, prefix)
	})
	if len(begins) == 0 {
		return nil, "", false
	}
	longest := lo.MaxBy(begins, func(a, b string) bool { return len(a) > len(b) })
	return r.Drivers[longest], model[len(longest):], true
}

// wrongModel describes the mistake in a model name without a driver.
func (r Registry) wrongModel(model string) string {
	prefixes := lo.Map(lo.Keys(r.Drivers), func(prefix string, _ int) string { return prefix + "…" })
	slices.Sort(prefixes)
	text := "expected a model, such as " + strings.Join(prefixes, ", ")
	provider, _, found := strings.Cut(model, "/")
	switch {
	case len(prefixes) == 0:
		return "the registry has no drivers"
	case !found:
		return fmt.Sprintf("%s, got %q", text, model)
	}
	known := lo.Map(lo.Keys(r.Drivers), func(prefix string, _ int) string { return strings.TrimRight(prefix, "/:") })
	return text + "; " + yamlfile.Unknown("provider", provider, known)
}

// partsOf checks the names and settings of parts.
func partsOf[T any](c *checker, what, key string, makers map[string]Maker[T], list []Part) {
	for i, p := range list {
		item := c.at("the "+what+" "+p.Name, partValue(p), key, i)
		name, settings := nameOf(item)
		maker, ok := makers[p.Name]
		switch {
		case !ok:
			name.Wrong("%s", yamlfile.Unknown(what, p.Name, lo.Keys(makers)))
			continue
		case (maker.settings == nil || what != "hook") && c.once[what][p.Name]:
			name.Wrong("the %s %q is listed twice", what, p.Name)
			continue
		}
		c.note(what, p.Name)
		maker.readSettings(what, name, settings)
	}
}

// partValue returns a part as a file contains it.
func partValue(p Part) any {
	if len(p.Settings) == 0 {
		return p.Name
	}
	return map[string]any{p.Name: p.Settings}
}

// readSettings reads a part's settings, and reports mistakes at their nodes.
func (k Maker[T]) readSettings(what string, name, settings yamlfile.Node) any {
	given := settings.Kind() == yamlfile.MappingNode
	if k.settings == nil {
		if given {
			settings.Wrong("the %s %q takes no settings", what, name.Raw())
		}
		return nil
	}
	made := k.settings()
	required := yamlfile.RequiredKeys(reflect.TypeOf(made).Elem())
	switch {
	case given:
		settings.Decode(made)
	case len(required) > 0:
		name.Wrong("the %s %q needs settings: %s", what, name.Raw(), strings.Join(required, ", "))
	default:
		if checks, ok := made.(yamlfile.Checker); ok {
			checks.Check(name)
		}
	}
	return made
}

func (c *checker) server(i int, s Server) {
	if _, ok := c.Servers[s.Name]; ok {
		return
	}
	n := c.file.server(i, s)
	if n.Kind() == yamlfile.AbsentNode {
		n = c.at("the MCP server", s.Name)
	}
	n.Wrong("the server %q has neither a command nor a url%s", s.Name,
		lo.Ternary(len(c.Servers) == 0, "", "; "+yamlfile.Unknown("server", s.Name, lo.Keys(c.Servers))))
}

// circles reports agents that are their own sub-agents, directly or through others.
func (c *checker) circles(above []string, names []string) {
	for _, name := range names {
		if slices.Contains(above, name) || name == c.file.Name && name != "" {
			first := lo.IndexOf(c.file.Agents, append(slices.Clone(above), name)[0])
			c.at("the agent "+name, c.file.Agents[first], "agents", first).
				Wrong("the agent %q would be its own sub-agent: %s", name, strings.Join(append(slices.Clone(above), name), ", which has "))
			continue
		}
		if d, ok := c.Agents[name]; ok {
			c.circles(append(slices.Clip(above), name), d.Agents)
		}
	}
}
