package tools

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Table describes tools by their exact names. A nil Table describes none.
type Table map[string]Entry

// Entry is a person's description of a tool. Missing information is inferred.
type Entry struct {
	// Effects replace the inferred ones unless they are empty.
	Effects []Effect `json:"effects,omitempty" key:"effects" yaml:"effects,omitempty,flow"`
	// Records says what the tool's answers contain.
	Records []Records `json:"records,omitempty" key:"records" yaml:"records,omitempty,flow"`
	// Roles maps argument names to roles.
	Roles map[string]Role `json:"roles,omitempty" key:"roles" yaml:"roles,omitempty,flow"`
}

// Validate returns an error that joins all unknown words in t, or nil.
func (t Table) Validate() error {
	var wrong []error
	for _, name := range sortedKeys(t) {
		e := t[name]
		for _, effect := range e.Effects {
			if !slices.Contains(effects, effect) {
				wrong = append(wrong, fmt.Errorf("tool %q: unknown effect %q: expected %s", name, effect, join(effects)))
			}
		}
		for _, r := range e.Records {
			if !slices.Contains(records, r) {
				wrong = append(wrong, fmt.Errorf("tool %q: unknown records %q: expected %s", name, r, join(records)))
			}
		}
		for _, argument := range sortedKeys(e.Roles) {
			if role := e.Roles[argument]; role != Unknown && !slices.Contains(roles, role) {
				wrong = append(wrong, fmt.Errorf("tool %q: argument %q: unknown role %q: expected %s", name, argument, role, join(roles)))
			}
		}
	}
	return errors.Join(wrong...)
}

// With returns t with more entries. Entries in t win.
func (t Table) With(more Table) Table {
	out := maps.Clone(more)
	if out == nil {
		out = Table{}
	}
	maps.Copy(out, t)
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func join[S ~string](words []S) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return strings.Join(list, ", ")
}

// catalogue describes well-known tools whose names say little.
var catalogue = Table{
	"bash":      {Effects: []Effect{Executes}},
	"shell":     {Effects: []Effect{Executes}},
	"terminal":  {Effects: []Effect{Executes}},
	"Bash":      {Effects: []Effect{Executes}},
	"Task":      {Effects: []Effect{Executes}, Roles: map[string]Role{"prompt": Content, "description": Content}},
	"Read":      {Effects: []Effect{Reads}, Records: []Records{Files}},
	"Grep":      {Effects: []Effect{Reads}, Records: []Records{Files}},
	"Glob":      {Effects: []Effect{Reads}, Records: []Records{Files}},
	"LS":        {Effects: []Effect{Reads}, Records: []Records{Files}},
	"Edit":      {Effects: []Effect{Writes}},
	"Write":     {Effects: []Effect{Writes}},
	"WebFetch":  {Effects: []Effect{Fetches}, Records: []Records{Pages}},
	"WebSearch": {Effects: []Effect{Reads}, Records: []Records{Pages}},
	"TodoWrite": {Effects: []Effect{Writes}},
	"think":     {Effects: []Effect{Reads}, Records: []Records{Clock}},
	"calculate": {Effects: []Effect{Reads}, Records: []Records{Clock}},
}
