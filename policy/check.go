package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Warning is something that can be loaded and most likely is not meant, or that somebody
// has to know.
type Warning struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Code says in a word what it is: tool, unreachable, condition, waiver, shell, action,
	// name, required; or shadow or waived, which are meant, and told so that somebody knows.
	Code string `json:"code"`
	// Rule is the rule's hook, policy/id; empty where it is about no rule.
	Rule string `json:"rule,omitempty"`
	Text string `json:"text"`
}

// String is the place and the text.
func (w Warning) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", w.File, w.Line, w.Column, w.Code, w.Text)
}

func (l *loader) note(at yamlfile.Place, code, rule, format string, args ...any) {
	l.notes = append(l.notes, warningAt(at, code, rule, format, args...))
}

// Meant reports whether somebody wrote it down as it is: a rule in shadow, or a waiver
// that has not ended.
func (w Warning) Meant() bool { return w.Code == "shadow" || w.Code == "waived" }

func warningAt(at yamlfile.Place, code, rule, format string, args ...any) Warning {
	return Warning{File: at.File(), Line: at.Line, Column: at.Column, Code: code, Rule: rule, Text: fmt.Sprintf(format, args...)}
}

// Check says what is most likely not meant: tools that nobody has, rules that are never
// asked because one before them always denies, conditions that are always true or false,
// values in the text of a shell that it would read as more than values; and what somebody
// has to know: waivers, those that have ended among them, and rules in shadow. Tools are the names of the
// agent's tools; without any, they are not looked at. It is in the order of the files.
func (p *Policy) Check(tools ...string) []Warning {
	out := slices.Clone(p.warnings)
	for i, r := range p.rules {
		out = append(out, r.unknownTools(tools)...)
		if w, found := r.unreachable(p.rules[:i]); found {
			out = append(out, w)
		}
		if r.when != nil {
			if value, known := r.when.Constant(); known {
				out = append(out, warningAt(r.place, "condition", r.name(), "its condition is always %t%s", value,
					lo.Ternary(value, ": it can be left away", ": the rule never applies")))
			}
		}
		switch {
		case r.waiver != nil && r.waiver.over():
			out = append(out, warningAt(r.place, "waiver", r.name(), "its waiver (%s: %s) ended on %s: it is in force",
				r.waiver.Owner, r.waiver.Reason, r.waiver.Expires.Format("2006-01-02")))
		case r.shadow:
			out = append(out, warningAt(r.place, "shadow", r.name(), "it is in shadow: it judges and changes nothing"))
		case r.waiver != nil:
			out = append(out, warningAt(r.place, "waived", r.name(), "it is waived until %s (%s: %s)",
				r.waiver.Expires.Format("2006-01-02"), r.waiver.Owner, r.waiver.Reason))
		}
	}
	slices.SortStableFunc(out, func(a, b Warning) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		return (a.Line-b.Line)*10_000 + a.Column - b.Column
	})
	return out
}

// unknownTools finds patterns that match none of the tools, or no tool that there may be.
func (r *rule) unknownTools(tools []string) []Warning {
	var out []Warning
	for _, pattern := range r.match.tools {
		if odd(pattern.text) {
			out = append(out, warningAt(pattern.place, "tool", r.name(), "%q is taken for the name of one tool, and none has such a name: "+
				"several stand in a list, [a, b], and a regular expression between slashes, /^(a|b)$/", pattern.text))
			continue
		}
		if len(tools) == 0 {
			continue
		}
		probe := hooks.Observe(hooks.AtPreToolUse, "probe", func(context.Context, hooks.ToolContext) error { return nil },
			hooks.ToolMatching(lo.CoalesceOrEmpty(pattern.text, "*")))
		compiled, err := hooks.NewSet(probe).Compile(tools...).Get()
		if err != nil || len(compiled.Unused()) == 0 {
			continue
		}
		near := ""
		if name, ok := yamlfile.Nearest(pattern.text, tools); ok {
			near = fmt.Sprintf(" (did you mean %q?)", name)
		}
		out = append(out, warningAt(pattern.place, "tool", r.name(), "%q matches no tool%s; there are %s", pattern.text, near, yamlfile.OneOf(tools)))
	}
	return out
}

// odd reports whether a pattern for tools is a name, neither a glob nor a regular expression,
// in which something stands that only these may have.
func odd(pattern string) bool {
	regular := len(pattern) > 2 && strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/")
	return !regular && !strings.ContainsAny(pattern, `*?[\`) &&
		(strings.ContainsAny(pattern, "|,()^$+ \t\n") || strings.HasPrefix(pattern, "/") || strings.HasSuffix(pattern, "/"))
}

// unreachable finds an earlier rule of the same point that always ends the asking about
// what this one matches.
func (r *rule) unreachable(before []*rule) (Warning, bool) {
	for _, earlier := range before {
		ends := earlier.kind == "deny" || earlier.kind == "stop" && earlier.point.name == hooks.PreToolUse
		if earlier.point != r.point || !ends || earlier.act != nil || earlier.mode() != "enforce" || earlier.waiver != nil ||
			!earlier.match.covers(r.match) || !r.judges() {
			continue
		}
		if earlier.when != nil {
			if value, known := earlier.when.Constant(); !known || !value {
				continue
			}
		}
		return warningAt(r.place, "unreachable", r.name(), "it is never asked: %q in line %d of %s says %s to all that it matches",
			earlier.name(), earlier.place.Line, earlier.place.File(), earlier.kind), true
	}
	return Warning{}, false
}
