package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/tools"
)

// ToolReport says what a policy knows about a tool.
type ToolReport struct {
	// Description is what the tool does, by the policy's table of tools and by inference.
	Description *tools.Description
	// Rules are the hooks of the rules at PreToolUse that may decide about a call, apart from those for tools and arguments
	// that no other rule understands.
	Rules []string
}

// Unguarded reports whether the tool changes something, or may change something, and no rule is about it.
func (r ToolReport) Unguarded() bool { return !r.Description.OnlyReads() && len(r.Rules) == 0 }

// Tools returns what the policy knows about tools, and the hooks of the rules at PreToolUse that can match none of them.
// A rule is about the effects that its condition names with does(…); a rule that names none is about every tool that its
// matchers accept.
func (p *Policy) Tools(specs ...agent.ToolSpec) (reports []ToolReport, never []string) {
	names := lo.Map(specs, func(s agent.ToolSpec, _ int) string { return s.Name })
	matched := map[string]bool{}
	for _, spec := range specs {
		report := ToolReport{}
		for _, r := range p.rules {
			if r.point.name != hooks.PreToolUse {
				continue
			}
			if report.Description == nil && r.doc.tracker != nil {
				report.Description = r.doc.tracker.DescribeSpec(spec)
			}
			if !r.acceptsTool(spec.Name, names) {
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
		if r.point.name == hooks.PreToolUse && !matched[r.name()] {
			never = append(never, r.name())
		}
	}
	return reports, never
}

// acceptsTool reports whether the matchers of a rule accept a tool.
func (r *rule) acceptsTool(name string, _ []string) bool {
	if len(r.match.tools) == 0 {
		return true
	}
	probe := hooks.NewSet(r.point.observe(r.name(), noCheck).Matching(r.match.matchers...))
	compiled, err := probe.Compile(name).Get()
	return err == nil && len(compiled.Gaps()) == 0
}

var (
	doesCall    = regexp.MustCompile(`(!?)\bdoes\(([^)]*)\)`)
	quotedWords = regexp.MustCompile(`["']([a-z-]+)["']`)
)

// effects returns the effects that the condition of a rule requires, by its text.
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
