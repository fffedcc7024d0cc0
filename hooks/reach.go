package hooks

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/near"
)

// A Reach describes the tools, agents, stages and points that hooks can match where they are installed. They match
// nothing outside of Here and Below.
type Reach struct {
	// Here is the agent with the hooks.
	Here Scope
	// Below are the agents that it can start. They inherit its controls at all points except Stop, but not its
	// observers.
	Below Scope
}

// A Scope lists the names, tools and points of one or more agents. The zero Scope is empty.
type Scope struct {
	// Agents lists the agents' names.
	Agents []string
	// Tools lists the agents' tools.
	Tools []Tool
	// Points lists the points that fire in the agents' runs.
	Points []PointName
	// LaterTools and LaterAgents are patterns, as in ToolMatching, for tools and agents that are added later.
	LaterTools, LaterAgents []string
	// Stages are patterns for the pipeline stages in which the agents run. Empty means that they run outside of
	// pipelines.
	Stages []string
}

// Union returns the union of two scopes.
func (s Scope) Union(more Scope) Scope {
	return Scope{
		Agents: slices.Concat(s.Agents, more.Agents), Tools: slices.Concat(s.Tools, more.Tools), Points: slices.Concat(s.Points, more.Points),
		LaterTools: slices.Concat(s.LaterTools, more.LaterTools), LaterAgents: slices.Concat(s.LaterAgents, more.LaterAgents),
		Stages: slices.Concat(s.Stages, more.Stages),
	}
}

// Tool is a tool that hooks may match.
type Tool struct {
	Name string
	// Arguments describes the arguments that calls to the tool can have. Nil means any. A *toolexec.Schema implements
	// it.
	Arguments Arguments
}

// Arguments describes the arguments that a tool's calls can have.
type Arguments interface {
	// MayHave reports whether a call can have a value at a path. steps are member names and list indexes. wild says
	// which steps match every element. kind is the value's JSON type (string, integer for a whole number, number for
	// another, boolean, null, array or object). Empty means any.
	MayHave(steps []string, wild []bool, kind string) bool
	// Names returns the arguments' possible names, for messages about a mistyped name.
	Names() []string
}

// A Gap is a tool, argument, agent, stage or point that a hook names but that does not exist where the hook is installed.
type Gap struct {
	// Hook is the hook's name, and Origin the rule that it implements, if any.
	Hook   string
	Origin *Origin
	// Tool is a pattern that no tool matches. Argument is the path of an argument that no tool has. Agent is a pattern
	// that no agent matches. Stage is a pattern that no stage matches. Point is a point that no agent reaches. One of
	// them is set. None is set if tools match each part of a matcher but not the whole matcher.
	Tool, Argument, Agent, Stage string
	Point                        PointName
	// Never reports whether the hook can never match.
	Never bool
	// Text says what is missing, and how to fix it.
	Text string
}

// Gaps returns the tools, arguments, agents, stages and points that the hooks name but cannot match.
func (s Set) Gaps(r Reach) []Gap {
	known := newReachable(r)
	return lo.FlatMap(s.hooks, func(h Hook, _ int) []Gap { return known.findGaps(h) })
}

// operator is the operator that joins the parts of a matcher.
type operator string

const (
	opAnd operator = "and"
	opOr  operator = "or"
	opNot operator = "not"
)

// aboutMatcher describes a matcher's test if it is known before the hook is called. One of its fields is set.
type aboutMatcher struct {
	op    operator // set together with parts
	parts []Matcher

	tools  []pattern // one of them must match
	path   *argumentPath
	kind   string // the argument's JSON type; empty for any
	agents *pattern
	stages *pattern
	points []PointName
	step   agent.StepKind
}

// constant returns the matcher's judgement if it is the same for every call.
func (m *Matcher) constant() truth {
	switch {
	case m.err != nil:
		return maybe
	case m.about == nil:
		return lo.Ternary(m.tool == nil && m.full == nil, yes, maybe)
	case m.about.op != "":
		return m.about.joinParts(func(part *Matcher) truth { return part.constant() })
	case lo.SomeBy(m.about.tools, func(p pattern) bool { return strings.Trim(p.text, "*") == "" && p.exact == "" }):
		return yes // matches every call at a tool call's points
	}
	return maybe
}

