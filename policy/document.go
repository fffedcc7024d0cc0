package policy

import (
	"path/filepath"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/library"
	"github.com/grapnel-go/grapnel/policy/provenance"
)

// document is a policy: a file with all that it includes.
type document struct {
	kind  Kind
	layer int // its place in layerNames
	place yamlfile.Place

	name        string
	version     string
	versions    map[string]string // of the policies of the library in it
	description string
	hash        string
	required    bool
	// disables is which layers above this one it switches off, unless they are required.
	disables []disabling

	variables   map[string]any
	environment []string
	definitions map[scoped]yamlfile.Node
	sources     []yamlfile.Node // of all parts
	rules       []*rule
	tracker     *provenance.Tracker
	counts      map[scoped]int // of entries, by their points
	files       []string
}

// disabling is a switch that turns a layer off.
type disabling struct {
	layer int
	place yamlfile.Place
}

// layerNames is the layers from the outermost in.
var layerNames = []string{"global", "pipeline", "stage", "agent", "run"}

// part is one file of a document: the file itself, or one that it includes.
type part struct {
	file     *yamlfile.File
	path     string
	library  string // its name there; empty for a file of the user
	included bool
	fields   fields
	defaults defaults
}

// scoped is a name in the name space of a policy of the library, or, where that is empty, in that of the user's files.
type scoped struct{ library, name string }

// String returns the name as a file says it: library:safe-shell/readable.
func (s scoped) String() string {
	if s.library == "" {
		return s.name
	}
	return library.Prefix + s.library + "/" + s.name
}

// scopedName returns the name that a file of the user says.
func scopedName(text string) scoped {
	if of, name, ok := strings.Cut(strings.TrimPrefix(text, library.Prefix), "/"); ok && strings.HasPrefix(text, library.Prefix) {
		return scoped{of, name}
	}
	return scoped{name: text}
}

// libraryOf returns the name of the policy of the library that a path names, without its version; empty for another path.
func libraryOf(path string) string {
	name, ok := strings.CutPrefix(path, library.Prefix)
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, "@")
	return name
}

// defaults is what holds for the rules of a file that do not say otherwise.
type defaults struct {
	shadow    bool
	priority  *int
	timeout   fields // its time limit, where there is one
	onFailure fields
}

// read takes the keys of a part into the document. Its hooks are read later, when all
// definitions and variables are known.
// Given is which part gave each variable.
func (l *loader) read(d *document, p *part, given map[string]*part) {
	f := p.fields
	switch {
	case d.kind == Policies:
		f.only("a policy", keyNames(documentKeys), documentAdvice)
	case f.has("name"):
		d.name = layerNames[d.layer] + "." + f.plain("name")
	}
	if p.included {
		for _, key := range []string{"required", "disable_global_hooks", "disable_pipeline_hooks"} {
			if f.has(key) {
				f.of[key].Key.Wrong("%s: this is for a whole policy to say, in the file that includes this one (rule: layers)", key)
			}
		}
	} else {
		l.readHead(d, f)
	}
	for _, e := range entriesOf(f, "variables") {
		name := e.Key.Raw()
		switch first := given[name]; {
		case first != nil && first.library == "" && p.library != "": // the user's files go before the library
		case first != nil && p.included && (first.library != "") == (p.library != ""):
			e.Key.Wrong("variables: %q is set in another file that is included, too: one of them has to go", name)
		case !identifier.MatchString(name):
			e.Key.Wrong("variables: %q cannot be written as vars.%s in a condition: use letters, digits and _", name, name)
		default:
			d.variables[name], given[name] = e.Value.Value(), p
		}
	}
	for _, e := range entriesOf(f, "definitions") {
		name := e.Key.Raw()
		switch _, again := d.definitions[scoped{p.library, name}]; {
		case again:
			e.Key.Wrong("definitions: %q is defined in a file that is included, too: one of them has to go", name)
		case !nameForm().MatchString(name):
			e.Key.Wrong("definitions: %q is no name: %s", name, namesAre)
		case e.Value.Kind() != yamlfile.MappingNode:
			e.Value.Wrong("definitions: expected a rule or an action, written as keys with values, got %s", e.Value)
		default:
			d.definitions[scoped{p.library, name}] = e.Value
		}
	}
	if p.library != "" {
		if d.versions == nil {
			d.versions = map[string]string{}
		}
		d.versions[p.library] = f.plain("version")
	}
	d.environment = append(d.environment, l.environment(f)...)
	if f.has("sources") {
		d.sources = append(d.sources, f.at("sources"))
	}
	p.defaults = l.defaultsOf(f)
}

