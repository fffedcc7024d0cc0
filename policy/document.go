package policy

import (
	"path/filepath"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/lazy"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
	"github.com/grapnel-go/grapnel/policy/internal/provenance"
	"github.com/grapnel-go/grapnel/policy/library"
)

// document is a policy: a file with all its includes.
type document struct {
	kind  Kind
	layer int // index in layerNames
	// within is the mapping in the file that has the document: see Layer.Within.
	within string
	place  yamlfile.Place

	name        string
	version     string
	versions    map[string]string // by library policy
	description string
	hash        string
	required    bool
	// disables has the outer layers that this document switches off, except required policies, and the places of these settings.
	disables map[int]yamlfile.Place

	variables   map[string]any
	environment []string
	definitions map[scoped]yamlfile.Node
	sources     []yamlfile.Node // from all parts
	tools       []yamlfile.Node // as sources
	rules       []*rule
	tracker     *provenance.Tracker
	language    *condition.Language // nil if it is invalid
	counts      map[scoped]int      // number of entries by point
	parts       []*part             // included files before the files that include them
	files       []string
}

// layerNames lists the layers from the outermost to the innermost.
var layerNames = []string{"global", "pipeline", "stage", "agent", "run"}

// part is one file of a document: the file itself, or one that it includes.
type part struct {
	file     *yamlfile.File
	path     string
	library  string // its name in the library; empty for a user's file
	included bool
	fields   fields
	defaults defaults
}

// scoped is a name within a library policy, or, if library is empty, within the user's files.
type scoped struct{ library, name string }

// String returns the name as it is written in a file: library:safe-shell/readable.
func (s scoped) String() string {
	if s.library == "" {
		return s.name
	}
	return library.Prefix + s.library + "/" + s.name
}

// scopedName parses a name in a user's file.
func scopedName(text string) scoped {
	if of, name, ok := strings.Cut(strings.TrimPrefix(text, library.Prefix), "/"); ok && strings.HasPrefix(text, library.Prefix) {
		return scoped{of, name}
	}
	return scoped{name: text}
}

// libraryOf returns the library policy that a path names, without its version; empty for other paths.
func libraryOf(path string) string {
	name, ok := strings.CutPrefix(path, library.Prefix)
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, "@")
	return name
}

// defaults holds the default settings for the rules of a file.
type defaults struct {
	fields

	shadow   bool
	priority *int
}

// wholeDouble matches a whole number that is written as a double.
var wholeDouble = lazy.Regexp(`^-?[0-9]+\.0$`)

// variableValue returns a variable's value, which conditions may compare with a text. 5.0 is allowed, because only a
// double can be compared with a variable such as usage.cost.
func variableValue(n yamlfile.Node) any {
	if n.Kind() == yamlfile.NumberNode && wholeDouble().MatchString(n.Raw()) {
		return n.Value()
	}
	return n.ComparedValue()
}

// readKeys adds a part's keys to the document. Its hooks are read later, when all definitions and variables are known. Given
// maps the name of each variable to the part that set it.
func (l *loader) readKeys(d *document, p *part, given map[string]*part) {
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
				f.of[key].Key.Wrong("%s: only a whole policy can set this: move it to the file that includes this one (rule: layers)", key)
			}
		}
	} else {
		l.readHead(d, f)
	}
	for _, e := range entriesOf(f, "variables") {
		name := e.Key.Raw()
		switch first := given[name]; {
		case first != nil && first.library == "" && p.library != "": // the user's files override the library
		case first != nil && p.included && (first.library != "") == (p.library != ""):
			e.Key.Wrong("variables: %q is set in another included file, too: remove one of them", name)
		case !identifier.MatchString(name):
			e.Key.Wrong("variables: conditions cannot name %q as vars.%s: use letters, digits and _", name, name)
		default:
			d.variables[name], given[name] = variableValue(e.Value), p
		}
	}
	for _, e := range entriesOf(f, "definitions") {
		name := e.Key.Raw()
		switch _, again := d.definitions[scoped{p.library, name}]; {
		case again:
			e.Key.Wrong("definitions: %q is defined in an included file, too: remove one of them", name)
		case !nameForm().MatchString(name):
			e.Key.Wrong("definitions: invalid name %q: %s", name, namesAre)
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
	if f.has("tools") {
		d.tools = append(d.tools, f.at("tools"))
	}
	if f.has("sources") {
		d.sources = append(d.sources, f.at("sources"))
	}
	p.defaults = l.defaultsOf(f)
}

// readHead reads the settings for the whole policy.
func (l *loader) readHead(d *document, f fields) {
	switch {
	case d.kind != Policies:
	case !f.has("policy"):
		f.node.Wrong("the key %q is missing: it is the name of the policy in events and lists (rule: names)", "policy")
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
			f.of[key].Key.Wrong("%s: only a layer below the %s layer can switch it off, and this file is in the %s layer (rule: layers)",
				key, layerNames[layer], layerNames[d.layer])
		default:
			d.disables[layer] = f.place(key)
		}
	}
}

// environment returns the names of the environment variables that actions may use.
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
	return defaults{of, of.oneOf("mode", "enforce", "shadow") == "shadow", priorityOf(of)}
}

func entriesOf(f fields, key string) []yamlfile.Entry {
	if !f.has(key) {
		return nil
	}
	return f.at(key).Entries()
}

// documentAdvice returns a hint for keys that users commonly mistake.
func documentAdvice(key string) string {
	switch key {
	case "rules":
		return `put rules under "hooks", by their point`
	case "name":
		return `use "policy" for the name of a policy`
	}
	if p := pointNamed(Policies, key); p != nil {
		return `put points under "hooks"`
	}
	return ""
}

// priorityOf returns the priority, or nil if it is not set.
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
