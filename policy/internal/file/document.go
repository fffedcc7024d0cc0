package file

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/grapnel-go/grapnel/internal/lazy"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/points"
	"github.com/grapnel-go/grapnel/policy/library"
)

// Layers lists the layers from the outermost to the innermost.
var Layers = []string{"global", "pipeline", "stage", "agent", "run"}

// Document is a policy: a file with all its includes.
type Document struct {
	Kind        points.Kind
	Layer       int // index in Layers
	Place       yamlfile.Place
	Name        string
	Version     string
	Versions    map[string]string // by library policy
	Description string
	Hash        string
	Required    bool
	// Disables has the outer layers that this document switches off, except required policies, and the places of these settings.
	Disables    map[int]yamlfile.Place
	Variables   map[string]any
	Environment []string        // the variables that actions may use
	Sources     []yamlfile.Node // from all parts
	Tools       []yamlfile.Node // as Sources
	Rules       []*Rule
	Paths       []string // of the file and its includes

	within      string // the mapping in the file that has the document
	definitions map[scoped]yamlfile.Node
	counts      map[scoped]int // number of rules by point
	parts       []*part        // included files before the files that include them
}

// Head holds the keys of a policy file.
type Head struct {
	Policy      string        `key:"policy" form:"name" doc:"The policy's name. Events, spans and lists say policy/id, or library:NAME/id of rules of the library."`
	Format      yamlfile.Node `key:"format" range:"1 1" doc:"The version of the file format; the default is 1. A file of a newer format is refused."`
	Version     string        `key:"version" form:"plain" doc:"The policy's version, free text. It is part of every decision."`
	Description string        `key:"description" form:"loose" doc:"What the policy is for."`
	Include     yamlfile.Node `key:"include" form:"texts" doc:"Files to read first: their rules, definitions and variables count here. Paths are relative to this file. library:NAME and library:NAME@VERSION are library policies."`
	Required    bool          `key:"required" doc:"Inner layers cannot switch the policy off."`
	NoGlobal    bool          `key:"disable_global_hooks" doc:"Switches off the policies of the global layer, except required ones."`
	NoPipeline  bool          `key:"disable_pipeline_hooks" doc:"Switches off the policies of the pipeline layer, except required ones."`
	Variables   yamlfile.Node `key:"variables" form:"variables" doc:"Values that conditions and texts can use as vars.NAME."`
	Environment []string      `key:"environment" doc:"Names of environment variables that URLs and headers of actions may use as ${NAME}."`
	Tools       yamlfile.Node `key:"tools" form:"object" doc:"What tools do, by their names: effects, records and the roles of arguments."`
	Sources     yamlfile.Node `key:"sources" form:"object" doc:"The origins of texts, for conditions about the provenance of values."`
	Definitions yamlfile.Node `key:"definitions" form:"definitions" doc:"Rules and actions by name, for {$ref: NAME}."`
	Defaults    yamlfile.Node `key:"defaults" form:"defaults" doc:"Default settings for the rules of this file."`
	Hooks       yamlfile.Node `key:"hooks" form:"hooks" doc:"The rules, by their point."`
}