// atPoint returns the matcher's judgement at a point, or maybe if it depends on more than the point.
func (m *Matcher) atPoint(at *pointInfo) truth {
	switch a := m.about; {
	case a == nil:
		return m.constant()
	case a.op != "":
		return a.joinParts(func(part *Matcher) truth { return part.atPoint(at) })
	case a.points != nil:
		return truthOf(slices.Contains(a.points, at.name))
	case a.step != "" && !slices.Contains(at.kinds, a.step):
		return no
	case a.step != "" && len(at.kinds) == 1:
		return yes
	}
	return m.constant()
}

// joinParts combines the parts' judgements with the operator.
func (a *aboutMatcher) joinParts(say func(part *Matcher) truth) truth {
	all, either := yes, no
	for i := range a.parts {
		switch say(&a.parts[i]) {
		case no:
			all = no
		case yes:
			either = yes
		default:
			all = lo.Ternary(all == yes, maybe, all)
			either = lo.Ternary(either == no, maybe, either)
		}
	}
	switch {
	case a.op == opOr:
		return either
	case a.op == opNot && all == yes:
		return no
	case a.op == opNot && all == no:
		return yes
	}
	return all
}

// reachable is a Reach prepared for comparison with hooks.
type reachable struct {
	own, all view
}

// view is the scope that one sort of hooks can match. Observers match only the agent itself, controls also its
// sub-agents.
type view struct {
	tools       []candidate
	points      []PointName
	agents      []string
	laterAgents []pattern
	stages      []pattern
}

// candidate is a tool, or a pattern for tools that are added later.
type candidate struct {
	Tool
	later *pattern
}

func newReachable(r Reach) *reachable {
	return &reachable{own: viewOf(r.Here), all: viewOf(r.Here.Union(r.Below))}
}

func viewOf(s Scope) view {
	v := view{points: s.Points, agents: s.Agents}
	for _, t := range s.Tools {
		v.tools = append(v.tools, candidate{Tool: t})
	}
	for _, text := range s.LaterTools {
		if p, err := compilePattern(text); err == nil {
			v.tools = append(v.tools, candidate{Tool: Tool{Name: p.exact}, later: lo.Ternary(p.exact == "", &p, nil)})
		}
	}
	for _, text := range s.LaterAgents {
		if p, err := compilePattern(text); err == nil {
			v.laterAgents = append(v.laterAgents, p)
		}
	}
	for _, text := range s.Stages {
		if p, err := compilePattern(text); err == nil {
			v.stages = append(v.stages, p)
		}
	}
	return v
}

// toolNames returns the tools' names, and the patterns for later ones.
func (v *view) toolNames() []string {
	return lo.Map(v.tools, func(c candidate, _ int) string {
		if c.later != nil {
			return c.later.text
		}
		return c.Name
	})
}

// findGaps returns a hook's gaps.
func (r *reachable) findGaps(h Hook) []Gap {
	v := &r.own
	if h.control && !slices.Contains(h.points, Stop) {
		v = &r.all
	}
	w := &gapFinder{view: v, hook: h}
	for _, at := range h.points {
		if h.control && !slices.Contains(v.points, at) {
			w.addGap(Gap{Point: at, Never: true, Text: fmt.Sprintf("the agent never reaches %s: %s", at, comingTo(at))})
		}
	}
	matcher := And(slices.Concat(h.matchers, h.implied)...)
	w.walk(&matcher, v.tools)
	if v.never(&matcher) || v.neverOneAgent(&matcher) {
		for i := range w.found {
			w.found[i].Never = true
		}
	}
	return w.found
}

