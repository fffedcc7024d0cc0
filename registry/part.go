package registry

import (
	"fmt"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Part is an agent's tool, hook or capability: a name in the registry, with settings.
type Part struct {
	Name string
	// Settings are values as in decoded JSON. Nil means no settings.
	Settings map[string]any
}

// Tools, Hooks and Capabilities are parts, each in the definition's order.
type (
	Tools        []Part
	Hooks        []Part
	Capabilities []Part
)

// ReadNode reads a list of tools.
func (l *Tools) ReadNode(n yamlfile.Node) { *l = readParts(n, "tool") }

// ReadNode reads a list of hooks.
func (l *Hooks) ReadNode(n yamlfile.Node) { *l = readParts(n, "hook") }

// ReadNode reads a list of capabilities.
func (l *Capabilities) ReadNode(n yamlfile.Node) { *l = readParts(n, "capability") }

// YAMLValue returns the name, or the name with the settings below it.
func (p Part) YAMLValue() any {
	if len(p.Settings) == 0 {
		return p.Name
	}
	return map[string]any{p.Name: p.Settings}
}

// Decode decodes the settings into a struct, as a Maker from With receives them.
func (p Part) Decode(into any) error {
	text, err := yamlfile.Encode("settings.yaml", p.Settings)
	if err != nil {
		return fmt.Errorf("the settings of %q: %w", p.Name, err)
	}
	file := yamlfile.Parse("the settings of "+p.Name, text)
	if root, ok := file.Root(); ok {
		root.Decode(into)
	}
	return file.Err()
}

// readParts reads a list in which each item is a name, or a name with its settings.
func readParts(n yamlfile.Node, what string) []Part {
	if n.Kind() != yamlfile.ListNode {
		n.Wrong("expected a list of names, each of a %s, such as [a, b], got %s", what, n)
		return nil
	}
	var out []Part
	for _, item := range n.Items() {
		name, settings := nameOf(item)
		if item.Kind() == yamlfile.MappingNode && name.Kind() == yamlfile.AbsentNode {
			item.Wrong("expected one %s with its settings below it; begin the next one with a new dash", what)
			continue
		}
		if k := settings.Kind(); k != yamlfile.AbsentNode && k != yamlfile.NullNode && k != yamlfile.MappingNode {
			settings.Wrong("expected the settings of %s %q, as keys with values, got %s", what, name.Raw(), settings)
			continue
		}
		if text, ok := name.Text(); ok {
			out = append(out, Part{text, mapOf(settings)})
		}
	}
	return out
}

// nameOf returns a part's name and settings, or zero Nodes.
func nameOf(item yamlfile.Node) (name, settings yamlfile.Node) {
	if item.Kind() != yamlfile.MappingNode {
		return item, settings
	}
	entries := item.Entries()
	if len(entries) != 1 {
		return name, settings
	}
	return entries[0].Key, entries[0].Value
}

// mapOf returns a mapping as decoded JSON, or nil for an empty one.
func mapOf(n yamlfile.Node) map[string]any {
	if m, ok := n.Value().(map[string]any); ok && len(m) > 0 {
		return m
	}
	return nil
}