// part is one file of a document: the file itself, or one that it includes.
type part struct {
	Mapping
	Head

	path     string
	library  string // its name in the library; empty for a user's file
	included bool
	defaults Defaults
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

// Identifier matches the names of variables.
var Identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

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

// readKeys reads all keys of a part but its rules, which may use every part's definitions. Given maps the name of each variable to
// the part that set it.
func (d *Document) readKeys(p *part, given map[string]*part) {
	what, m := "a policy", p.Mapping
	if d.Kind != points.Policies {
		what, m = "", p.without("policy")
	}
	m.Decode(what, documentAdvice, &p.Head)
	if p.included {
		for _, key := range []string{"required", "disable_global_hooks", "disable_pipeline_hooks"} {
			if p.Has(key) {
				p.Place(key).Wrong("%s: only a whole policy can set this: move it to the file that includes this one (rule: layers)", key)
			}
		}
	} else {
		d.readHead(p)
	}
	for _, e := range p.Variables.Entries() {
		name := e.Key.Raw()
		switch first := given[name]; {
		case first != nil && first.library == "" && p.library != "": // the user's files override the library
		case first != nil && p.included && (first.library != "") == (p.library != ""):
			e.Key.Wrong("variables: %q is set in another included file, too: remove one of them", name)
		case !Identifier.MatchString(name):
			e.Key.Wrong("variables: conditions cannot name %q as vars.%s: use letters, digits and _", name, name)
		default:
			d.Variables[name], given[name] = variableValue(e.Value), p
		}
	}
	for _, e := range p.Definitions.Entries() {
		name := scoped{p.library, e.Key.Raw()}
		switch _, again := d.definitions[name]; {
		case again:
			e.Key.Wrong("definitions: %q is defined in an included file, too: remove one of them", name.name)
		case !nameForm().MatchString(name.name):
			e.Key.Wrong("definitions: invalid name %q: %s", name.name, namesAre)
		case e.Value.Kind() != yamlfile.MappingNode:
			e.Value.Wrong("definitions: expected a rule or an action, written as keys with values, got %s", e.Value)
		default:
			d.definitions[name] = e.Value
		}
	}
	if p.library != "" {
		d.Versions[p.library] = p.Version
	}
	d.addEnvironment(p.At("environment"), p.Environment)
	if p.Has("tools") {
		d.Tools = append(d.Tools, p.Tools)
	}
	if p.Has("sources") {
		d.Sources = append(d.Sources, p.Sources)
	}
	if p.Has("defaults") {
		p.defaults.Mapping = MappingOf(p.Defaults)
		p.defaults.Decode("defaults", nil, &p.defaults)
	}
}

// readHead reads the settings for the whole policy.
func (d *Document) readHead(p *part) {
	d.Version, d.Description, d.Required = p.Version, p.Description, p.Required
	if d.Name = p.Policy; d.Kind == points.Policies && !p.Has("policy") {
		p.Node.Wrong("the key %q is missing: it is the name of the policy in events and lists (rule: names)", "policy")
	}
	base := filepath.Base(d.Place.File())
	switch of := libraryOf(d.Place.File()); {
	case of != "":
		d.Name = library.Prefix + of
	case d.Name != "":
	case d.Kind != points.Policies && p.Has("name"):
		d.Name = Layers[d.Layer] + "." + key{name: "name", form: "plain"}.text(p.At("name"))
	default:
		d.Name = Layers[d.Layer] + "." + strings.TrimSuffix(base, filepath.Ext(base))
	}
	for layer, off := range []bool{p.NoGlobal, p.NoPipeline} {
		key := "disable_" + Layers[layer] + "_hooks"
		switch {
		case !off:
		case d.Layer <= layer:
			p.Place(key).Wrong("%s: only a layer below the %s layer can switch it off, and this file is in the %s layer (rule: layers)",
				key, Layers[layer], Layers[d.Layer])
		default:
			d.Disables[layer] = p.Place(key)
		}
	}
}

// addEnvironment adds names of environment variables, and reports anything else, which may be a secret.
func (d *Document) addEnvironment(n yamlfile.Node, names []string) {
	for _, name := range names {
		if !Identifier.MatchString(name) {
			n.Hide()
			n.Wrong("environment: expected names of variables, such as SLACK_WEBHOOK, never their values")
			continue
		}
		d.Environment = append(d.Environment, name)
	}
}

// documentAdvice returns a hint for keys that users commonly mistake.
func documentAdvice(key string) string {
	switch key {
	case "rules":
		return `put rules under "hooks", by their point`
	case "name":
		return `use "policy" for the name of a policy`
	}
	if _, err := points.Policies.PointNamed(key); err == nil {
		return `put points under "hooks"`
	}
	return ""
}