// comingTo says how an agent can reach a point.
func comingTo(at PointName) string {
	switch at {
	case PreCompact, PostCompact, CompactFailed:
		return "it has no compaction: add capability.UseCompaction"
	case PreSubagent, PostSubagent, SubagentFailed:
		return "it has no sub-agents: add capability.UseSubagents"
	case SessionStart:
		return outerPoint + "; a conversation starts at ConversationStart"
	}
	return outerPoint
}

// outerPoint says how an agent can reach a point around runs.
const outerPoint = "only programs that run pipelines or coordinate runs do: declare the point with capability.UseLater"

// gapFinder finds one hook's gaps.
type gapFinder struct {
	view  *view
	hook  Hook
	found []Gap
}

func (w *gapFinder) addGap(g Gap) {
	g.Hook, g.Origin = w.hook.name, w.hook.origin
	w.found = append(w.found, g)
}

// walk finds the parts of a matcher that match nothing. tools are the tools that the other parts of an And accept. It
// skips a part under a Not, because a Not matches more calls if its part matches nothing.
func (w *gapFinder) walk(m *Matcher, tools []candidate) {
	a := m.about
	switch {
	case a == nil || a.op == opNot || m.constant() == yes:
	case a.op == opAnd:
		left := lo.Filter(tools, func(c candidate, _ int) bool { return w.view.judge(m, c, false) != no })
		found := len(w.found)
		for i := range a.parts {
			w.walk(&a.parts[i], left)
		}
		switch {
		case len(w.found) > found:
		case m.needsTool && w.view.never(m):
			w.addGap(Gap{Text: fmt.Sprintf("no tool is matched by %s", m)})
		case w.view.neverOneAgent(m):
			w.addGap(Gap{Text: fmt.Sprintf("no agent is matched by %s", m)})
		}
	case a.op == opOr:
		for i := range a.parts {
			w.walk(&a.parts[i], tools)
		}
	case a.tools != nil:
		for _, p := range a.tools {
			w.findTool(p)
		}
	case a.path != nil:
		w.findArgument(m, tools)
	case a.agents != nil && !w.view.hasAgent(a.agents):
		w.agent(a.agents)
	case a.stages != nil && !w.view.hasStage(a.stages):
		w.stage(a.stages)
	}
}

// findTool looks for a tool that a pattern matches.
func (w *gapFinder) findTool(p pattern) {
	if lo.SomeBy(w.view.tools, func(c candidate) bool { return c.meets(p) }) {
		return
	}
	names := w.view.toolNames()
	text := fmt.Sprintf("%q matches no tool: ", p.text)
	switch meant, ok := near.Name(p.text, names); {
	case len(names) == 0:
		text += "the agent has no tools"
	case ok:
		text += fmt.Sprintf("did you mean %q? Available: %s", meant, quoteSome(names))
	default:
		text += "available: " + quoteSome(names)
	}
	w.addGap(Gap{Tool: p.text, Text: text})
}

// findArgument looks for a tool that has the argument.
func (w *gapFinder) findArgument(m *Matcher, tools []candidate) {
	if len(tools) == 0 || lo.SomeBy(tools, func(c candidate) bool { return w.view.judge(m, c, true) != no }) {
		return // the missing tool is reported already
	}
	a := m.about
	var names, of []string
	for _, c := range tools {
		names, of = append(names, c.Arguments.Names()...), append(of, c.Name)
	}
	names = lo.Uniq(names)
	text := fmt.Sprintf("no call of %s has an argument at %q", quoteSome(of), a.path.text)
	switch meant, ok := near.Name(a.path.steps[0], names); {
	case a.kind != "" && lo.SomeBy(tools, func(c candidate) bool { return c.Arguments.MayHave(a.path.steps, a.path.wild, "") }):
		text += " that is " + withArticle(a.kind)
	case ok && meant != a.path.steps[0]:
		text += fmt.Sprintf(": did you mean %q?", meant)
	case len(names) > 0:
		text += ": available: " + quoteSome(names)
	}
	w.addGap(Gap{Argument: a.path.text, Text: text})
}

