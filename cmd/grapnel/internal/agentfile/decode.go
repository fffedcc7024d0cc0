package agentfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/samber/lo"
	"go.yaml.in/yaml/v4"
)

// decoder reads a tree into structs and keeps all that is wrong.
type decoder struct {
	name     string
	lines    []string
	problems []Problem
	hidden   map[int]int // by line, from which column on it may be a secret
}

// scalar is a type that reads itself from one word. The error says what is
// expected.
type scalar interface{ Set(text string) error }

// reader is a type that reads itself from any tree.
type reader interface {
	read(d *decoder, n *yaml.Node)
}

func (d *decoder) line(n int) string {
	if n < 1 || n > len(d.lines) {
		return ""
	}
	return strings.TrimSuffix(d.lines[n-1], "\r")
}

// at reports a problem at a place; width is how many characters are meant.
func (d *decoder) at(p Position, width int, format string, args ...any) {
	d.problems = append(d.problems, Problem{
		File: d.name, Position: p, Text: fmt.Sprintf(format, args...), Source: d.line(p.Line), Width: width,
	})
}

// hide keeps what a node says out of what is told of its line.
func (d *decoder) hide(n *yaml.Node) {
	if from, already := d.hidden[n.Line]; !already || n.Column < from {
		d.hidden[n.Line] = n.Column
	}
}

// told is the problems in the order of the file, without what may be a secret.
func (d *decoder) told() []Problem {
	for i, p := range d.problems {
		if from, hidden := d.hidden[p.Line]; hidden {
			runes := []rune(p.Source)
			d.problems[i].Source = string(runes[:min(from-1, len(runes))]) + "…"
		}
	}
	return sorted(d.problems)
}

// wrong reports a problem with a node.
func (d *decoder) wrong(n *yaml.Node, format string, args ...any) {
	d.at(place(n), widthOf(n), format, args...)
}

func place(n *yaml.Node) Position { return Position{n.Line, n.Column} }

// widthOf is how many characters of its line a node takes, about.
func widthOf(n *yaml.Node) int {
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return 1
	}
	first, _, _ := strings.Cut(n.Value, "\n")
	width := len([]rune(first))
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		width += 2
	}
	return width
}

// shown is what a node says, in few words.
func shown(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	text := []rune(n.Value)
	if len(text) > 40 {
		return fmt.Sprintf("%q…", string(text[:40]))
	}
	return fmt.Sprintf("%q", n.Value)
}

// value reads a node into a value that can be set.
func (d *decoder) value(n *yaml.Node, into reflect.Value) {
	if n.Kind == yaml.AliasNode || n.Style&yaml.TaggedStyle != 0 {
		return // told of already
	}
	switch target := into.Addr().Interface().(type) {
	case reader:
		target.read(d, n)
		return
	case scalar:
		d.scalar(n, target)
		return
	}
	switch into.Kind() { //nolint:exhaustive // the types of File
	case reflect.String:
		if text, ok := d.text(n); ok {
			into.SetString(text)
		}
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Value != "true" && n.Value != "false" {
			d.wrong(n, "expected true or false, got %s", shown(n))
			return
		}
		into.SetBool(n.Value == "true")
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.value(n, into.Elem())
	case reflect.Slice:
		d.list(n, into)
	case reflect.Struct:
		d.mapping(n, into)
	default:
		panic("agentfile: no way to read a " + into.Type().String())
	}
}

func (d *decoder) scalar(n *yaml.Node, into scalar) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.wrong(n, "%v, got %s", into.Set(""), shown(n))
		return
	}
	err := into.Set(n.Value)
	if _, secret := errors.AsType[*secretError](err); secret {
		d.hide(n)
		d.wrong(n, "%v", err)
		return
	}
	if err != nil {
		d.wrong(n, "%v, got %s", err, shown(n))
	}
}

func (d *decoder) text(n *yaml.Node) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		d.wrong(n, "expected text, got %s", shown(n))
		return "", false
	case n.Tag != "!!str":
		d.wrong(n, "expected text, got %s: put it in quotes if it is meant so", n.Value)
		return "", false
	}
	return n.Value, true
}

func (d *decoder) list(n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		switch reflect.New(into.Type().Elem()).Interface().(type) {
		case *EnvName, *EnvPattern: // values, where names are wanted
			d.hide(n)
			d.wrong(n, "expected a list of names of variables of the environment, such as [GITHUB_TOKEN], never their values")
		default:
			d.wrong(n, "expected a list, such as [a, b], got %s", shown(n))
		}
		return
	}
	if len(n.Content) == 0 {
		d.wrong(n, "the list is empty: fill it, or leave its key away")
	}
	items := reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.value(item, items.Index(i))
	}
	into.Set(items)
}

// entries is the names and values of a mapping, each name once.
func (d *decoder) entries(n *yaml.Node) []entry {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, "expected keys with values, got %s", shown(n))
		return nil
	}
	var out []entry
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			continue // told of already
		}
		if earlier, again := first[key.Value]; again {
			d.wrong(key, "%q stands here a second time: the first is in line %d", key.Value, earlier.Line)
			continue
		}
		first[key.Value] = key
		out = append(out, entry{key, n.Content[i+1]})
	}
	return out
}

type entry struct{ key, value *yaml.Node }

// mapping reads the keys of a struct: the fields with a tag `key:"name"`, or
// `key:"name,required"`.
func (d *decoder) mapping(n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, "expected keys with values, got %s: known are %s", shown(n), oneOf(lo.Keys(keysOf(into.Type()))))
		return
	}
	fields := map[string]reflect.Value{}
	for name, at := range keysOf(into.Type()) {
		fields[name] = into.FieldByIndex(at)
	}
	given := map[string]bool{}
	for _, e := range d.entries(n) {
		given[e.key.Value] = true
		field, known := fields[e.key.Value]
		if !known {
			advice := secretAdvice(e.key.Value)
			if advice != "" {
				d.hide(e.value)
			}
			d.wrong(e.key, "%s%s", unknown("key", e.key.Value, lo.Keys(fields)), advice)
			continue
		}
		d.value(e.value, field)
	}
	for _, name := range requiredKeys(into.Type()) {
		if !given[name] {
			d.wrong(n, "the key %q is missing", name)
		}
	}
	d.check(n, into)
}

// checker is a struct that says what is wrong between its keys.
type checker interface {
	check(d *decoder, n *yaml.Node)
}

func (d *decoder) check(n *yaml.Node, into reflect.Value) {
	if c, ok := reflect.TypeAssert[checker](into.Addr()); ok {
		c.check(d, n)
	}
}

// keysOf is the keys of a struct, those of embedded ones included, and where their
// fields are.
func keysOf(t reflect.Type) map[string][]int {
	keys := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("key"), ","); name != "" {
			keys[name] = f.Index
		}
	}
	return keys
}

// requiredKeys is the keys that must be there.
func requiredKeys(t reflect.Type) []string {
	return lo.FilterMap(reflect.VisibleFields(t), func(f reflect.StructField, _ int) (string, bool) {
		name, options, _ := strings.Cut(f.Tag.Get("key"), ",")
		return name, options == "required"
	})
}

// secretAdvice says where secrets belong, to somebody who looks for their place in
// the file.
func secretAdvice(key string) string {
	for _, word := range []string{"key", "token", "secret", "password", "auth", "header", "credential"} {
		if plain(key) != "tokens" && strings.Contains(plain(key), word) {
			return "; secrets are never in an agent file: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY in the environment, " +
				"or variables that api_key_env, or token_env and env of an MCP server, name"
		}
	}
	return ""
}
