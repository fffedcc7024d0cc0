package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
	"github.com/grapnel-go/grapnel/policy/internal/provenance"
	"github.com/grapnel-go/grapnel/policy/library"
	"github.com/grapnel-go/grapnel/policy/tools"
)

// Limits of a load.
const (
	// maxFiles is the maximum number of files, includes counted.
	maxFiles = 100
	// maxRules is the maximum number of their rules.
	maxRules = 5000
)

// Layer is the files of one layer.
type Layer struct {
	// Name is global, pipeline, stage, agent or run, from the outermost to the innermost. Rules of inner layers are
	// asked first.
	Name string
	// Files are the paths of the files; library:NAME and library:NAME@VERSION are of package library.
	Files []string
	// Kind is the kind of the files.
	Kind Kind
	// Within is the mapping within the files that has the rules, as keys and indexes of lists separated by slashes, such as
	// "stages/0". Empty means the whole file.
	Within string
	// Optional skips files that do not exist. A link to a missing file counts as existing.
	Optional bool
	// Read, unless nil, reads the files of this layer instead of Options.Read.
	Read func(path string) ([]byte, error)
}

// Options configure rules beyond their files. The zero value suits rules that start no agents, pipelines or tools.
type Options struct {
	// Host performs actions.
	Host action.Host
	// Variables override the policies' own variables of these names, for tests.
	Variables map[string]any
	// Now, unless nil, returns the current time for conditions.
	Now func() time.Time
	// Watch, unless nil, is called with the result of each evaluation of a rule's condition. It must be safe for
	// concurrent use.
	Watch func(r Rule, j Judgement)
	// Wrap, unless nil, may wrap the action of a rule: for tests, and for engines that check what it returns.
	Wrap func(r Rule, a action.Action) action.Action
	// Check, unless nil, returns what else is wrong with a rule as an error that joins a *action.FieldError for each mistake. Load
	// reports them with the others. The action is nil for a rule with a decision.
	Check func(r Rule, a action.Declared) error
	// Read, unless nil, reads files instead of the file system.
	Read func(path string) ([]byte, error)
	// Files, unless nil, keeps parsed files for further calls of Load.
	Files *Files
	// Dir is the working directory, the base for relative paths in conditions if there is no variable "workspace". Empty
	// means the process's working directory.
	Dir string
}

// Files keeps parsed files, so that several calls of Load parse a text only once. The zero value is ready for use. It is safe for
// concurrent use.
type Files struct {
	mu     sync.Mutex
	parsed map[string]parsedFile // by path
}

type parsedFile struct {
	text []byte
	file *yamlfile.File
}

