package agentfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// File is what an agent file says. What it does not say is the zero value.
type File struct {
	Name            string  `key:"name"`
	Model           Model   `key:"model"`
	APIKeyEnv       EnvName `key:"api_key_env"`
	BaseURL         URL     `key:"base_url"`
	Price           *Price  `key:"price"`
	Instructions    string  `key:"instructions"`
	MaxOutputTokens Count   `key:"max_output_tokens"`
	Temperature     *Number `key:"temperature"`
	Options         Options `key:"options"`
	Tools           Tools   `key:"tools"`
	MCP             Servers `key:"mcp"`
	Hooks           Hooks   `key:"hooks"`
	Guards          Guards  `key:"guards"`
	Retry           Retry   `key:"retry"`
	Parallel        Count   `key:"parallel"`
	Output          Output  `key:"output"`

	path  string
	lines []string
}

// Guards limit a run.
type Guards struct {
	Steps  Count    `key:"steps"`
	Tokens Count    `key:"tokens"`
	Cost   Dollars  `key:"cost"`
	Time   Duration `key:"time"`
}

// Retry is how a model call that failed is made again.
type Retry struct {
	Attempts Count    `key:"attempts"`
	Delay    Duration `key:"delay"`
	Max      Duration `key:"max"`
}

// Load reads the file at a path. What is wrong with its content is an *Error.
func Load(path string) (*File, error) {
	text, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Read is the text of the file at a path, not much more of it than Parse takes.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the agent file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the agent file: %w", err)
	}
	return text, nil
}

// Parse reads the text of an agent file. Path is what its errors call it; one that
// ends in .json is read as JSON. What is wrong is an *Error.
func Parse(path string, text []byte) (*File, error) {
	d := &decoder{name: path, hidden: map[int]int{}}
	if len(text) > maxBytes {
		d.at(Position{}, 0, "the file is larger than a megabyte: that is no agent file")
		return nil, &Error{d.problems}
	}
	parse, lineEnd := d.parseYAML, yamlLineEnd
	if strings.EqualFold(filepath.Ext(path), ".json") {
		parse, lineEnd = d.parseJSON, jsonLineEnd
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	d.lines = lineEnd.Split(string(text), -1)
	file := &File{path: path, lines: d.lines}
	if root := parse(text); root != nil {
		if d.refuse(root, 0); !errorsOfDepth(d.problems) {
			d.value(root, reflect.ValueOf(file).Elem())
		}
	} else if len(d.problems) == 0 {
		d.at(Position{1, 1}, 0, "the file is empty: begin with the line model: openai/gpt-5-mini")
	}
	if len(d.problems) > 0 {
		return nil, &Error{d.told()}
	}
	return file, nil
}

// What each format takes for the end of a line.
var (
	yamlLineEnd = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]")
	jsonLineEnd = regexp.MustCompile("\n")
)

func errorsOfDepth(problems []Problem) bool {
	for _, p := range problems {
		if strings.HasPrefix(p.Text, "nested more than") {
			return true
		}
	}
	return false
}

// Options are settings of one provider, by their names there.
type Options map[string]any

func (o *Options) read(d *decoder, n *yaml.Node) {
	*o = Options{}
	for _, e := range d.entries(n) {
		(*o)[e.key.Value] = d.plain(e.value)
	}
}

// Wrong is a mistake that was found out later, of what stands at a place in the
// file; the error itself where the place is nowhere, as it came from a flag.
func (f *File) Wrong(at Position, err error) error {
	if at.Line == 0 {
		return err
	}
	d := decoder{lines: f.lines}
	return &Error{[]Problem{{File: f.path, Position: at, Text: err.Error(), Source: d.line(at.Line), Width: 1}}}
}
