package toolexec

import (
	"errors"
	"fmt"
	"iter"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/nils"
)

// Toolbox is a set of tools, each with its name. It is immutable and safe for concurrent use. The zero Toolbox is
// empty.
type Toolbox struct {
	entries []entry
}

// entry is a tool in a toolbox: its spec, read once, and its policy.
type entry struct {
	spec   agent.ToolSpec
	given  Tool // as it was added
	tool   Tool // without its policy wrappers
	policy Policy
}

// NewToolbox returns a toolbox with the tools, in the order in which models see them. The error joins all problems of
// all tools: a tool that is nil or returns an Err, a name that model services do not accept, a duplicate name,
// parameters that are not an object's schema.
func NewToolbox(tools ...Tool) (Toolbox, error) { return Toolbox{}.With(tools...) }

// With returns the toolbox with more tools, under the rules of NewToolbox. The receiver does not change.
func (b Toolbox) With(tools ...Tool) (Toolbox, error) {
	var wrong []error
	entries := append(make([]entry, 0, len(b.entries)+len(tools)), b.entries...)
	names := lo.SliceToMap(entries, func(e entry) (string, bool) { return e.spec.Name, true })
	for i, given := range tools {
		tool, policy, purpose := unwrapTool(given)
		if nils.Is(tool) {
			wrong = append(wrong, fmt.Errorf("tool %d of %d is nil", i+1, len(tools)))
			continue
		}
		e := entry{spec: tool.Spec(), given: given, tool: tool, policy: policy}
		if purpose != nil {
			e.spec.Purpose = purpose
		}
		if err := e.check(); err != nil {
			wrong = append(wrong, err)
		}
		if names[e.spec.Name] {
			wrong = append(wrong, fmt.Errorf("tool %q: the name is given twice", shortenName(e.spec.Name)))
		}
		names[e.spec.Name] = true
		entries = append(entries, e)
	}
	if len(wrong) > 0 {
		return Toolbox{}, fmt.Errorf("building the toolbox: %w", errors.Join(wrong...))
	}
	return Toolbox{entries}, nil
}

func (e entry) check() error {
	var wrong []error
	if !validName(e.spec.Name) {
		wrong = append(wrong, fmt.Errorf("tool %q: a name must be 1 to %d letters, digits, _ and -", shortenName(e.spec.Name), maxNameBytes))
	}
	if broken, ok := e.tool.(interface{ Err() error }); ok && broken.Err() != nil {
		wrong = append(wrong, fmt.Errorf("tool %q: %w", shortenName(e.spec.Name), broken.Err()))
	} else if !ok && e.spec.Parameters != "" {
		if _, err := CompileSchema(e.spec.Parameters); err != nil {
			wrong = append(wrong, fmt.Errorf("tool %q: parameters: %w", shortenName(e.spec.Name), err))
		}
	}
	return errors.Join(wrong...)
}

// maxNameBytes is the maximum length for a tool name at the common model services.
const maxNameBytes = 64

func validName(name string) bool {
	return 0 < len(name) && len(name) <= maxNameBytes && lo.EveryBy([]byte(name), func(c byte) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
	})
}

// All iterates over the tools by name, in the order they were given.
func (b Toolbox) All() iter.Seq2[string, Tool] {
	return func(yield func(string, Tool) bool) {
		for _, e := range b.entries {
			if !yield(e.spec.Name, e.given) {
				return
			}
		}
	}
}

// Specs returns the tools' specs for a model, in the order they were given.
func (b Toolbox) Specs() agent.Tools {
	return agent.ToolsOf(lo.Map(b.entries, func(e entry, _ int) agent.ToolSpec { return e.spec })...)
}
