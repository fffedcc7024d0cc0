package file

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/lazy"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Mapping is a mapping in a file.
type Mapping struct {
	Node    yamlfile.Node
	Entries []yamlfile.Entry // in file order
}

// MappingOf reads a mapping, and reports any other value.
func MappingOf(n yamlfile.Node) Mapping { return Mapping{n, n.Entries()} }

// with returns the mapping with more entries, which replace those with equal keys.
func (m Mapping) with(entries []yamlfile.Entry) Mapping {
	m.Entries = slices.Clone(m.Entries)
	for _, e := range entries {
		if i := m.index(e.Key.Raw()); i >= 0 {
			m.Entries[i] = e
			continue
		}
		m.Entries = append(m.Entries, e)
	}
	return m
}

// without returns the mapping without a key.
func (m Mapping) without(key string) Mapping {
	m.Entries = lo.Reject(m.Entries, func(e yamlfile.Entry, _ int) bool { return e.Key.Raw() == key })
	return m
}

func (m Mapping) index(key string) int {
	return slices.IndexFunc(m.Entries, func(e yamlfile.Entry) bool { return e.Key.Raw() == key })
}

// Has reports whether the mapping has a key.
func (m Mapping) Has(key string) bool { return m.index(key) >= 0 }

// At returns a key's value, or the zero Node.
func (m Mapping) At(key string) yamlfile.Node {
	if i := m.index(key); i >= 0 {
		return m.Entries[i].Value
	}
	return yamlfile.Node{}
}

// Place returns a key's place, or the mapping's place if the key is missing.
func (m Mapping) Place(key string) yamlfile.Place {
	if i := m.index(key); i >= 0 {
		return m.Entries[i].Key.Place()
	}
	return m.Node.Place()
}

// Word returns the text of a key, which must be one of some words.
func (m Mapping) Word(name string, words ...string) string {
	if !m.Has(name) {
		return ""
	}
	return key{name: name, words: words}.text(m.At(name))
}

// Kinds returns the kinds that a key chooses: all known ones if it is true, or those in its list.
func (m Mapping) Kinds(name string, known []string) []string {
	n := m.At(name)
	if n.Kind() == yamlfile.BoolNode {
		return lo.Ternary(n.Value() == true, known, nil)
	}
	chosen := key{name: name}.texts(n)
	for _, kind := range chosen {
		if !slices.Contains(known, kind) {
			n.Wrong("%s: %s", name, yamlfile.Unknown("kind", kind, known))
			return nil
		}
	}
	return chosen
}

// Decode reads the keys into the tagged fields of structs. It reports unknown keys, with a hint from advice unless that is nil, and
// values of the wrong type. Fields without a key keep their value. What names the mapping in errors.
func (m Mapping) Decode(what string, advice func(key string) string, into ...any) {
	var known []string
	for _, target := range into {
		if target == nil {
			continue
		}
		value := reflect.ValueOf(target).Elem()
		for _, k := range keysOf(value.Type()) {
			known = append(known, k.name)
			if n := m.At(k.name); n.Kind() != yamlfile.AbsentNode {
				k.read(n, value.FieldByIndex(k.index).Addr().Interface())
			}
		}
	}
	if what == "" {
		return // other packages read the other keys
	}
	for _, e := range m.Entries {
		name, hint := e.Key.Raw(), ""
		if slices.Contains(known, name) {
			continue
		}
		if advice != nil {
			hint = advice(name)
		}
		e.Key.Wrong("%s: %s", what, lo.CoalesceOrEmpty(hint, yamlfile.Unknown("key", name, known)))
	}
}

// read reads a value into a field, and reports a value of the wrong type.
func (k key) read(n yamlfile.Node, into any) {
	switch into := into.(type) {
	case *yamlfile.Node:
		*into = n
	case *string:
		*into = k.text(n)
	case *bool:
		*into = lo.FromPtr(k.flag(n))
	case **bool:
		*into = k.flag(n)
	case *int:
		*into = lo.FromPtr(k.number(n))
	case **int:
		*into = k.number(n)
	case *time.Duration:
		*into = k.duration(n)
	case *[]string:
		*into = k.texts(n)
	case *map[string]string:
		*into = map[string]string{}
		for _, e := range n.Entries() {
			if text, ok := e.Value.Text(); ok {
				(*into)[e.Key.Raw()] = text
			}
		}
	case *map[string]any:
		var ok bool
		if *into, ok = n.Value().(map[string]any); !ok {
			n.Wrong("%s: expected keys with values, got %s", k.name, n)
		}
	case *any:
		*into = n.Value()
	default:
		panic("file: the field for the key " + k.name + " has a type that read does not know") // a mistake in this package: each key is read in tests
	}
}

