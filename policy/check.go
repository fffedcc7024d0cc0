package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/points"
	"github.com/grapnel-go/grapnel/policy/library"
)

// Warning describes content of a policy that loads but is probably a mistake, or that an author should know about.
type Warning struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Code is the warning's kind: tool, argument, agent, stage, point, unreachable, condition, waiver, shell, action, name,
	// required, unguarded or effect; or shadow or waived, which report intended states.
	Code string `json:"code"`
	// Rule is the rule's hook, policy/id; empty if the warning is not about a rule.
	Rule string `json:"rule,omitempty"`
	// Error is set for a certain mistake: a rule that none of the known tools can match.
	Error bool `json:"error,omitempty"`
	// Never is set when the rule can never apply, because an earlier rule always denies or its condition is always
	// false.
	Never bool   `json:"never,omitempty"`
	Text  string `json:"text"`
	// Tool is the tool that no rule is about, in a warning about one.
	Tool string `json:"tool,omitempty"`
}

// String returns the warning with its place.
func (w Warning) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", w.File, w.Line, w.Column, w.Code, w.Text)
}

// Meant reports whether the warning is about an intended state: a rule in shadow, a waiver in force, or a library rule for tools
// that the agent does not have.
func (w Warning) Meant() bool {
	return w.Code == "shadow" || w.Code == "waived" || w.Code == "effect" && strings.HasPrefix(w.Rule, library.Prefix)
}

func warningAt(at yamlfile.Place, code, rule, format string, args ...any) Warning {
	return Warning{File: at.File(), Line: at.Line, Column: at.Column, Code: code, Rule: rule, Text: fmt.Sprintf(format, args...)}
}

// Check returns probable mistakes: tools that do not exist, rules that are never asked because an earlier rule always
// denies, conditions that are always true or false, and values in shell commands that the shell could read as code. It
// also lists waivers, ended ones included, and rules in shadow. Tools are the names of all existing tools; if there are
// none, tools are not checked. Rules in the library and in required policies are meant for any agent, so they may name
// other tools. The warnings are in file order.
func (p *Policy) Check(tools ...string) []Warning {
	here := hooks.Scope{Points: hooks.PointNames(), LaterAgents: []string{"*"}, Stages: []string{"*"}}
	for _, name := range tools {
		here.Tools = append(here.Tools, hooks.Tool{Name: name})
	}
	if len(tools) == 0 {
		here.LaterTools = []string{"*"}
	}
	return p.CheckIn(hooks.Reach{Here: here})
}

// CheckIn works like Check for agents with the tools, agents, stages and points in a reach.
func (p *Policy) CheckIn(reach hooks.Reach) []Warning {
	return p.checkWith(p.Missing(hooks.NewSet(p.probes()...).Gaps(reach)))
}

// Missing returns warnings about tools, arguments, agents, stages and points that rules name and an agent lacks, from the gaps
// that capability.Plan.Gaps returned, and about conditions that can never be true. Tools and arguments count as lacking
// only if the sub-agents lack them, too. Rules in the library and in required policies are meant for any agent and are omitted.
func (p *Policy) Missing(gaps []hooks.Gap) []Warning {
	missing := lo.FilterMap(gaps, func(g hooks.Gap, _ int) (Warning, bool) {
		if g.Origin == nil {
			return Warning{}, false
		}
		r, found := lo.Find(p.rules, func(r *rule) bool { return r.policyName() == g.Origin.Policy && r.id == g.Origin.Rule })
		if !found || r.doc.Required {
			return Warning{}, false
		}
		w := r.missingWarning(g)
		return w, !strings.HasPrefix(w.File, library.Prefix) && !strings.HasPrefix(r.place.File(), library.Prefix)
	})
	for _, r := range p.rules {
		if !r.doc.Required && !strings.HasPrefix(r.place.File(), library.Prefix) {
			missing = append(missing, r.neverTrue()...)
		}
	}
	return lo.Uniq(missing)
}

// neverTrue returns a warning about a condition that no event can meet, whatever the agent has.
func (r *rule) neverTrue() []Warning {
	if r.when == nil {
		return nil
	}
	value, constant := r.when.Constant()
	both := r.when.Contradiction()
	var w Warning
	switch {
	case constant && !value:
		w = warningAt(r.place, "condition", r.name(), "its condition is always false: the rule never applies")
	case both != "":
		w = warningAt(r.place, "condition", r.name(), "its condition can never be true: %s", both)
	default:
		return nil
	}
	w.Never = true
	return []Warning{w}
}

