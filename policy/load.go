package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/file"
	"github.com/grapnel-go/grapnel/policy/internal/points"
	"github.com/grapnel-go/grapnel/policy/library"
)

// maxRules is the maximum number of rules in all files.
const maxRules = 5000

// Kind is the kind of a file with rules. It determines the names of points in the file, and the other keys, which other
// packages read.
type Kind = points.Kind

const (
	// Policies are policy files, as docs/policies.md describes them.
	Policies = points.Policies
	// Pipelines are files that describe a pipeline or a stage and may have hooks.
	Pipelines = points.Pipelines
	// Blueprints are files that describe a coordinator's agent and may have hooks.
	Blueprints = points.Blueprints
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
	// Points, unless nil, are the points whose rules are loaded, for a program that decides on one event and ends. Mistakes
	// in the conditions and decisions of other rules are not reported.
	Points []hooks.PointName
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
	l := newLoader(o)
	for _, layer := range byRank(layers) {
		rank := slices.Index(file.Layers, layer.Name)
		if rank < 0 {
			return nil, fmt.Errorf("load policies: %s", yamlfile.Unknown("layer", layer.Name, file.Layers))
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
			l.addDocument(path, text, layer.Kind, rank, layer.Within)
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
		return slices.Index(file.Layers, b.Name) - slices.Index(file.Layers, a.Name)
	})
	return layers
}

// LoadFiles reads one policy from each file, for the run layer.
func LoadFiles(paths ...string) (*Policy, error) {
	return Load([]Layer{{Name: "run", Files: paths}}, Options{})
}

// Parse reads a policy from a text. The name is used in errors; includes are read relative to it.
func Parse(name string, text []byte, o Options) (*Policy, error) {
	return parseKind(Policies, name, text, o)
}

// parseKind works like Parse for a kind of file.
func parseKind(kind Kind, name string, text []byte, o Options) (*Policy, error) {
	l := newLoader(o)
	l.addDocument(name, text, kind, len(file.Layers)-1, "")
	return l.finish()
}

// loader loads documents and collects what is wrong with them.
type loader struct {
	findings

	files     *file.Loader
	options   Options
	reader    func(path string) ([]byte, error) // reads files; nil means the file system
	documents []*document
	states    map[string]fileState
}

func newLoader(o Options) *loader {
	l := &loader{options: o, reader: o.Read, states: map[string]fileState{}}
	l.files = &file.Loader{Open: l.open, Parse: o.Files.parseFile, Variables: o.Variables}
	return l
}

// addDocument reads a document and compiles its rules.
func (l *loader) addDocument(path string, text []byte, kind Kind, layer int, within string) {
	d, found := compile(l.files.Load(path, text, kind, layer, within), l.options)
	l.documents = append(l.documents, d)
	l.mistakes, l.warnings = append(l.mistakes, found.mistakes...), append(l.warnings, found.warnings...)
}

// open returns a file's text, and its path for errors. It records the file's state before reading it, for Live. A library
// policy has one path, with or without a version in its name.
func (l *loader) open(path string) (string, []byte, error) {
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

// finish returns the policy, without documents that an inner layer switches off, or all errors.
func (l *loader) finish() (*Policy, error) {
	l.dropCopies()
	l.checkNames()
	for _, m := range l.mistakes {
		m.at.Wrong("%w", m.err)
	}
	if err := yamlfile.Join(l.files.Files...); err != nil {
		return nil, err
	}
	p := &Policy{warnings: l.warnings, options: l.options, states: l.states}
	off := map[int][]yamlfile.Place{}
	for _, d := range l.documents {
		for layer, place := range d.Disables {
			off[layer] = append(off[layer], place)
		}
	}
	sum := sha256.New()
	for _, d := range l.documents {
		if by := off[d.Layer]; len(by) > 0 {
			if !d.Required {
				p.disabled = append(p.disabled, d.Name)
				continue
			}
			for _, place := range by {
				p.warnings = append(p.warnings, warningAt(place, "required", "", "the policy %q is required and stays in force (rule: layers)", d.Name))
			}
		}
		p.documents = append(p.documents, d)
		fmt.Fprintf(sum, "%d:%s\n", d.Layer, d.Hash)
	}
	if p.hash = hex.EncodeToString(sum.Sum(nil)); len(p.documents) == 1 {
		p.hash = p.documents[0].Hash
	}
	p.rules = arrangeRules(p.documents)
	return p, nil
}

// dropCopies keeps one of several identical policies: the one in the innermost layer, which no other layer switches off. If the
// policy is required, it keeps the one in the outermost layer, so that listing it again does not move it inwards.
func (l *loader) dropCopies() {
	l.documents = lo.Filter(l.documents, func(d *document, i int) bool {
		others := lo.Ternary(d.Required, l.documents[i+1:], l.documents[:i])
		return d.Name == "" || !lo.ContainsBy(others, func(other *document) bool {
			return other.Name == d.Name && other.Hash == d.Hash && other.Kind == d.Kind
		})
	})
}

// checkNames reports names that are used twice, and too many rules.
func (l *loader) checkNames() {
	total := 0
	seen := map[string]*document{}
	for _, d := range l.documents {
		total += len(d.rules)
		if first, again := seen[d.Name]; again && d.Name != "" {
			l.wrong(d.Place, "the policy %q is declared twice, also in %s (rule: names)",
				d.Name, first.Place.File())
		}
		seen[d.Name] = d
		ids := map[string]*rule{}
		for _, r := range d.rules {
			if first, again := ids[r.name()]; again {
				l.wrong(r.place, "the id %q is taken by the rule in %s, line %d (rule: names)", r.id, first.place.File(), first.place.Line)
			}
			ids[r.name()] = r
		}
	}
	if total > maxRules {
		l.wrong(lo.LastOrEmpty(l.documents).Place, "%d rules exceed the limit of %d (rule: size)", total, maxRules)
	}
}