// namePattern matches the names of policies, rules and definitions.
const namePattern = `^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`

var nameForm = lazy.Regexp(namePattern)

const namesAre = "use at most 100 letters, digits, _, - and dots, and begin with a letter, a digit or _"

// text returns a text. A key with a form accepts a number or a bool, too, as written.
func (k key) text(n yamlfile.Node) string {
	scalar := n.Kind() == yamlfile.TextNode || n.Kind() == yamlfile.NumberNode || n.Kind() == yamlfile.BoolNode
	switch {
	case k.words != nil && n.Kind() != yamlfile.TextNode:
		n.Wrong("%s: expected one of %s, got %s", k.name, yamlfile.OneOf(k.words), n)
	case k.words != nil && !slices.Contains(k.words, n.Raw()):
		n.Wrong("%s", yamlfile.Unknown(k.name, n.Raw(), k.words))
	case k.form == "name" && scalar && !nameForm().MatchString(n.Raw()):
		if n.Raw() != "" {
			n.Wrong("%s: invalid name %q: %s", k.name, n.Raw(), namesAre)
		}
	case k.form != "" && !scalar:
		n.Wrong("%s: expected text, got %s", k.name, n)
	case k.form != "" || k.words != nil:
		return n.Raw()
	default:
		text, _ := n.Text()
		return text
	}
	return ""
}

// flag returns a bool; nil for any other value.
func (k key) flag(n yamlfile.Node) *bool {
	b, ok := n.Value().(bool)
	if !ok {
		n.Wrong("%s: expected true or false, got %s", k.name, n)
		return nil
	}
	return &b
}

// number returns a whole number in the key's range; nil for any other value.
func (k key) number(n yamlfile.Node) *int {
	if k.form == "priority" && n.Kind() != yamlfile.NumberNode {
		band, ok := bands[n.Raw()]
		if !ok || n.Kind() != yamlfile.TextNode {
			n.Wrong("priority: expected a whole number, or one of %s, got %s", yamlfile.OneOf(lo.Keys(bands)), n)
		}
		return &band
	}
	i, err := strconv.Atoi(n.Raw())
	if n.Kind() != yamlfile.NumberNode || err != nil || i < k.least || i > k.most {
		n.Wrong("%s: expected a whole number from %d to %d, got %s", k.name, k.least, k.most, n)
		return nil
	}
	return &i
}

// longest is the maximum duration in a file.
const longest = 366 * 24 * time.Hour

// duration returns a duration with a unit, or a number of seconds.
func (k key) duration(n yamlfile.Node) time.Duration {
	text := n.Raw()
	if n.Kind() == yamlfile.NumberNode {
		text = ""
		if s, err := strconv.ParseFloat(n.Raw(), 64); err == nil && s <= longest.Seconds() {
			text = time.Duration(s * float64(time.Second)).String()
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > longest {
		n.Wrong("%s: expected a time above zero, such as 5s, 10m, or a number of seconds, got %s", k.name, n)
		return 0
	}
	return d
}

// texts returns a list of texts, or a single one. A program with its arguments must be a list, because the arguments in a single
// text are not separated clearly.
func (k key) texts(n yamlfile.Node) (out []string) {
	items := []yamlfile.Node{n}
	switch {
	case n.Kind() == yamlfile.ListNode:
		if items = n.Items(); len(items) == 0 {
			n.Wrong("%s: the list is empty: add an element, or remove the key", k.name)
		}
	case n.Kind() == yamlfile.TextNode && k.form == "argv":
		words := lo.Map(strings.Fields(n.Raw()), func(word string, _ int) string { return strconv.Quote(word) })
		n.Wrong("argv: expected a list, such as [%s]: no shell splits a text", strings.Join(words, ", "))
	}
	for _, item := range items {
		text, ok := item.Text()
		switch {
		case !ok:
			continue
		case k.form != "people":
		case text == "":
			item.Wrong("approvers: expected the name or the role of a person, got an empty text")
		case strings.TrimSpace(text) != text:
			item.Wrong("approvers: %q begins or ends with a space: remove it", text)
		case slices.Contains(out, text):
			item.Wrong("approvers: %q is listed twice: remove one of them", text)
		}
		out = append(out, text)
	}
	return out
}
