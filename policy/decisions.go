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
	"github.com/grapnel-go/grapnel/policy/internal/file"
)

// compileDecision returns the rule's decision.
func (c *compiler) compileDecision() *decision {
	d := &decision{word: c.Decision}
	if d.word != "" && !slices.Contains(c.Point.Can, d.word) {
		c.wrong(c.At("decision").Place(), "%s: %q is not possible at %s: %s (rule: powers)", c.What, d.word, c.PointKey, c.Point.WhatCan())
		return d
	}
	d.reason, d.context, d.metadata = c.template("reason", c.Reason), c.template("context", c.Context), c.expressions("metadata", c.Metadata)
	for _, key := range []string{"context", "metadata"} {
		if c.Has(key) && d.word != "" && !slices.Contains(c.Point.Adds, d.word) {
			c.wrongKey(key, "a rule with %s at %s cannot add anything (rule: powers)", d.word, c.PointKey)
		}
	}
	switch k := c.Keys.(type) {
	case *file.Ask:
		d.question = agent.Question{Within: k.Within, Approvers: k.Approvers, Quorum: k.Quorum}
		if k.OnTimeout != "" {
			if err := d.question.OnTimeout.UnmarshalText([]byte(k.OnTimeout)); err != nil {
				c.wrong(c.Place("on_timeout"), "%w", err)
			}
		}
		if c.Has("on_timeout") && !c.Has("within") {
			c.wrongKey("on_timeout", "on_timeout requires a deadline: set within")
		}
	case *file.Rewrite:
		d.set, d.remove = c.expressions("set", k.Set), k.Remove
		c.checkRewrite(d)
	case *file.Mock:
		d.result, d.isError = c.result(k.Result), k.Failure
	case *file.Replace:
		d.result = c.result(k.Result)
	case *file.Redact:
		d.scrub = c.newScrubber(k)
	}
	if d.word == "add_context" && !c.Has("context") && !c.Has("metadata") {
		c.wrongKey("decision", "add_context requires context or metadata")
	}
	return d
}

// checkRewrite checks which values a rewrite replaces, and that no path is below another one.
func (c *compiler) checkRewrite(d *decision) {
	switch name := lo.Ternary(c.Point.Name == hooks.PreSubagent, "instruction", "input"); {
	case !c.Has("set") && !c.Has("remove"):
		c.wrongKey("decision", "rewrite requires set or remove, by dotted path")
		return
	case c.Point.EditsObject():
	case c.Has("remove") || len(d.set) != 1 || d.set[name] == nil:
		c.wrongKey("decision", "a rewrite at %s can replace only the %s: set: {%s: 'an expression'}", c.PointKey, name, name)
		return
	default:
		return
	}
	all := append(lo.Keys(d.set), d.remove...)
	slices.Sort(all)
	for i, path := range all {
		if path == "" || slices.Contains(strings.Split(path, "."), "") {
			c.wrongKey("decision", "invalid path %q: write the names of members with dots between them", path)
		}
		for _, other := range all[i+1:] {
			if other == path || strings.HasPrefix(other, path+".") {
				c.wrongKey("decision", "%q is within %q: remove one of them", other, path)
			}
		}
	}
}

// result returns an answer: a text, or a value that is answered as JSON.
func (c *compiler) result(n yamlfile.Node) template {
	switch n.Kind() {
	case yamlfile.AbsentNode:
		c.wrongKey("decision", "%s needs a result", c.Decision)
		return template{}
	case yamlfile.TextNode:
		return c.template("result", n)
	case yamlfile.NullNode, yamlfile.NumberNode, yamlfile.BoolNode, yamlfile.ListNode, yamlfile.MappingNode:
	}
	value, err := json.Marshal(n.Value())
	if err != nil {
		c.wrong(n.Place(), "result: the value cannot be written as JSON: %w", err)
	}
	return template{text: text{[]piece{{literal: string(value)}}}}
}

// newScrubber returns what redacts the kinds and patterns.
func (c *compiler) newScrubber(k *file.Redact) *scrubber {
	scrub := &scrubber{with: k.With}
	for _, pattern := range k.Patterns {
		compiled, err := regexp.Compile(pattern)
		if err == nil && compiled.MatchString("") {
			err = errors.New("it matches the empty text")
		}
		if err != nil {
			c.wrong(c.At("patterns").Place(), "patterns: %q is not a usable regular expression (RE2): %w", pattern, err)
			continue
		}
		scrub.patterns = append(scrub.patterns, compiled)
	}
	if c.Has("with") && !c.Has("patterns") {
		c.wrongKey("with", "with requires patterns, because it replaces their matches")
	}
	if err := scrub.make(c.Kinds("secrets", secretKinds()), c.Kinds("pii", piiKinds())); err != nil {
		c.wrongKey("decision", "%w", err)
	}
	if scrub.empty() && len(k.Patterns) == 0 {
		c.wrongKey("decision", "redact requires secrets: true, pii: true, or patterns")
	}
	return scrub
}
