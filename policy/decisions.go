package policy

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// decision reads what a rule decides.
func (l *loader) decision(r *rule, e *entry) {
	r.kind = e.oneOf("decision", decisionNames...)
	r.await = true
	if !e.has("id") {
		e.place("decision").Wrong("%s: the key %q is missing: events and denials identify the rule by it (rule: names)", e.what, "id")
	}
	if r.kind != "" && !slices.Contains(r.point.can, r.kind) {
		e.fields.at("decision").Wrong("%s: %q is not possible at %s: %s (rule: powers)", e.what, r.kind, r.pointKey, r.point.whatCan())
		return
	}
	r.reason = l.template(e, "reason", r.language)
	r.context = l.template(e, "context", r.language)
	r.metadata = l.expressions(e, "metadata", r.language)
	for _, key := range []string{"context", "metadata"} {
		if e.has(key) && r.kind != "" && !slices.Contains(r.point.adds, r.kind) {
			e.place(key).Wrong("%s: a rule with %s at %s cannot add anything (rule: powers)", e.what, r.kind, r.pointKey)
		}
	}
	switch r.kind {
	case "ask":
		r.question = agent.Question{Within: e.duration("within")}
		r.question.Approvers, r.question.Quorum = e.approvers()
		if word := e.oneOf("on_timeout", "reject", "reject_and_continue", "approve"); word != "" {
			if err := r.question.OnTimeout.UnmarshalText([]byte(word)); err != nil {
				e.place("on_timeout").Wrong("%w", err)
			}
		}
		if e.has("on_timeout") && !e.has("within") {
			e.place("on_timeout").Wrong("%s: on_timeout requires a deadline: set within", e.what)
		}
	case "rewrite":
		l.rewrite(r, e)
	case "mock", "replace":
		l.result(r, e)
	case "redact":
		l.redact(r, e)
	case "add_context":
		if !e.has("context") && !e.has("metadata") {
			e.place("decision").Wrong("%s: add_context requires context or metadata", e.what)
		}
	}
}

// rewrite reads the replacement values of a rule.
func (l *loader) rewrite(r *rule, e *entry) {
	r.set, r.remove = l.expressions(e, "set", r.language), e.texts("remove")
	if !e.has("set") && !e.has("remove") {
		e.place("decision").Wrong("%s: rewrite requires set or remove, by dotted path", e.what)
		return
	}
	if r.point.object() {
		r.paths(e)
		return
	}
	name := lo.Ternary(r.point.name == hooks.PreSubagent, "instruction", "input")
	if _, ok := r.set[name]; e.has("remove") || !ok || len(r.set) != 1 {
		e.place("decision").Wrong("%s: a rewrite at %s can replace only the %s: set: {%s: 'an expression'}", e.what, r.pointKey, name, name)
	}
}

// paths checks that no path is below another one.
func (r *rule) paths(e *entry) {
	all := append(lo.Keys(r.set), r.remove...)
	slices.Sort(all)
	for i, path := range all {
		if path == "" || slices.Contains(strings.Split(path, "."), "") {
			e.place("decision").Wrong("%s: invalid path %q: write the names of members with dots between them", e.what, path)
		}
		for _, other := range all[i+1:] {
			if other == path || strings.HasPrefix(other, path+".") {
				e.place("decision").Wrong("%s: %q is within %q: remove one of them", e.what, other, path)
			}
		}
	}
}

// result reads an answer: a text, or a value that is answered as JSON.
func (l *loader) result(r *rule, e *entry) {
	n := e.fields.at("result")
	switch n.Kind() {
	case yamlfile.AbsentNode:
		e.place("decision").Wrong("%s: %s needs a result", e.what, r.kind)
	case yamlfile.TextNode:
		r.result = l.template(e, "result", r.language)
	case yamlfile.NullNode, yamlfile.NumberNode, yamlfile.BoolNode, yamlfile.ListNode, yamlfile.MappingNode:
		value, err := json.Marshal(n.Value())
		if err != nil {
			n.Wrong("result: the value cannot be written as JSON: %w", err)
			return
		}
		r.result = template{text: text{[]piece{{literal: string(value)}}}}
	}
	r.isError = e.flag("failure", false)
}

// redact reads what to redact.
func (l *loader) redact(r *rule, e *entry) {
	scrub := &scrubber{with: e.text("with")}
	for _, pattern := range e.texts("patterns") {
		compiled, err := regexp.Compile(pattern)
		if err == nil && compiled.MatchString("") {
			err = errors.New("it matches the empty text")
		}
		if err != nil {
			e.fields.at("patterns").Wrong("patterns: %q is not a usable regular expression (RE2): %w", pattern, err)
			continue
		}
		scrub.patterns = append(scrub.patterns, compiled)
	}
	if e.has("with") && !e.has("patterns") {
		e.place("with").Wrong("%s: with requires patterns, because it replaces their matches", e.what)
	}
	kinds := func(key string, known []string) []string {
		if n := e.fields.at(key); n.Kind() == yamlfile.BoolNode {
			return lo.Ternary(e.flag(key, false), known, nil)
		}
		chosen := e.texts(key)
		for _, kind := range chosen {
			if !slices.Contains(known, kind) {
				e.fields.at(key).Wrong("%s: %s", key, yamlfile.Unknown("kind", kind, known))
				return nil
			}
		}
		return chosen
	}
	if err := scrub.make(kinds("secrets", secretKinds()), kinds("pii", piiKinds())); err != nil {
		e.place("decision").Wrong("%s: %w", e.what, err)
	}
	if scrub.empty() && len(e.texts("patterns")) == 0 {
		e.place("decision").Wrong("%s: redact requires secrets: true, pii: true, or patterns", e.what)
	}
	r.scrub = scrub
}
