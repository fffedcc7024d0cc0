package hooks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// A Matcher determines for which calls and moments a hook is called. It is an immutable value that is compiled once. An
// error in it is reported when the agent is built. The zero Matcher matches everything.
type Matcher struct { //nolint:recvcheck // decoding needs a pointer
	text string
	// tool judges only the tool's name. Nil means that the name does not matter.
	tool func(name string) truth
	// full judges the whole input. Nil means that the name decides.
	full func(o matchInput) bool
	// needsTool reports that the matcher makes sense only at a tool call's points.
	needsTool bool
	// needsStep reports that the matcher makes sense only at points where the step's kind is known.
	needsStep bool
	// needsContext reports that matchInput.context must be set.
	needsContext bool
	about        *aboutMatcher // nil if nothing is known before the hook is called
	err          error
}

// matchInput is the call or moment that a matcher judges. It is a value, so that matching
// does not allocate.
type matchInput struct {
	state   agent.State
	point   *pointInfo
	kind    agent.StepKind
	call    *agent.ToolCall // nil at points without a tool
	context Context         // nil unless the matcher needs it
}

// truth is a judgement before the call: no, maybe or yes.
type truth uint8

const (
	maybe truth = iota
	no
	yes
)

func truthOf(ok bool) truth {
	if ok {
		return yes
	}
	return no
}

func (m Matcher) String() string {
	if m.text == "" {
		return "everything"
	}
	return m.text
}

// Err returns the error in the matcher, or nil. Building an agent reports it, too.
func (m Matcher) Err() error { return m.err }

// byName returns the matcher's judgement of the tool's name.
func (m Matcher) byName(name string) truth {
	switch {
	case m.tool != nil:
		return m.tool(name)
	case m.full != nil:
		return maybe
	}
	return yes
}

// matchesMoment reports whether m matches.
func matchesMoment(m *Matcher, o matchInput) bool {
	if m.tool != nil {
		name := ""
		if o.call != nil {
			name = o.call.Name
		}
		switch m.tool(name) {
		case yes:
			return true
		case no:
			return false
		}
	}
	return m.full == nil || m.full(o)
}

// toolMatcher matches calls to tools that one of the patterns matches.
func toolMatcher(text string, tools ...pattern) Matcher {
	return Matcher{text: text, needsTool: true, about: &aboutMatcher{tools: tools}, tool: func(name string) truth {
		for i := range tools {
			if name != "" && tools[i].match(name) {
				return yes
			}
		}
		return no
	}}
}

func wrongMatcher(format string, args ...any) Matcher {
	return Matcher{err: fmt.Errorf(format, args...)}
}

// ToolNamed matches calls to tools with exactly these names.
func ToolNamed(names ...string) Matcher {
	if len(names) == 0 || slices.Contains(names, "") {
		return wrongMatcher("ToolNamed without a name matches nothing: name a tool")
	}
	tools := make([]pattern, len(names))
	for i, name := range names {
		tools[i] = pattern{text: name, exact: name, match: func(other string) bool { return other == name }}
	}
	return toolMatcher("tool "+strings.Join(names, "|"), tools...)
}

// ToolMatching matches calls by a pattern on the tool's name.
//
// A pattern is an exact name, a glob, or a regular expression between slashes. In a glob, * matches any text, ? any
// character, [a-z] any of these, and \\ escapes the next character. A regular expression matches anywhere in the name
// unless it is anchored.
//
// A text without slashes that looks like a regular expression, such as ^bash$ or bash|sh, is an error when the agent is
// built. As a name it would match no tool. Exact returns a pattern that matches any text literally.
func ToolMatching(text string) Matcher {
	p, err := compilePattern(text)
	if err != nil {
		return wrongMatcher("tool pattern %q: %w", text, err)
	}
	return toolMatcher("tool "+text, p)
}

// Argument matches calls with an argument at a path, such as "path" or "to.0.email", for which test returns true. test
// receives the value's JSON text: a string has its quotes. It must be quick and safe for concurrent use.
//
// A path is a list of names, separated by dots. A number selects an element of a list, counted from 0. A step that is
// only * selects each element, or each member of an object: "to.*.email" is tested until test returns true. A backslash
// escapes the next character: `a\.b` is one name, and `\*` the name of a star. A path that begins with a slash is a
// JSON pointer. A step that is * or \* has the same meaning in it.
func Argument(path string, test func(raw string) bool) Matcher {
	if test == nil {
		return wrongMatcher("argument %q: the test is nil", path)
	}
	return argumentMatcher(path, "", test)
}