// readHead reads what is said of the policy as a whole.
func (l *loader) readHead(d *document, f fields) {
	switch {
	case d.kind != Policies:
	case !f.has("policy"):
		f.node.Wrong("the key %q is missing: it names the policy in events and lists (rule: names)", "policy")
	default:
		d.name = f.name("policy")
	}
	if of := libraryOf(d.place.File()); of != "" {
		d.name = library.Prefix + of
	}
	if d.name == "" {
		base := filepath.Base(d.place.File())
		d.name = layerNames[d.layer] + "." + strings.TrimSuffix(base, filepath.Ext(base))
	}
	d.version, d.description = f.plain("version"), f.plain("description")
	d.required = f.flag("required", false)
	for key, layer := range map[string]int{"disable_global_hooks": 0, "disable_pipeline_hooks": 1} {
		switch {
		case !f.flag(key, false):
		case d.layer <= layer:
			f.of[key].Key.Wrong("%s: only what stands below the %s layer can switch it off, and this file is in the %s layer (rule: layers)",
				key, layerNames[layer], layerNames[d.layer])
		default:
			d.disables = append(d.disables, disabling{layer, f.place(key)})
		}
	}
}

// environment returns the variables of the environment that actions may name.
func (l *loader) environment(f fields) []string {
	return lo.Filter(f.texts("environment"), func(name string, _ int) bool {
		ok := identifier.MatchString(name)
		if !ok {
			f.at("environment").Hide()
			f.at("environment").Wrong("environment: expected names of variables, such as SLACK_WEBHOOK, never their values")
		}
		return ok
	})
}

func (l *loader) defaultsOf(f fields) defaults {
	if !f.has("defaults") {
		return defaults{}
	}
	of := fieldsOf(f.at("defaults"))
	of.only("defaults", keyNames(defaultsKeys), nil)
	of.duration("timeout")
	of.duration("retry_delay")
	of.number("retries", 0, 100, 0)
	of.oneOf("then", "closed", "open", "abort")
	of.oneOf("on_failure", failureWords...)
	return defaults{
		shadow: of.oneOf("mode", "enforce", "shadow") == "shadow", priority: priorityOf(of), timeout: of, onFailure: of,
	}
}

func entriesOf(f fields, key string) []yamlfile.Entry {
	if !f.has(key) {
		return nil
	}
	return f.at(key).Entries()
}

// documentAdvice says more of keys that people try.
func documentAdvice(key string) string {
	switch key {
	case "rules":
		return `rules stand under "hooks", by the point at which they are asked`
	case "name":
		return `the name of a policy stands under "policy"`
	}
	if p := pointNamed(Policies, key); p != nil {
		return `points stand under "hooks"`
	}
	return ""
}

// priorityOf returns the priority that is written, nil when none is.
func priorityOf(f fields) *int {
	n := f.at("priority")
	switch n.Kind() {
	case yamlfile.AbsentNode:
		return nil
	case yamlfile.NumberNode:
		p := numberIn(n, "priority", -1000, 1000, 0)
		return &p
	case yamlfile.TextNode:
		if p, ok := bands[n.Raw()]; ok {
			return &p
		}
	case yamlfile.NullNode, yamlfile.BoolNode, yamlfile.ListNode, yamlfile.MappingNode:
	}
	n.Wrong("priority: expected a whole number, or one of %s, got %s", yamlfile.OneOf(lo.Keys(bands)), n)
	return nil
}

var bands = map[string]int{
	"guard": hooks.PriorityGuard, "infrastructure": hooks.PriorityInfrastructure,
	"user": hooks.PriorityUser, "afterwork": hooks.PriorityAfterwork,
}
