package file

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/points"
	"github.com/grapnel-go/grapnel/policy/library"
)

// maxFiles is the maximum number of files, includes counted.
const maxFiles = 100

// Loader reads documents. Its Files have the problems that it finds.
type Loader struct {
	// Open returns a file's text, and its path for errors.
	Open func(path string) (string, []byte, error)
	// Parse parses a file's text.
	Parse func(path string, text []byte) *yamlfile.File
	// Variables override variables of these names.
	Variables map[string]any
	Files     []*yamlfile.File

	full bool
}

// Load reads a file and its includes: first all texts, then their keys, then the rules, because a rule may use any definition.
func (l *Loader) Load(path string, text []byte, kind points.Kind, layer int, within string) *Document {
	d := &Document{
		Kind: kind, Layer: layer, within: within, Variables: map[string]any{}, definitions: map[scoped]yamlfile.Node{},
		Disables: map[int]yamlfile.Place{}, Versions: map[string]string{}, counts: map[scoped]int{},
	}
	sum := sha256.New()
	if within != "" {
		fmt.Fprintf(sum, "%q:", within)
	}
	l.readPart(d, path, text, nil, sum)
	d.Hash = hex.EncodeToString(sum.Sum(nil))
	given := map[string]*part{}
	for _, p := range d.parts {
		d.readKeys(p, given)
	}
	for name, value := range l.Variables {
		if _, there := d.Variables[name]; there {
			d.Variables[name] = value
		}
	}
	for _, p := range d.parts {
		d.readRules(p)
	}
	return d
}

// readPart parses a file and adds it to the document's parts, after the files that it includes. Above lists the files that
// include it.
func (l *Loader) readPart(d *Document, path string, text []byte, above []string, sum hash.Hash) {
	file := l.Parse(path, text)
	if len(l.Files) >= maxFiles {
		file.At(yamlfile.Position{}).Wrong("a policy has at most %d files (rule: size)", maxFiles)
		if !l.full {
			l.Files, l.full = append(l.Files, file), true
		}
		return
	}
	l.Files = append(l.Files, file)
	fmt.Fprintf(sum, "%d:%s", len(text), text)
	if d.Kind == points.Policies && !file.CheckFormat(fileFormat) {
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
			n := root.Find("environment") // what the file declares, all of its parts may use
			d.addEnvironment(n, key{name: "environment"}.texts(n))
		}
		if root = root.FindPath(d.within); root.Kind() == yamlfile.AbsentNode {
			file.At(yamlfile.Position{}).Wrong("the file has no %s", d.within)
			return
		}
		d.Place = root.Place()
	}
	d.Paths = append(d.Paths, path)
	p := &part{Mapping: MappingOf(root), path: path, library: libraryOf(path), included: len(above) > 0}
	includes := []yamlfile.Node{p.At("include")}
	if includes[0].Kind() != yamlfile.TextNode {
		includes = includes[0].Items()
	}
	for _, n := range includes {
		l.include(d, p, n, above, sum)
	}
	d.parts = append(d.parts, p)
}

// include reads an included file, once.
func (l *Loader) include(d *Document, p *part, n yamlfile.Node, above []string, sum hash.Hash) {
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
	path, text, err := l.Open(path)
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