// missingWarning returns the warning about a gap, at the place of the missing name.
func (r *rule) missingWarning(g hooks.Gap) Warning {
	at, code := r.place, "tool"
	placed := func(list []pattern, text string) {
		if p, ok := lo.Find(list, func(p pattern) bool { return p.text == text }); ok {
			at = p.place
		}
	}
	switch {
	case g.Tool != "":
		placed(r.match.tools, g.Tool)
	case g.Argument != "":
		code = "argument"
		placed(r.match.args, g.Argument)
	case g.Agent != "":
		code = "agent"
	case g.Stage != "":
		code = "stage"
	case g.Point != "":
		code = "point"
	}
	w := warningAt(at, code, r.name(), "%s%s", g.Text, lo.Ternary(g.Never, "; the rule can match nothing", ""))
	w.Error = g.Never && code == "tool"
	return w
}

// probes returns hooks that have the rules' matchers and do nothing.
func (p *Policy) probes() []hooks.Hook {
	return lo.Map(p.rules, func(r *rule, _ int) hooks.Hook {
		h := r.point.Observe(r.name(), points.NoCheck)
		if r.judges() {
			h = r.point.Control(r.name(), func(context.Context, hooks.Context) hooks.Result { return hooks.Result{} })
		}
		return r.matching(h)
	})
}

// matching returns the hook with the rule's matchers and origin.
func (r *rule) matching(h hooks.Hook) hooks.Hook {
	return h.Matching(r.match.matchers...).Implying(r.impliedMatchers()...).From(r.origin())
}

// impliedMatchers returns the matchers that the rule's condition implies.
func (r *rule) impliedMatchers() []hooks.Matcher {
	if r.when == nil {
		return nil
	}
	if _, constant := r.when.Constant(); constant {
		return nil
	}
	return r.when.ImpliedMatchers()
}

// checkWith works like Check, but uses the given warnings about tools.
func (p *Policy) checkWith(known []Warning) []Warning {
	out := append(slices.Clone(p.warnings), known...)
	for i, r := range p.rules {
		out = append(out, r.oddNames()...)
		if w, found := r.unreachable(p.rules[:i]); found {
			w.Never = true
			out = append(out, w)
		}
		if r.when != nil {
			if value, known := r.when.Constant(); known && value {
				out = append(out, warningAt(r.place, "condition", r.name(), "its condition is always true: it can be removed"))
			}
			out = append(out, r.neverTrue()...)
		}
		switch {
		case r.waiver != nil && r.waiver.over():
			out = append(out, warningAt(r.place, "waiver", r.name(), "its waiver (%s: %s) ended on %s: the rule is in force",
				r.waiver.Owner, r.waiver.Reason, r.waiver.Expires.Format("2006-01-02")))
		case r.shadow:
			out = append(out, warningAt(r.place, "shadow", r.name(), "it is in shadow: it reports decisions and enforces none"))
		case r.waiver != nil:
			out = append(out, warningAt(r.place, "waived", r.name(), "it is waived until %s (%s: %s)",
				r.waiver.Expires.Format("2006-01-02"), r.waiver.Owner, r.waiver.Reason))
		}
	}
	out = lo.Uniq(out) // Missing has reported conditions, too
	slices.SortStableFunc(out, func(a, b Warning) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		return (a.Line-b.Line)*10_000 + a.Column - b.Column
	})
	return out
}

// oddNames finds names that no tool can have.
func (r *rule) oddNames() []Warning {
	return lo.FilterMap(r.match.tools, func(p pattern, _ int) (Warning, bool) {
		return warningAt(p.place, "tool", r.name(), "%q is not a valid tool name: "+
			"write several names as a list, [a, b], and a regular expression between slashes, /^(a|b)$/", p.text), odd(p.text)
	})
}

// odd reports whether a pattern for tools is neither a glob nor a regular expression and contains characters that no
// tool name has.
func odd(pattern string) bool {
	regular := len(pattern) > 2 && strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/")
	return !regular && !strings.ContainsAny(pattern, `*?[\`) &&
		(strings.ContainsAny(pattern, ", \t\n") || strings.HasPrefix(pattern, "/") || strings.HasSuffix(pattern, "/"))
}

// unreachable returns a warning if an earlier rule at the same point always decides finally about everything that this
// one matches.
func (r *rule) unreachable(before []*rule) (Warning, bool) {
	for _, earlier := range before {
		ends := earlier.kind() == "deny" || earlier.kind() == "stop" && earlier.point.Name == hooks.PreToolUse
		if earlier.point != r.point || !ends || earlier.task != nil || earlier.mode() != "enforce" || earlier.waiver != nil ||
			!earlier.match.covers(r.match) || !r.judges() {
			continue
		}
		if earlier.when != nil {
			if value, known := earlier.when.Constant(); !known || !value {
				continue
			}
		}
		return warningAt(r.place, "unreachable", r.name(), "it is never asked: %q in line %d of %s already decides %s for every event that it matches",
			earlier.name(), earlier.place.Line, earlier.place.File(), earlier.kind()), true
	}
	return Warning{}, false
}