// parseFile returns the parsed file with a text, for one reader.
func (f *Files) parseFile(path string, text []byte) *yamlfile.File {
	if f == nil {
		return yamlfile.Parse(path, text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.parsed[path]
	if !ok || !bytes.Equal(known.text, text) {
		known = parsedFile{slices.Clone(text), yamlfile.Parse(path, text)}
		if f.parsed == nil {
			f.parsed = map[string]parsedFile{}
		}
		f.parsed[path] = known
	}
	return known.file.Again()
}

// Load reads policies from files. If any of them is invalid, it loads nothing and returns a *yamlfile.Error with all
// errors, each with file, line and column. A policy that is listed twice with identical text counts once: in its
// outermost layer if it is required, otherwise in its innermost.
func Load(layers []Layer, o Options) (*Policy, error) {
	l := &loader{options: o}
	for _, layer := range byRank(layers) {
		rank := slices.Index(layerNames, layer.Name)
		if rank < 0 {
			return nil, fmt.Errorf("load policies: %s", yamlfile.Unknown("layer", layer.Name, layerNames))
		}
		if l.reader = layer.Read; l.reader == nil {
			l.reader = o.Read
		}
		for _, path := range layer.Files {
			path, text, err := l.open(path)
			switch {
			case layer.Optional && errors.Is(err, fs.ErrNotExist) && !isLink(path):
				continue
			case err != nil:
				return nil, fmt.Errorf("load policies: %w", err)
			}
			l.readDocument(path, text, layer.Kind, rank, layer.Within)
		}
	}
	return l.finish()
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// byRank returns the layers from the innermost out.
func byRank(layers []Layer) []Layer {
	layers = slices.Clone(layers)
	slices.SortStableFunc(layers, func(a, b Layer) int {
		return slices.Index(layerNames, b.Name) - slices.Index(layerNames, a.Name)
	})
	return layers
}

// LoadFiles reads one policy from each file, for the run layer.
func LoadFiles(paths ...string) (*Policy, error) {
	return Load([]Layer{{Name: "run", Files: paths}}, Options{})
}

// Parse reads a policy from a text. The name is used in errors; includes are read relative to it.
func Parse(name string, text []byte, o Options) (*Policy, error) {
	return ParseKind(Policies, name, text, o)
}

// ParseKind works like Parse for a kind of file.
func ParseKind(kind Kind, name string, text []byte, o Options) (*Policy, error) {
	l := &loader{options: o, reader: o.Read}
	l.readDocument(name, text, kind, len(layerNames)-1, "")
	return l.finish()
}

// loader reads files and collects their errors.
type loader struct {
	options   Options
	reader    func(path string) ([]byte, error) // reads files; nil means the file system
	files     []*yamlfile.File
	documents []*document
	notes     []Warning
	states    map[string]fileState
	full      bool
}

// open returns a file's text, and its path for errors. It records the file's state before reading it, for Live. A library
// policy has one path, with or without a version in its name.
func (l *loader) open(path string) (string, []byte, error) {
	if l.states == nil {
		l.states = map[string]fileState{}
	}
	if strings.HasPrefix(path, library.Prefix) {
		found, err := library.Find(path)
		if err != nil {
			return path, nil, err
		}
		return found.Path(), found.Text, nil
	}
	l.states[path] = stateOf(path)
	if l.reader != nil {
		text, err := l.reader(path)
		return path, text, err
	}
	text, err := yamlfile.Read(path)
	return path, text, err
}

// readDocument reads a file and its includes: first all texts, then their keys, then the rules.
func (l *loader) readDocument(path string, text []byte, kind Kind, layer int, within string) {
	d := &document{
		kind: kind, layer: layer, within: within, variables: map[string]any{}, definitions: map[scoped]yamlfile.Node{},
		disables: map[int]yamlfile.Place{}, counts: map[scoped]int{},
	}
	sum := sha256.New()
	if within != "" {
		fmt.Fprintf(sum, "%q:", within)
	}
	l.readPart(d, path, text, nil, sum)
	d.hash = hex.EncodeToString(sum.Sum(nil))
	given := map[string]*part{}
	for _, p := range d.parts {
		l.readKeys(d, p, given)
	}
	for name, value := range l.options.Variables {
		if _, there := d.variables[name]; there {
			d.variables[name] = value
		}
	}
	var entries []*entry
	for _, p := range d.parts {
		entries = append(entries, d.entries(p)...)
	}
	d.language = l.language(d, entries)
	for _, e := range entries { // after the whole document, because conditions may name the results of actions by ID
		if r := l.readRule(e); r != nil {
			d.rules = append(d.rules, r)
		}
	}
	l.documents = append(l.documents, d)
}

// language returns the language for a document's conditions; nil if it is invalid.
func (l *loader) language(d *document, entries []*entry) *condition.Language {
	ids := []string{}
	for _, e := range entries {
		if e.has("type") && e.part.library == "" { // rules of the library have no actions
			ids = append(ids, e.id)
		}
	}
	language, err := condition.New(condition.Options{
		Variables: d.variables, Actions: ids, Workspace: l.options.Dir,
		Functions: d.provenance(),
	})
	if err != nil {
		d.place.Wrong("%w", err)
		return nil
	}
	return language
}

// provenance sets the document's tracker, from the sources and tools in all its parts, and returns the tracker's functions.
func (d *document) provenance() []condition.Function {
	var sources provenance.Sources
	for _, n := range d.sources {
		var more provenance.Sources
		if !n.Decode(&more) {
			continue
		}
		if err := more.Validate(); err != nil {
			n.Wrong("sources: %w", err)
			continue
		}
		sources = sources.With(more)
	}
	var table tools.Table
	for _, n := range slices.Backward(d.tools) { // the file that includes others wins
		var more tools.Table
		if !n.Decode(&more) {
			continue
		}
		if err := more.Validate(); err != nil {
			n.Wrong("tools: %w", err)
			continue
		}
		table = table.With(more)
	}
	tracker, err := provenance.New(provenance.Options{Sources: sources, Tools: table})
	if err != nil {
		d.place.Wrong("%w", err)
		return nil
	}
	d.tracker = tracker
	return tracker.Functions()
}

// readPart parses a file and adds it to the document's parts, after the files that it includes. Above lists the files that
// include it.
func (l *loader) readPart(d *document, path string, text []byte, above []string, sum hash.Hash) {
	file := l.options.Files.parseFile(path, text)
	if len(l.files) >= maxFiles {
		file.At(yamlfile.Position{}).Wrong("a policy has at most %d files (rule: size)", maxFiles)
		if !l.full {
			l.files, l.full = append(l.files, file), true
		}
		return
	}
	l.files = append(l.files, file)
	fmt.Fprintf(sum, "%d:%s", len(text), text)
	if d.kind == Policies && !file.CheckFormat(fileFormat) {
		return
	}
	root, ok := file.Root()
	if !ok {
		if file.Err() == nil {
			file.At(yamlfile.Position{Line: 1, Column: 1}).Wrong("the file is empty: add policy and hooks")
		}
		return
	}
	if len(above) == 0 {
		if d.within != "" {
			d.environment = l.environment(fieldsOf(root)) // what the file declares, all of its parts may use
		}
		if root = root.FindPath(d.within); root.Kind() == yamlfile.AbsentNode {
			file.At(yamlfile.Position{}).Wrong("the file has no %s", d.within)
			return
		}
		d.place = root.Place()
	}
	d.files = append(d.files, path)
	p := &part{file: file, path: path, library: libraryOf(path), included: len(above) > 0, fields: fieldsOf(root)}
	for _, n := range p.includes() {
		l.include(d, p, n, above, sum)
	}
	d.parts = append(d.parts, p)
}

// includes returns the files that the part includes.
func (p *part) includes() []yamlfile.Node {
	switch n := p.fields.at("include"); n.Kind() {
	case yamlfile.AbsentNode:
		return nil
	case yamlfile.TextNode:
		return []yamlfile.Node{n}
	case yamlfile.NullNode, yamlfile.NumberNode, yamlfile.BoolNode, yamlfile.MappingNode, yamlfile.ListNode:
		return n.Items()
	default:
		return nil
	}
}

// include reads an included file, once.
func (l *loader) include(d *document, p *part, n yamlfile.Node, above []string, sum hash.Hash) {
	name, ok := n.Text()
	if !ok {
		return
	}
	path := name
	switch {
	case strings.HasPrefix(path, library.Prefix):
	case p.library != "":
		path = library.Prefix + path
	case !filepath.IsAbs(path):
		path = filepath.Join(filepath.Dir(p.path), name)
	}
	if name == "" {
		n.Wrong("include: expected the path of a file, relative to this one")
		return
	}
	if strings.HasPrefix(path, library.Prefix) {
		found, err := library.Find(path)
		if err != nil {
			n.Wrong("include: %w", err)
			return
		}
		path = found.Path()
	}
	chain := append(slices.Clip(above), p.path)
	other, twice := lo.Find(d.parts, func(q *part) bool { return q.library != "" && q.library == libraryOf(path) && q.path != path })
	switch {
	case twice:
		n.Wrong("include: another file includes %s: both must use the same version (rule: includes)", other.path)
		return
	case slices.ContainsFunc(chain, func(a string) bool { return sameFile(a, path) }):
		n.Wrong("include: the includes form a cycle: %s (rule: includes)", strings.Join(append(chain, path), " > "))
		return
	case slices.ContainsFunc(d.parts, func(q *part) bool { return sameFile(q.path, path) }):
		return
	case l.full:
		return
	}
	path, text, err := l.open(path)
	if err != nil {
		n.Wrong("include: %w", err)
		return
	}
	l.readPart(d, path, text, chain, sum)
}

func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// finish returns the policy, without documents that an inner layer switches off, or all errors.
func (l *loader) finish() (*Policy, error) {
	l.dropCopies()
	l.checkNames()
	if err := yamlfile.Join(l.files...); err != nil {
		return nil, err
	}
	p := &Policy{warnings: l.notes, options: l.options, states: l.states}
	off := map[int][]yamlfile.Place{}
	for _, d := range l.documents {
		for layer, place := range d.disables {
			off[layer] = append(off[layer], place)
		}
	}
	sum := sha256.New()
	for _, d := range l.documents {
		if by := off[d.layer]; len(by) > 0 {
			if !d.required {
				p.disabled = append(p.disabled, d.name)
				continue
			}
			for _, place := range by {
				p.warnings = append(p.warnings, warningAt(place, "required", "", "the policy %q is required and stays in force (rule: layers)", d.name))
			}
		}
		p.documents = append(p.documents, d)
		fmt.Fprintf(sum, "%d:%s\n", d.layer, d.hash)
	}
	if p.hash = hex.EncodeToString(sum.Sum(nil)); len(p.documents) == 1 {
		p.hash = p.documents[0].hash
	}
	p.rules = arrange(p.documents)
	return p, nil
}

// dropCopies keeps one of several identical policies: the one in the innermost layer, which no other layer switches off. If the
// policy is required, it keeps the one in the outermost layer, so that listing it again does not move it inwards.
func (l *loader) dropCopies() {
	l.documents = lo.Filter(l.documents, func(d *document, i int) bool {
		others := lo.Ternary(d.required, l.documents[i+1:], l.documents[:i])
		return d.name == "" || !lo.ContainsBy(others, func(other *document) bool {
			return other.name == d.name && other.hash == d.hash && other.kind == d.kind
		})
	})
}

// checkNames reports names that are used twice, and too many rules.
func (l *loader) checkNames() {
	total := 0
	seen := map[string]*document{}
	for _, d := range l.documents {
		total += len(d.rules)
		if first, again := seen[d.name]; again && d.name != "" {
			d.place.Wrong("the policy %q is declared twice, also in %s (rule: names)",
				d.name, first.place.File())
		}
		seen[d.name] = d
		ids := map[string]*rule{}
		for _, r := range d.rules {
			if first, again := ids[r.name()]; again {
				r.place.Wrong("the id %q is taken by the rule in %s, line %d (rule: names)", r.id, first.place.File(), first.place.Line)
			}
			ids[r.name()] = r
		}
	}
	if total > maxRules {
		last := lo.LastOrEmpty(l.documents)
		last.place.Wrong("%d rules exceed the limit of %d (rule: size)", total, maxRules)
	}
}
