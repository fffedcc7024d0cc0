package tools

import (
	"slices"

	"github.com/grapnel-go/grapnel/agent"
)

// Description describes a tool. It is immutable and safe for concurrent use.
type Description struct {
	Tool string `json:"tool"`
	// Effects is empty for an unknown tool.
	Effects []Effect `json:"effects"`
	// Records lists the contents of a reading tool's answers.
	Records []Records `json:"records,omitempty"`
	// Arguments lists the arguments in the tool's schema and the arguments that a person described.
	Arguments []Argument `json:"arguments,omitempty"`
	// Source and Certainty apply to the effects.
	Source    Source    `json:"source"`
	Certainty Certainty `json:"certainty"`
	// NoArguments is set if the schema says that the tool has no arguments.
	NoArguments bool `json:"no_arguments,omitempty"`

	set effectSet
}

// Argument describes a tool's argument.
type Argument struct {
	Name      string    `json:"name"`
	Role      Role      `json:"role"`
	Source    Source    `json:"source"`
	Certainty Certainty `json:"certainty"`
}

// Does reports whether a tool has any of the effects.
func (d *Description) Does(e ...Effect) bool { return d.set&setOf(e...) != 0 }

// OnlyReads reports whether a tool is known to change nothing.
func (d *Description) OnlyReads() bool { return d.set != 0 && d.set&^harmless == 0 }

// Returns reports whether a tool's answers consist of such records.
func (d *Description) Returns(r Records) bool { return slices.Contains(d.Records, r) }

// Role returns an argument's role. An argument that is not in the schema is judged by its name.
func (d *Description) Role(argument string) Role {
	for _, a := range d.Arguments {
		if a.Name == argument {
			return a.Role
		}
	}
	role, _ := roleOf(property{name: argument}, d.set)
	return role
}

// Describe describes a tool from four sources in this order: the table, the tool's own declaration, the catalogue of
// well-known tools, and its name, description and schema. Each source fills the gaps that earlier sources leave.
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

// declare applies the tool's own declaration. A hint that the tool only reads is used only if nothing contradicts it,
// and a hint that it changes something only if nothing more specific is known.
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

// apply applies an entry's information.
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
