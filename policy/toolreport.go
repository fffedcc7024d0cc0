package policy

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/points"
	"github.com/grapnel-go/grapnel/policy/library"
	"github.com/grapnel-go/grapnel/policy/tools"
)

// ToolReport describes a tool as a policy sees it.
type ToolReport struct {
	// Description says what the tool does, by the policy's table of tools and by inference.
	Description *tools.Description
	// Rules are the hook names of the rules at PreToolUse that may decide about a call, apart from rules for tools and
	// arguments that no other rule understands.
	Rules []string
}

// Unguarded reports whether the tool changes something, or may change something, and no rule is about it.
func (r ToolReport) Unguarded() bool { return !r.Description.OnlyReads() && len(r.Rules) == 0 }

// Tools returns a report for each tool, and the hook names of the rules at PreToolUse that can match none of them. A rule
// is about the effects that its condition names with does(…); a rule that names none is about every tool that its matchers
// accept.
func (p *Policy) Tools(specs ...agent.ToolSpec) (reports []ToolReport, never []string) {
	matched := map[string]bool{}
	for _, spec := range specs {
		report := ToolReport{}
		for _, r := range p.rules {
			if r.point.Name != hooks.PreToolUse {
				continue
			}
			if report.Description == nil && r.doc.tracker != nil {
				report.Description = r.doc.tracker.DescribeSpec(spec)
			}
			if !r.acceptsTool(spec.Name) {
				continue
			}
			about := r.effects()
			switch {
			case r.forUnknown():
				matched[r.name()] = true
			case len(about) == 0, r.doc.tracker != nil && r.doc.tracker.DescribeSpec(spec).Does(about...):
				matched[r.name()] = true
				report.Rules = append(report.Rules, r.name())
			}
		}
		if report.Description == nil {
			report.Description = tools.Table{}.Describe(spec)
		}
		reports = append(reports, report)
	}
	for _, r := range p.rules {
		if r.point.Name == hooks.PreToolUse && !matched[r.name()] {
			never = append(never, r.name())
		}
	}
	return reports, never
}

// CheckTools returns a warning for each tool that changes something, or may, and has no rule, for each rule that can
// match none of the tools, and for each tool and argument under "tools" that does not exist. It returns none for a policy
// whose rules do not ask what tools do.
func (p *Policy) CheckTools(specs ...agent.ToolSpec) []Warning {
	i := slices.IndexFunc(p.rules, func(r *rule) bool { return r.forUnknown() || len(r.effects()) > 0 })
	if i < 0 {
		return nil
	}
	reports, never := p.Tools(specs...)
	var out []Warning
	at := p.rules[i].doc.Place
	for _, r := range reports {
		if r.Unguarded() {
			w := warningAt(at, "unguarded", "", "no rule is about the tool %q, which may change something: describe it under \"tools\", or add a rule",
				r.Description.Tool)
			w.Tool = r.Description.Tool
			out = append(out, w)
		}
	}
	for _, r := range p.rules {
		if slices.Contains(never, r.name()) && len(r.effects()) > 0 && !r.doc.Required {
			out = append(out, warningAt(r.place, "effect", r.name(), "none of the tools does what this rule is about"))
		}
	}
	return append(out, p.checkTables(specs)...)
}

// checkTables returns a warning for each tool and each argument in the tables of tools that does not exist, because its
// description has no effect.
func (p *Policy) checkTables(specs []agent.ToolSpec) (out []Warning) {
	known := map[string]agent.ToolSpec{}
	for _, spec := range specs {
		known[spec.Name] = spec
	}
	seen := map[yamlfile.Place]bool{}
	for _, r := range p.rules {
		for _, table := range r.doc.Tools {
			if seen[table.Place()] || strings.HasPrefix(table.Place().File(), library.Prefix) {
				continue
			}
			seen[table.Place()] = true
			for _, tool := range table.Entries() {
				name := tool.Key.Raw()
				spec, ok := known[name]
				if !ok {
					out = append(out, warningAt(tool.Key.Place(), "tool", "", "%s", yamlfile.Unknown("tool", name, slices.Sorted(maps.Keys(known)))))
					continue
				}
				for _, role := range tool.Value.Find("roles").Entries() {
					if argument := role.Key.Raw(); !strings.Contains(spec.Parameters, strconv.Quote(argument)) {
						out = append(out, warningAt(role.Key.Place(), "argument", "", "the tool %q has no argument %q", name, argument))
					}
				}
			}
		}
	}
	return out
}

// acceptsTool reports whether the rule's matchers accept a tool.
func (r *rule) acceptsTool(name string) bool {
	if len(r.match.tools) == 0 {
		return true
	}
	probe := hooks.NewSet(r.point.Observe(r.name(), points.NoCheck).Matching(r.match.matchers...))
	compiled, err := probe.Compile(name)
	return err == nil && len(compiled.Gaps()) == 0
}

var (
	doesCall    = regexp.MustCompile(`(!?)\bdoes\(([^)]*)\)`)
	quotedWords = regexp.MustCompile(`["']([a-z-]+)["']`)
)

// effects returns the effects that the rule's condition requires, by its text.
func (r *rule) effects() []tools.Effect {
	if r.when == nil {
		return nil
	}
	var out []tools.Effect
	for _, call := range doesCall.FindAllStringSubmatch(r.when.String(), -1) {
		if call[1] == "!" {
			continue
		}
		for _, word := range quotedWords.FindAllStringSubmatch(call[2], -1) {
			out = append(out, tools.Effect(word[1]))
		}
	}
	return slices.Compact(out)
}

// forUnknown reports whether a rule is about everything that is not known to only read.
func (r *rule) forUnknown() bool {
	return r.when != nil && strings.Contains(r.when.String(), "only_reads()")
}
