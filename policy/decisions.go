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

// readDecision reads a rule's decision.
func (l *loader) readDecision(e *entry) *decision {
	d := &decision{word: e.oneOf("decision", decisionNames...)}
	if d.word != "" && !slices.Contains(e.point.can, d.word) {
		e.at("decision").Wrong("%s: %q is not possible at %s: %s (rule: powers)", e.what, d.word, e.key, e.point.whatCan())
		return d
	}
	d.reason = l.template(e, "reason")
	d.context = l.template(e, "context")
	d.metadata = l.expressions(e, "metadata")
	for _, key := range []string{"context", "metadata"} {
		if e.has(key) && d.word != "" && !slices.Contains(e.point.adds, d.word) {
			e.place(key).Wrong("%s: a rule with %s at %s cannot add anything (rule: powers)", e.what, d.word, e.key)
		}
	}
	switch d.word {
	case "ask":
		d.question = agent.Question{Within: e.duration("within")}
		d.question.Approvers, d.question.Quorum = e.approvers()
		if word := e.oneOf("on_timeout", "reject", "reject_and_continue", "approve"); word != "" {
			if err := d.question.OnTimeout.UnmarshalText([]byte(word)); err != nil {
				e.place("on_timeout").Wrong("%w", err)
			}
		}
		if e.has("on_timeout") && !e.has("within") {
			e.place("on_timeout").Wrong("%s: on_timeout requires a deadline: set within", e.what)
		}
	case "rewrite":
		l.readRewrite(d, e)
	case "mock", "replace":
		l.readResult(d, e)
	case "redact":
		d.scrub = e.readRedact()
	case "add_context":
		if !e.has("context") && !e.has("metadata") {
			e.place("decision").Wrong("%s: add_context requires context or metadata", e.what)
		}
	}
	return d
}

// readRewrite reads a rule's replacement values.
func (l *loader) readRewrite(d *decision, e *entry) {
	d.set, d.remove = l.expressions(e, "set"), e.texts("remove")
	if !e.has("set") && !e.has("remove") {
		e.place("decision").Wrong("%s: rewrite requires set or remove, by dotted path", e.what)
		return
	}
	if e.point.object() {
		d.checkPaths(e)
		return
	}
	name := lo.Ternary(e.point.Name == hooks.PreSubagent, "instruction", "input")
	if _, ok := d.set[name]; e.has("remove") || !ok || len(d.set) != 1 {
		e.place("decision").Wrong("%s: a rewrite at %s can replace only the %s: set: {%s: 'an expression'}", e.what, e.key, name, name)
	}
}

// checkPaths checks that no path is below another one.
func (d *decision) checkPaths(e *entry) {
	all := append(lo.Keys(d.set), d.remove...)
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

// readResult reads an answer: a text, or a value that is answered as JSON.
func (l *loader) readResult(d *decision, e *entry) {
	n := e.at("result")
	switch n.Kind() {
	case yamlfile.AbsentNode:
		e.place("decision").Wrong("%s: %s needs a result", e.what, d.word)
	case yamlfile.TextNode:
		d.result = l.template(e, "result")
	case yamlfile.NullNode, yamlfile.NumberNode, yamlfile.BoolNode, yamlfile.ListNode, yamlfile.MappingNode:
		value, err := json.Marshal(n.Value())
		if err != nil {
			n.Wrong("result: the value cannot be written as JSON: %w", err)
			return
		}
		d.result = template{text: text{[]piece{{literal: string(value)}}}}
	}
	d.isError = e.flag("failure", false)
}

// readRedact reads the kinds and patterns to redact.
func (e *entry) readRedact() *scrubber {
	scrub := &scrubber{with: e.text("with")}
	for _, pattern := range e.texts("patterns") {
		compiled, err := regexp.Compile(pattern)
		if err == nil && compiled.MatchString("") {
			err = errors.New("it matches the empty text")
		}
		if err != nil {
			e.at("patterns").Wrong("patterns: %q is not a usable regular expression (RE2): %w", pattern, err)
			continue
		}
		scrub.patterns = append(scrub.patterns, compiled)
	}
	if e.has("with") && !e.has("patterns") {
		e.place("with").Wrong("%s: with requires patterns, because it replaces their matches", e.what)
	}
	kinds := func(key string, known []string) []string {
		if n := e.at(key); n.Kind() == yamlfile.BoolNode {
			return lo.Ternary(e.flag(key, false), known, nil)
		}
		chosen := e.texts(key)
		for _, kind := range chosen {
			if !slices.Contains(known, kind) {
				e.at(key).Wrong("%s: %s", key, yamlfile.Unknown("kind", kind, known))
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
	return scrub
}
