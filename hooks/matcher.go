package hooks

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Matcher says for which calls and moments a hook is asked. It is an immutable
// value, compiled once; what is wrong with it is told when the agent is built. The
// zero Matcher matches everything.
type Matcher struct {
	text string
	// tool judges by the tool's name alone; nil means that the name says nothing.
	tool func(name string) truth
	// full judges by everything; nil means that the name says it all.
	full func(o occasion) bool
	// needsTool: makes sense only at points of a tool call.
	needsTool bool
	// needsContext: occasion.context must be there.
	needsContext bool
	err          error
}

// occasion is what a matcher judges. It is a value, so that judging allocates
// nothing.
type occasion struct {
	state   agent.State
	point   *pointInfo
	kind    agent.StepKind
	call    *agent.ToolCall // nil at points without a tool
	context Context         // nil unless the matcher needs it
}

// truth is what can be said before the call is known.
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

// byName is what the tool's name says.
func (m Matcher) byName(name string) truth {
	switch {
	case m.tool != nil:
		return m.tool(name)
	case m.full != nil:
		return maybe
	}
	return yes
}

// matches is the whole judgement of m.
func matches(m *Matcher, o occasion) bool {
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

func toolMatcher(text string, match func(name string) bool) Matcher {
	return Matcher{text: text, needsTool: true, tool: func(name string) truth {
		return truthOf(name != "" && match(name))
	}}
}

func wrongMatcher(format string, args ...any) Matcher {
	return Matcher{err: fmt.Errorf(format, args...)}
}

// ToolNamed matches calls of the tools with exactly these names.
func ToolNamed(names ...string) Matcher {
	names = slices.Clone(names)
	if len(names) == 0 || slices.Contains(names, "") {
		return wrongMatcher("ToolNamed without a name matches nothing: name a tool")
	}
	return toolMatcher("tool "+strings.Join(names, "|"), func(name string) bool { return slices.Contains(names, name) })
}

// ToolMatching matches calls by a pattern on the tool's name.
//
// A pattern is an exact name; or a glob, in which * stands for any text, ? for any
// character, [a-z] for any of these, and \\ takes the meaning from what follows; or
// a regular expression between slashes, which must match somewhere in the name:
// anchor it to match the whole.
func ToolMatching(pattern string) Matcher {
	match, err := compilePattern(pattern)
	if err != nil {
		return wrongMatcher("tool pattern %q: %w", pattern, err)
	}
	return toolMatcher("tool "+pattern, match)
}

// compilePattern compiles an exact name, a glob, or a /regular expression/.
func compilePattern(pattern string) (func(string) bool, error) {
	switch {
	case pattern == "":
		return nil, errors.New("the pattern is empty: use * for every name")
	case pattern == "//":
		return nil, errors.New("the regular expression is empty: use * for every name")
	case len(pattern) > 2 && pattern[0] == '/' && pattern[len(pattern)-1] == '/':
		re, err := regexp.Compile(pattern[1 : len(pattern)-1])
		if err != nil {
			return nil, err
		}
		return re.MatchString, nil
	case strings.ContainsAny(pattern, `*?[\`):
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, err
		}
		flat := flattened.Replace(pattern)
		return func(name string) bool {
			ok, _ := path.Match(flat, flattened.Replace(name))
			return ok
		}, nil
	}
	return func(name string) bool { return name == pattern }, nil
}

// flattened puts another character in the place of slashes, which path.Match keeps
// from being matched by *: a name has no folders.
var flattened = strings.NewReplacer("/", "\x00")

// Argument matches calls that have a value at a path of their arguments, such as
// "path" or "to.0.email", for which test says yes. Test is given the JSON text of
// the value: a string has its quotes. It must be quick and safe for concurrent use.
func Argument(at string, test func(raw string) bool) Matcher {
	if test == nil {
		return wrongMatcher("argument %q: the test is nil", at)
	}
	return Matcher{text: "argument " + at, needsTool: true, full: func(o occasion) bool {
		if o.call == nil {
			return false
		}
		raw, ok := strictjson.Lookup(argumentsOf(*o.call), at)
		return ok && test(raw)
	}}
}

// ArgumentEquals matches calls whose value at a path equals value, as JSON: 1 and
// 1.0 are equal, digits of big numbers count, and the order of an object's members
// does not.
func ArgumentEquals(at string, value any) Matcher {
	want, err := jsonValueOf(value)
	if err != nil {
		return wrongMatcher("argument %q: the value to compare with: %w", at, err)
	}
	m := Argument(at, func(raw string) bool {
		got, err := parseJSON(raw)
		return err == nil && sameJSON(got, want)
	})
	m.text += fmt.Sprintf(" = %v", value)
	return m
}

// ArgumentMatching matches calls whose value at a path is a string that the
// pattern matches; see ToolMatching for patterns.
func ArgumentMatching(at, pattern string) Matcher {
	match, err := compilePattern(pattern)
	if err != nil {
		return wrongMatcher("argument %q: pattern %q: %w", at, pattern, err)
	}
	m := Argument(at, func(raw string) bool {
		text, ok := strictjson.Unquote(raw)
		return ok && match(text)
	})
	m.text += " ~ " + pattern
	return m
}

// AgentNamed matches runs of agents whose name the pattern matches.
func AgentNamed(pattern string) Matcher {
	return runMatcher("agent", pattern, func(r agent.Run) string { return r.Agent })
}

// StageNamed matches runs in pipeline stages whose name the pattern matches.
func StageNamed(pattern string) Matcher {
	return runMatcher("stage", pattern, func(r agent.Run) string { return r.Stage })
}

func runMatcher(what, pattern string, of func(agent.Run) string) Matcher {
	match, err := compilePattern(pattern)
	if err != nil {
		return wrongMatcher("%s pattern %q: %w", what, pattern, err)
	}
	return Matcher{text: what + " " + pattern, full: func(o occasion) bool { return match(of(o.state.Run())) }}
}

// AtDepth matches runs that have from least to most runs above them; a negative
// most means any number.
func AtDepth(least, most int) Matcher {
	if most >= 0 && most < least {
		return wrongMatcher("depth from %d to %d matches nothing", least, most)
	}
	text := fmt.Sprintf("depth %d to %d", least, most)
	if most < 0 {
		text = fmt.Sprintf("depth %d or more", least)
	}
	return Matcher{text: text, full: func(o occasion) bool {
		d := o.state.Run().Depth
		return d >= least && (most < 0 || d <= most)
	}}
}

// StepKindIs matches steps of that kind. Where a step's kind is not known yet,
// before the model has answered, it matches none.
func StepKindIs(kind agent.StepKind) Matcher {
	return Matcher{text: "step kind " + string(kind), full: func(o occasion) bool { return o.kind == kind }}
}

// MetadataPresent matches states that have a value for the key.
func MetadataPresent[T any](key agent.Key[T]) Matcher {
	return Matcher{text: "metadata " + key.Name(), full: func(o occasion) bool {
		_, ok := key.From(o.state)
		return ok
	}}
}

// MetadataEquals matches states whose value for the key equals value.
func MetadataEquals[T comparable](key agent.Key[T], value T) Matcher {
	return Matcher{text: fmt.Sprintf("metadata %s = %v", key.Name(), value), full: func(o occasion) bool {
		v, ok := key.From(o.state)
		return ok && v == value
	}}
}

// AtPoints matches the named points: for hooks at several.
func AtPoints(names ...PointName) Matcher {
	names = slices.Clone(names)
	if len(names) == 0 {
		return wrongMatcher("AtPoints without a name matches nothing: name a point")
	}
	for _, name := range names {
		if _, ok := infoOf(name); !ok {
			return wrongMatcher("there is no point %q", name)
		}
	}
	return Matcher{text: fmt.Sprint("points ", names), full: func(o occasion) bool { return slices.Contains(names, o.point.name) }}
}

// When matches what test says yes to. Test must be quick and safe for concurrent
// use.
func When(test func(c Context) bool) Matcher {
	if test == nil {
		return wrongMatcher("When: the test is nil")
	}
	return Matcher{text: "func", needsContext: true, full: func(o occasion) bool { return test(o.context) }}
}

// And matches what all of the matchers match; without any, everything.
func And(matchers ...Matcher) Matcher {
	all := slices.Clone(matchers)
	return joined("and", all, Matcher{
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
		full: func(o occasion) bool {
			for i := range all {
				if !matches(&all[i], o) {
					return false
				}
			}
			return true
		},
	})
}

// Or matches what any of the matchers matches. Without any it is an error.
func Or(matchers ...Matcher) Matcher {
	if len(matchers) == 0 {
		return wrongMatcher("an Or without matchers matches nothing: give it one, or leave it out")
	}
	either := slices.Clone(matchers)
	return joined("or", either, Matcher{
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
		full: func(o occasion) bool {
			for i := range either {
				if matches(&either[i], o) {
					return true
				}
			}
			return false
		},
	})
}

// Not matches what the matcher does not.
func Not(m Matcher) Matcher {
	return joined("not", []Matcher{m}, Matcher{
		tool: func(name string) truth {
			switch m.byName(name) {
			case yes:
				return no
			case no:
				return yes
			}
			return maybe
		},
		full: func(o occasion) bool { return !matches(&m, o) },
	})
}

func joined(word string, parts []Matcher, m Matcher) Matcher {
	texts := make([]string, len(parts))
	var errs []error
	for i, p := range parts {
		texts[i] = p.String()
		errs = append(errs, p.err)
		m.needsTool = m.needsTool || p.needsTool
		m.needsContext = m.needsContext || p.needsContext
	}
	m.text = word + "(" + strings.Join(texts, ", ") + ")"
	m.err = errors.Join(errs...)
	return m
}