// agent records that no agent matches the pattern.
func (w *gapFinder) agent(p *pattern) {
	text := fmt.Sprintf("%q matches no agent: ", p.text)
	if named := lo.Compact(w.view.agents); len(named) == 0 {
		text += "the agent has no name: set one with WithName"
	} else {
		text += "available: " + quoteSome(named)
	}
	w.addGap(Gap{Agent: p.text, Text: text})
}

// stage records that no stage matches the pattern.
func (w *gapFinder) stage(p *pattern) {
	name := cmp.Or(p.exact, p.text)
	names := lo.Map(w.view.stages, func(p pattern, _ int) string { return cmp.Or(p.exact, p.text) })
	text := fmt.Sprintf("%q matches no stage: ", name)
	switch meant, ok := near.Name(name, names); {
	case len(names) == 0:
		text += "the agent runs outside of pipelines, where the stage is empty"
	case ok:
		text += fmt.Sprintf("did you mean %q? Available: %s", meant, quoteSome(names))
	default:
		text += "available: " + quoteSome(names)
	}
	w.addGap(Gap{Stage: p.text, Text: text})
}

// hasStage reports whether a pattern matches a stage's name, or the empty name outside of pipelines.
func (v *view) hasStage(p *pattern) bool { return p.match("") || lo.SomeBy(v.stages, p.mayMeet) }

func (v *view) hasAgent(p *pattern) bool {
	return lo.SomeBy(v.agents, p.match) || lo.SomeBy(v.laterAgents, p.mayMeet)
}

// meets reports whether a pattern for tools matches, or could match, the candidate.
func (c candidate) meets(p pattern) bool {
	if c.later != nil {
		return p.mayMeet(*c.later)
	}
	return c.Name != "" && p.match(c.Name)
}

// never reports whether the matcher matches nothing: no tool, and no call with an invented tool name.
func (v *view) never(m *Matcher) bool {
	invented := candidate{Tool: Tool{Arguments: noArguments{}}}
	return v.judge(m, invented, true) == no && lo.EveryBy(v.tools, func(c candidate) bool { return v.judge(m, c, true) == no })
}

// neverOneAgent reports whether the matcher matches nothing in any single agent's runs.
func (v *view) neverOneAgent(m *Matcher) bool {
	if len(v.agents)+len(v.laterAgents) == 0 {
		return false
	}
	one := *v
	one.agents = nil
	if len(v.laterAgents) > 0 && !one.never(m) {
		return false
	}
	one.laterAgents = nil
	return lo.EveryBy(v.agents, func(name string) bool {
		one.agents = []string{name}
		return one.never(m)
	})
}

// noArguments describes an unknown tool's arguments.
type noArguments struct{}

func (noArguments) MayHave([]string, []bool, string) bool { return false }
func (noArguments) Names() []string                       { return nil }

// judge returns the matcher's judgement about a tool's calls: by name and, if arguments is true, by the tool's
// arguments.
func (v *view) judge(m *Matcher, c candidate, arguments bool) truth {
	switch a := m.about; {
	case a == nil:
		return m.constant()
	case a.op != "":
		return a.joinParts(func(part *Matcher) truth { return v.judge(part, c, arguments) })
	case a.tools != nil && m.constant() == yes:
		return yes
	case a.tools != nil:
		met := lo.SomeBy(a.tools, c.meets)
		return lo.Ternary(met && c.later != nil, maybe, truthOf(met))
	case a.path != nil && arguments && c.Arguments != nil && !c.Arguments.MayHave(a.path.steps, a.path.wild, a.kind):
		return no
	case a.agents != nil && !v.hasAgent(a.agents), a.stages != nil && !v.hasStage(a.stages):
		return no
	}
	return maybe
}

// quoteSome returns some of the names, in quotes.
func quoteSome(names []string) string {
	const most = 12
	quoted := lo.Map(lo.Subset(names, 0, most), func(name string, _ int) string { return strconv.Quote(name) })
	if len(names) > most {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}

func withArticle(kind string) string {
	switch kind {
	case "array", "object", "integer":
		return "an " + kind
	case "null":
		return kind
	}
	return "a " + kind
}
