package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/file"
	"github.com/grapnel-go/grapnel/policy/internal/points"
)

// match holds the matchers of a rule.
type match struct {
	matchers []hooks.Matcher
	// text describes the match in words; canonical is equal for equivalent matches.
	text, canonical string
	// tools are the patterns for tools, and args the paths of arguments, with their places in the file.
	tools, args []pattern
	// tool is the canonical form of the tool's patterns; toolOnly is set if there are no other matchers.
	tool     string
	toolOnly bool
}

// pattern is a pattern for tools, or the path of an argument, in a file.
type pattern struct {
	text  string
	place yamlfile.Place
}

// all reports whether the rule matches everything at its point.
func (m match) all() bool { return len(m.matchers) == 0 }

// compileMatch returns the rule's matchers.
func (c *compiler) compileMatch() match {
	n := c.Match
	if n.Kind() == yamlfile.AbsentNode {
		return match{}
	}
	r := &matchCompiler{at: c.Point, findings: c.findings}
	m := match{matchers: r.matchers(n, 0), tools: r.tools, args: r.args}
	r.checkMatcher(n, hooks.And(m.matchers...))
	m.text = strings.Join(lo.Map(m.matchers, func(h hooks.Matcher, _ int) string { return h.String() }), ", ")
	if canonical, err := json.Marshal(n.Value()); err == nil {
		m.canonical = string(canonical)
	}
	if tool := n.Find("tool"); tool.Kind() != yamlfile.AbsentNode {
		m.tool = fmt.Sprint(tool.Value())
		m.toolOnly = len(n.Entries()) == 1
	}
	return m
}

type matchCompiler struct {
	*findings

	at    *points.Point
	tools []pattern
	args  []pattern
}

// matchers returns the parts of a match, all of which must match.
func (r *matchCompiler) matchers(n yamlfile.Node, nots int) []hooks.Matcher {
	var keys file.Match
	all := file.MappingOf(n)
	all.Decode("match", nil, &keys)
	var out []hooks.Matcher
	for _, e := range all.Entries {
		key, value := e.Key.Raw(), e.Value
		if !r.at.Tool && (key == "tool" || key == "args") {
			r.wrong(e.Key.Place(), "match: %s is not about a tool call, so %q can never match (rule: matching)", r.at.Name, key)
			continue
		}
		switch key {
		case "tool":
			out = append(out, r.either(value, func(n yamlfile.Node, text string) hooks.Matcher {
				if nots%2 == 0 {
					r.tools = append(r.tools, pattern{text, n.Place()})
				}
				return hooks.ToolMatching(lo.CoalesceOrEmpty(text, "*"))
			}))
		case "agent":
			out = append(out, r.either(value, func(_ yamlfile.Node, text string) hooks.Matcher { return hooks.AgentNamed(text) }))
		case "stage":
			out = append(out, r.either(value, func(_ yamlfile.Node, text string) hooks.Matcher { return hooks.StageNamed(text) }))
		case "step_kind":
			if keys.StepKind != "" {
				out = append(out, r.checkMatcher(value, hooks.StepKindIs(agent.StepKind(keys.StepKind))))
			}
		case "args":
			for _, e := range value.Entries() {
				r.args = append(r.args, pattern{e.Key.Raw(), e.Key.Place()})
				out = append(out, r.argument(e.Key.Raw(), e.Value))
			}
		case "metadata":
			for _, e := range value.Entries() {
				out = append(out, r.metadata(e.Key.Raw(), e.Value))
			}
		case "depth":
			out = append(out, r.depth(value))
		case "not":
			out = append(out, hooks.Not(hooks.And(r.matchers(value, nots+1)...)))
		case "any", "all":
			parts := lo.Map(value.Items(), func(item yamlfile.Node, _ int) hooks.Matcher { return hooks.And(r.matchers(item, nots)...) })
			switch {
			case key == "all":
				out = append(out, hooks.And(parts...))
			case len(parts) == 0 && value.Kind() == yamlfile.ListNode:
				r.wrong(value.Place(), "match: an empty any matches nothing: add a matcher, or remove it (rule: matching)")
			case len(parts) > 0:
				out = append(out, hooks.Or(parts...))
			}
		}
	}
	return out
}

