package blueprints

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// File is a blueprint that was read from a file.
type File struct {
	File *yamlfile.File
	root yamlfile.Node
	Name string
	Text json.RawMessage // as the API takes it
	// unread are the members whose files could not be read.
	unread []string
}

// pipelineMember is the member pipeline in the file of a blueprint, which names files in the place of their texts.
type pipelineMember struct {
	Dir       string   `json:"dir,omitempty"`
	File      string   `json:"file,omitempty"`
	Files     []string `json:"files"`
	Workspace string   `json:"workspace,omitempty"`
}

// Read reads a blueprint, with the files that it names. The error is about a text that is no blueprint at all. Other mistakes
// are in the file.
func Read(path string) (*File, error) {
	text, err := yamlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("reading a blueprint: %w", err)
	}
	b := &File{File: yamlfile.Parse(path, text)}
	root, ok := b.File.Root()
	if !ok {
		if b.File.Err() == nil {
			b.File.At(yamlfile.Position{Line: 1, Column: 1}).Wrong("the file is empty: add name and type")
		}
		return nil, b.File.Err()
	}
	b.root = root
	all, ok := root.Value().(map[string]any)
	if !ok {
		root.Wrong("expected the members of a blueprint, such as name and type")
		return nil, b.File.Err()
	}
	if agent := root.Find("agent"); agent.Kind() == yamlfile.TextNode {
		if all["agent"], err = readAgent(filepath.Join(filepath.Dir(path), agent.Raw())); err != nil {
			agent.Wrong("agent: %w", err)
			b.unread = append(b.unread, "agent")
		}
	}
	if files := root.Find("pipeline", "files"); files.Kind() == yamlfile.ListNode {
		all["pipeline"] = b.readPipeline(filepath.Dir(path))
	}
	b.Name = root.Find("name").Raw()
	b.Text, err = json.Marshal(all)
	return b, err
}

// readAgent returns the content of an agent file as JSON types.
func readAgent(path string) (any, error) {
	text, err := yamlfile.Read(path)
	if err != nil {
		return nil, err
	}
	file := yamlfile.Parse(path, text)
	root, ok := file.Root()
	if !ok {
		return nil, errors.Join(file.Err(), fmt.Errorf("%s is empty", path))
	}
	value := root.Value()
	return value, file.Err()
}

// readPipeline returns the member pipeline with the texts of its files.
func (b *File) readPipeline(beside string) any {
	at := b.root.Find("pipeline")
	all, _ := at.Value().(map[string]any)
	dir, _ := all["dir"].(string)
	dir = filepath.Join(beside, dir)
	delete(all, "dir")
	texts := map[string]string{}
	for _, pattern := range at.Find("files").Items() {
		names, err := fs.Glob(os.DirFS(dir), pattern.Raw())
		if err == nil && len(names) == 0 {
			err = fmt.Errorf("no such file in %s", dir)
		}
		if err != nil {
			pattern.Wrong("pipeline.files: %q: %w", pattern.Raw(), err)
			b.unread = append(b.unread, "pipeline")
		}
		for _, name := range names {
			text, err := yamlfile.Read(filepath.Join(dir, filepath.FromSlash(name)))
			if err != nil {
				pattern.Wrong("pipeline.files: %w", err)
				b.unread = append(b.unread, "pipeline")
				continue
			}
			texts[name] = string(text)
		}
	}
	all["files"] = texts
	return all
}

// check returns everything that is wrong with the blueprint, with the places in the file. The blueprints of the names are stored together
// with this one. It returns an error if the coordinator cannot be asked.
func (b *File) check(ctx context.Context, c *client.Client, names []string) (found, err error) {
	err = c.CheckBlueprint(ctx, b.Text, names...)
	refused, ok := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		return b.File.Err(), nil
	case !ok || len(refused.Errors) == 0:
		return nil, errors.Join(b.File.Err(), err)
	}
	return b.explain(refused), nil
}

// wrong records a mistake at a member, or at the nearest member above it that exists. A mapping or list is marked at
// its key.
func (b *File) wrong(field, message string) {
	at, place := b.root, b.root.Place()
	for name := range strings.SplitSeq(field, ".") {
		key, below := findMember(at, name)
		if below.Kind() == yamlfile.AbsentNode {
			break
		}
		at, place = below, below.Place()
		if kind := at.Kind(); kind == yamlfile.MappingNode || kind == yamlfile.ListNode {
			place = key.Place()
		}
	}
	place.Wrong("%s: %s", field, message)
}

// findMember returns a member of a mapping with its key, or an item of a list, which has none.
func findMember(in yamlfile.Node, name string) (key, value yamlfile.Node) {
	switch in.Kind() {
	case yamlfile.MappingNode:
		e, _ := lo.Find(in.Entries(), func(e yamlfile.Entry) bool { return e.Key.Raw() == name })
		return e.Key, e.Value
	case yamlfile.ListNode:
		if i, err := strconv.Atoi(name); err == nil {
			value = in.Find(i)
		}
	case yamlfile.AbsentNode, yamlfile.NullNode, yamlfile.TextNode, yamlfile.NumberNode, yamlfile.BoolNode:
	}
	return value, value
}

// explain returns what a coordinator has refused, with the places in the file. What is said about files that could not be read is left out.
func (b *File) explain(refused *client.Error) error {
	again := *b
	again.File = b.File.Again()
	again.root, _ = again.File.Root()
	for _, e := range refused.Errors {
		field := strings.TrimPrefix(strings.TrimPrefix(e.Location, "body"), ".")
		member, _, _ := strings.Cut(field, ".")
		if !slices.Contains(b.unread, member) {
			again.wrong(cmp.Or(field, "blueprint"), e.Message)
		}
	}
	return again.File.Err()
}
