package registry

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// File is a definition with the text that it was read from, so that later errors have a line, too. The Definition may
// be changed. Errors about values that differ from the text have no line. The zero File has an empty definition and no
// text.
type File struct {
	Definition
	source *yamlfile.File
	newer  bool // the text has an unknown format
}

// fileFormat is the format of agent files that this version reads.
const fileFormat = 1

// Read reads a definition, as JSON if the path ends in .json and otherwise as YAML. It does not look up the names in
// the definition. The error joins all mistakes, each with path, line and column.
func Read(path string, text []byte) (Definition, error) {
	file := parseFile(path, text)
	return file.Definition, file.source.Err()
}

func parseFile(path string, text []byte) *File {
	file := &File{source: yamlfile.Parse(path, text)}
	file.source.Advise = secretAdvice
	file.newer = !file.source.CheckFormat(fileFormat)
	if root, ok := file.source.Root(); ok {
		root.Decode(&file.Definition)
	} else if file.source.Err() == nil {
		file.source.At(yamlfile.Position{Line: 1, Column: 1}).Wrong("the file is empty: begin with the line model: openai/gpt-5-mini")
	}
	return file
}

// Load reads the file at a path and looks up all its names. The error joins all mistakes in the file, each with its
// line and column.
func (r Registry) Load(path string) (*File, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return r.Parse(path, text)
}

// ReadFile returns the text of the file at a path, for Parse. It limits the file's size.
func ReadFile(path string) ([]byte, error) {
	text, err := yamlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("reading the agent file: %w", err)
	}
	return text, nil
}

// Parse works like Load for a given text.
func (r Registry) Parse(path string, text []byte) (*File, error) {
	file := parseFile(path, text)
	if file.newer {
		return nil, file.source.Err()
	}
	if err := r.checkFile(file); err != nil {
		return nil, err
	}
	return file, nil
}

// fileOf encodes a definition that was made in Go, so that it has a text.
func fileOf(d Definition) (*File, error) {
	text, err := d.YAML()
	if err != nil {
		return nil, err
	}
	return parseFile(fmt.Sprintf("the definition of agent %q", d.Name), text), nil
}

// node returns the node at a path in the text if it matches the definition's value. Otherwise it returns a node with
// the definition's value, in a separate text.
func (f *File) node(said any, path ...any) yamlfile.Node {
	if root, ok := f.root(); ok {
		if n := root.Find(path...); n.Kind() != yamlfile.AbsentNode && reflect.DeepEqual(withoutEmpty(n.Value()), said) {
			return n
		}
	}
	return yamlfile.Node{}
}

func (f *File) root() (yamlfile.Node, bool) {
	if f.source == nil {
		return yamlfile.Node{}, false
	}
	return f.source.Root()
}

// server returns the node of a server's name in the text, or the zero Node.
func (f *File) server(i int, s Server) yamlfile.Node {
	root, _ := f.root()
	list := root.Find("mcp")
	if list.Kind() != yamlfile.MappingNode {
		return f.node(s.Name, "mcp", i)
	}
	e, _ := lo.Find(list.Entries(), func(e yamlfile.Entry) bool { return e.Key.Raw() == s.Name })
	return e.Key
}

// withoutEmpty removes empty settings from a part.
func withoutEmpty(v any) any {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return v
	}
	for name, settings := range m {
		if inner, ok := settings.(map[string]any); settings == nil || ok && len(inner) == 0 {
			return name
		}
	}
	return v
}

// encodePart returns a part as a separate text.
func encodePart(name string, said any) (*yamlfile.File, yamlfile.Node) {
	text, err := yamlfile.Encode("part.yaml", said)
	file := yamlfile.Parse(name, text)
	file.Advise = secretAdvice
	if err != nil {
		file.At(yamlfile.Position{}).Wrong("%w", err)
	}
	root, _ := file.Root()
	return file, root
}

// secretAdvice explains where secrets belong, for authors who try to put one into a definition.
func secretAdvice(key string) string {
	key = strings.ToLower(key)
	for _, word := range []string{"key", "token", "secret", "password", "auth", "header", "credential"} {
		if key != "tokens" && strings.Contains(key, word) {
			return "secrets are never in an agent file: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY in the environment, " +
				"or variables that api_key_env, or token_env and env of an MCP server, name"
		}
	}
	return ""
}