// argumentMatcher works like Argument for values with one JSON type. Empty means any type.
func argumentMatcher(path, kind string, test func(raw string) bool) Matcher {
	at, err := compilePath(path)
	if err != nil {
		return wrongMatcher("argument %q: %w", path, err)
	}
	return Matcher{text: "argument " + path, needsTool: true, about: &aboutMatcher{path: &at, kind: kind}, full: func(o matchInput) bool {
		return o.call != nil && at.anyValue(argumentsOf(*o.call), test)
	}}
}

// ArgumentEquals matches calls whose value at a path equals value, as JSON. 1 and 1.0 are equal, big numbers are
// compared with all their digits, and member order does not matter. See Argument for paths.
func ArgumentEquals(path string, value any) Matcher {
	want, err := jsonValueOf(value)
	if err != nil {
		return wrongMatcher("argument %q: the value to compare with: %w", path, err)
	}
	m := argumentMatcher(path, jsonKindOf(want), func(raw string) bool {
		got, err := parseJSON(raw)
		return err == nil && sameJSON(got, want)
	})
	m.text += fmt.Sprintf(" = %v", value)
	return m
}

// ArgumentMatching matches calls whose value at a path is a string that the pattern matches. See ToolMatching for
// patterns, and Argument for paths.
func ArgumentMatching(path, text string) Matcher {
	p, err := compilePattern(text)
	if err != nil {
		return wrongMatcher("argument %q: pattern %q: %w", path, text, err)
	}
	m := argumentMatcher(path, "string", func(raw string) bool {
		text, ok := strictjson.Unquote(raw)
		return ok && p.match(text)
	})
	m.text += " ~ " + text
	return m
}

// AgentNamed matches runs of agents whose name the pattern matches.
func AgentNamed(pattern string) Matcher {
	m, p := runMatcher("agent", pattern, func(r agent.Run) string { return r.Agent })
	if m.err == nil {
		m.about = &aboutMatcher{agents: &p}
	}
	return m
}

// StageNamed matches runs in pipeline stages whose name the pattern matches. An agent that runs in stages declares them with
// capability.UseLater.
func StageNamed(pattern string) Matcher {
	m, p := runMatcher("stage", pattern, func(r agent.Run) string { return r.Stage })
	if m.err == nil {
		m.about = &aboutMatcher{stages: &p}
	}
	return m
}

func runMatcher(what, text string, of func(agent.Run) string) (Matcher, pattern) {
	p, err := compilePattern(text)
	if err != nil {
		return wrongMatcher("%s pattern %q: %w", what, text, err), p
	}
	return Matcher{text: what + " " + text, full: func(o matchInput) bool { return p.match(of(o.state.Run())) }}, p
}

// AtDepth matches runs that have from least to most runs above them, counted from zero. A negative most means any
// number.
func AtDepth(least, most int) Matcher {
	switch {
	case least < 0:
		return wrongMatcher("depth from %d: depths are counted from 0, the depth of a run that no other run started", least)
	case most >= 0 && most < least:
		return wrongMatcher("depth from %d to %d matches nothing", least, most)
	case least == 0 && most < 0:
		return Matcher{text: "any depth"}
	}
	text := fmt.Sprintf("depth %d to %d", least, most)
	if most < 0 {
		text = fmt.Sprintf("depth %d or more", least)
	}
	return Matcher{text: text, full: func(o matchInput) bool {
		d := o.state.Run().Depth
		return d >= least && (most < 0 || d <= most)
	}}
}

// StepKindIs matches steps of that kind. Building the agent fails if the hook's point does not know the step's kind,
// because there is no step or the model has not answered. It also fails if the point always has another kind.
func StepKindIs(kind agent.StepKind) Matcher {
	if kind != agent.StepToolExecution && kind != agent.StepFinalResponse {
		return wrongMatcher("StepKindIs: unknown step kind %q: use %s or %s", kind, agent.StepToolExecution, agent.StepFinalResponse)
	}
	return Matcher{
		text: "step kind " + string(kind), needsStep: true, about: &aboutMatcher{step: kind},
		full: func(o matchInput) bool { return o.kind == kind },
	}
}