// either reads a pattern, or a list of patterns. One must match.
func (r *matchCompiler) either(n yamlfile.Node, make func(n yamlfile.Node, text string) hooks.Matcher) hooks.Matcher {
	items := []yamlfile.Node{n}
	if n.Kind() == yamlfile.ListNode {
		if items = n.Items(); len(items) == 0 {
			r.wrong(n.Place(), "match: an empty list matches nothing: add an element, or remove the key (rule: matching)")
			return hooks.Matcher{}
		}
	}
	var parts []hooks.Matcher
	for _, item := range items {
		if text, ok := item.Text(); ok {
			parts = append(parts, r.checkMatcher(item, make(item, text)))
		}
	}
	switch len(parts) {
	case 0:
		return hooks.Matcher{}
	case 1:
		return parts[0]
	}
	return hooks.Or(parts...)
}

// checkMatcher returns the matcher, and reports its errors at the point.
func (r *matchCompiler) checkMatcher(n yamlfile.Node, m hooks.Matcher) hooks.Matcher {
	if _, err := hooks.NewSet(r.at.Observe("probe", points.NoCheck).Matching(m)).Compile(); err != nil {
		r.wrong(n.Place(), "match: %s (rule: matching)", strings.ReplaceAll(err.Error(), `hook "probe": `, ""))
		return hooks.Matcher{}
	}
	return m
}

// argument returns the matcher of an argument: a pattern for a text, any other value for an equal value, a list for one
// of several, the word present, or {equals: value}.
func (r *matchCompiler) argument(path string, n yamlfile.Node) hooks.Matcher {
	switch n.Kind() {
	case yamlfile.TextNode:
		if n.Raw() == present {
			return r.checkMatcher(n, hooks.Argument(path, func(string) bool { return true }))
		}
		text, _ := n.ComparedValue().(string)
		return r.checkMatcher(n, hooks.ArgumentMatching(path, text))
	case yamlfile.ListNode:
		if len(n.Items()) == 0 {
			r.wrong(n.Place(), "match: an empty list matches nothing (rule: matching)")
			return hooks.Matcher{}
		}
		return hooks.Or(lo.Map(n.Items(), func(item yamlfile.Node, _ int) hooks.Matcher { return r.argument(path, item) })...)
	case yamlfile.MappingNode:
		n = equalsValue(n)
	case yamlfile.NullNode, yamlfile.NumberNode, yamlfile.BoolNode, yamlfile.AbsentNode:
	}
	return r.checkMatcher(n, hooks.ArgumentEquals(path, n.ComparedValue()))
}

// present is the word that matches any value.
const present = "present"

// equalsValue returns the value in {equals: value}.
func equalsValue(n yamlfile.Node) yamlfile.Node {
	var keys file.Equals
	file.MappingOf(n).Decode("match", nil, &keys)
	return keys.Equals
}

// metadata returns the matcher of a value in the metadata of the session or the run.
func (r *matchCompiler) metadata(name string, n yamlfile.Node) hooks.Matcher {
	ofRun, ofSession := agent.RunKey[any](name), agent.SessionKey[any](name)
	if n.Kind() == yamlfile.TextNode && n.Raw() == present {
		return hooks.Or(hooks.MetadataPresent(ofRun), hooks.MetadataPresent(ofSession))
	}
	if n.Kind() == yamlfile.MappingNode {
		n = equalsValue(n)
	}
	want, err := sameForm(n.ComparedValue())
	if err != nil {
		r.wrong(n.Place(), "match: %w", err)
	}
	return hooks.When(func(c hooks.Context) bool {
		value, there := ofRun.From(c.State())
		if !there {
			value, there = ofSession.From(c.State())
		}
		got, err := sameForm(value)
		return there && err == nil && reflect.DeepEqual(got, want)
	})
}

// sameForm returns a value as decoded from its JSON, so that equal values compare equal.
func sameForm(v any) (out any, err error) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("comparing values: %w", err)
	}
	return out, nil
}

// depth returns the matcher of a number or a range.
func (r *matchCompiler) depth(n yamlfile.Node) hooks.Matcher {
	d := file.DepthOf(n)
	if d.Max != nil && *d.Max < d.Min {
		r.wrong(n.Place(), "depth: the range from %s to %s is empty (rule: matching)", strconv.Itoa(d.Min), strconv.Itoa(*d.Max))
		return hooks.Matcher{}
	}
	return hooks.AtDepth(d.Min, lo.FromPtrOr(d.Max, -1))
}

// covers reports whether m matches everything that other matches, judging by their canonical texts.
func (m match) covers(other match) bool {
	return m.all() || m.canonical == other.canonical || m.toolOnly && m.tool == other.tool
}
