package tools

import (
	"slices"

	"github.com/grapnel-go/grapnel/agent"
)

// Description says what a tool does. It is immutable once it was returned, and safe for concurrent use.
type Description struct {
	Tool string `json:"tool"`
	// Effects are empty for a tool of which nothing is known.
	Effects []Effect `json:"effects"`
	// Records are the contents of the answers of a tool that reads.
	Records []Records `json:"records,omitempty"`
	// Arguments are those of the tool's schema, and those that a person has described.
	Arguments []Argument `json:"arguments,omitempty"`
	// Source and Certainty are those of the effects.
	Source    Source    `json:"source"`
	Certainty Certainty `json:"certainty"`
	// NoArguments is set if the schema says that the tool has no arguments.
	NoArguments bool `json:"no_arguments,omitempty"`

	set effectSet
}

// Argument describes an argument of a tool.
type Argument struct {
	Name      string    `json:"name"`
	Role      Role      `json:"role"`
	Source    Source    `json:"source"`
	Certainty Certainty `json:"certainty"`
}

// Does reports whether a tool has one of the effects.
func (d *Description) Does(e ...Effect) bool { return d.set&setOf(e...) != 0 }

// OnlyReads reports whether it is known that a tool changes nothing.
func (d *Description) OnlyReads() bool { return d.set != 0 && d.set&^harmless == 0 }

// Returns reports whether the answers of a tool consist of such records.
func (d *Description) Returns(r Records) bool { return slices.Contains(d.Records, r) }

// Role returns the role of an argument. An argument that the schema does not have is judged by its name.
func (d *Description) Role(argument string) Role {
	for _, a := range d.Arguments {
		if a.Name == argument {
			return a.Role
		}
	}
	role, _ := roleOf(property{name: argument}, d.set)
	return role
}

// Describe describes a tool: by the table first, then by the tool's own declaration, the catalogue of well-known tools,
// and by its name, description and schema. What one source leaves open, the next one answers.
func (t Table) Describe(spec agent.ToolSpec) *Description {
	d := infer(spec)
	if entry, ok := catalogue[spec.Name]; ok {
		d.apply(entry, FromCatalogue, spec)
	}
	if p := spec.Purpose; p != nil {
		d.declare(p, spec)
	}
	if entry, ok := t[spec.Name]; ok {
		d.apply(entry, FromFile, spec)
	}
	d.Effects = d.set.list()
	return d
}

// declare puts the tool's own declaration over what is known. A hint that the tool only reads counts only where nothing
// says otherwise, and a hint that it changes something only where nothing more is known.
func (d *Description) declare(p *agent.Purpose, spec agent.ToolSpec) {
	e := Entry{Roles: map[string]Role{}}
	for _, effect := range p.Effects {
		e.Effects = append(e.Effects, Effect(effect))
	}
	for _, r := range p.Records {
		e.Records = append(e.Records, Records(r))
	}
	for argument, role := range p.Roles {
		e.Roles[argument] = Role(role)
	}
	if p.Hint {
		said := setOf(e.Effects...)
		switch {
		case d.set == 0, said&^harmless != 0 && d.OnlyReads():
		case said&^harmless == 0 && !d.OnlyReads():
			return
		default:
			e.Effects = nil
		}
	}
	d.apply(e, FromDeclaration, spec)
}

// apply puts what an entry says over what is known.
func (d *Description) apply(e Entry, source Source, spec agent.ToolSpec) {
	if len(e.Effects) > 0 {
		d.set, d.Source, d.Certainty = setOf(e.Effects...), source, Sure
		for _, p := range propertiesOf(spec.Parameters) { // roles depend on effects
			i := slices.IndexFunc(d.Arguments, func(a Argument) bool { return a.Name == p.name })
			if d.Arguments[i].Source == FromInference {
				d.Arguments[i].Role, d.Arguments[i].Certainty = roleOf(p, d.set)
			}
		}
		d.Records = nil
	}
	if len(e.Records) > 0 {
		d.Records = e.Records
	}
	for _, name := range sortedKeys(e.Roles) {
		i := slices.IndexFunc(d.Arguments, func(a Argument) bool { return a.Name == name })
		if i < 0 {
			d.Arguments = append(d.Arguments, Argument{Name: name})
			i = len(d.Arguments) - 1
		}
		d.Arguments[i] = Argument{name, e.Roles[name], source, Sure}
	}
}