// MetadataPresent matches states that have a value for the key.
func MetadataPresent[T any](key agent.Key[T]) Matcher {
	if key.Name() == "" {
		return wrongMatcher("the metadata key has no name")
	}
	return Matcher{text: "metadata " + key.Name(), full: func(o matchInput) bool {
		_, ok := key.From(o.state)
		return ok
	}}
}

// MetadataEquals matches states whose value for the key equals value.
func MetadataEquals[T comparable](key agent.Key[T], value T) Matcher {
	if key.Name() == "" {
		return wrongMatcher("the metadata key has no name")
	}
	return Matcher{text: fmt.Sprintf("metadata %s = %v", key.Name(), value), full: func(o matchInput) bool {
		v, ok := key.From(o.state)
		return ok && v == value
	}}
}

// AtPoints matches the named points, for hooks at several points.
func AtPoints(names ...PointName) Matcher {
	names = slices.Clone(names)
	if len(names) == 0 {
		return wrongMatcher("AtPoints without a name matches nothing: name a point")
	}
	for _, name := range names {
		if _, ok := infoOf(name); !ok {
			return wrongMatcher("AtPoints: unknown point %q", name)
		}
	}
	return Matcher{
		text: fmt.Sprint("points ", names), about: &aboutMatcher{points: names},
		full: func(o matchInput) bool { return slices.Contains(names, o.point.name) },
	}
}

// When returns a matcher that matches if test returns true. test must be quick and safe for concurrent use.
func When(test func(c Context) bool) Matcher {
	if test == nil {
		return wrongMatcher("When: the test is nil")
	}
	return Matcher{text: "func", needsContext: true, full: func(o matchInput) bool { return test(o.context) }}
}

// And returns a matcher that matches if all the given matchers match. Without matchers, it matches everything.
func And(matchers ...Matcher) Matcher {
	all := slices.Clone(matchers)
	return joinMatchers(opAnd, all, Matcher{
		tool: func(name string) truth {
			out := yes
			for _, m := range all {
				switch m.byName(name) {
				case no:
					return no
				case maybe:
					out = maybe
				}
			}
			return out
		},
		full: func(o matchInput) bool {
			for i := range all {
				if !matchesMoment(&all[i], o) {
					return false
				}
			}
			return true
		},
	})
}

// Or returns a matcher that matches if any of the given matchers matches. Without
// matchers it is an error.
func Or(matchers ...Matcher) Matcher {
	if len(matchers) == 0 {
		return wrongMatcher("Or without matchers matches nothing: add a matcher, or remove it")
	}
	either := slices.Clone(matchers)
	return joinMatchers(opOr, either, Matcher{
		tool: func(name string) truth {
			out := no
			for _, m := range either {
				switch m.byName(name) {
				case yes:
					return yes
				case maybe:
					out = maybe
				}
			}
			return out
		},
		full: func(o matchInput) bool {
			for i := range either {
				if matchesMoment(&either[i], o) {
					return true
				}
			}
			return false
		},
	})
}

// Not returns a matcher that matches if m does not.
func Not(m Matcher) Matcher {
	return joinMatchers(opNot, []Matcher{m}, Matcher{
		tool: func(name string) truth {
			switch m.byName(name) {
			case yes:
				return no
			case no:
				return yes
			}
			return maybe
		},
		full: func(o matchInput) bool { return !matchesMoment(&m, o) },
	})
}

func joinMatchers(op operator, parts []Matcher, m Matcher) Matcher {
	texts := make([]string, len(parts))
	var errs []error
	for i, p := range parts {
		texts[i] = p.String()
		errs = append(errs, p.err)
		if op == opOr && p.constant() == no {
			errs = append(errs, fmt.Errorf("or: %s can never match: remove it", p))
		}
		m.needsTool = m.needsTool || p.needsTool
		m.needsStep = m.needsStep || p.needsStep
		m.needsContext = m.needsContext || p.needsContext
	}
	m.text = string(op) + "(" + strings.Join(texts, ", ") + ")"
	m.about = &aboutMatcher{op: op, parts: parts}
	m.err = errors.Join(errs...)
	return m
}

// MatchesCall reports whether a matcher on tools and arguments matches a call. A matcher that needs more run data than
// the call, such as When, matches no call here.
func (m Matcher) MatchesCall(call agent.ToolCall) bool {
	if m.err != nil || m.needsContext || m.needsStep {
		return false
	}
	info, _ := infoOf(PreToolUse)
	return matchesMoment(&m, matchInput{point: info, call: &call})
}
