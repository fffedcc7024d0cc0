package hooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// asks reports whether a hook at PreToolUse with the matcher is asked about a call.
// Known says whether the tool is one of those that the set was compiled for: what is
// known is settled by name beforehand.
func asks(t tester, m hooks.Matcher, known bool, tool, arguments string) bool {
	t.Helper()
	asked := false
	set := hooks.NewSet(before("h", func(c hooks.ToolContext) hooks.Result { asked = true; return c.Pass() }, m))
	var tools []string
	if known {
		tools = []string{tool, "another"}
	}
	compiled, err := set.Compile(tools...)
	require.NoError(t, err)
	call := &agent.ToolCall{ID: "call_1", Name: tool, Arguments: arguments}
	inner := instantly(call)
	inner.p.Strict = false // it does not say that it has read the arguments
	_, err = compiled.WrapExecutor(inner).Prepare(context.Background(), agent.State{}, call).Get()
	require.NoError(t, err)
	return asked
}

// matchesMoment works like asks, however the tool is found.
func matchesMoment(t tester, m hooks.Matcher, tool, arguments string) bool {
	t.Helper()
	known, unknown := asks(t, m, true, tool, arguments), asks(t, m, false, tool, arguments)
	require.Equal(t, known, unknown, "whether the tool is known must not matter")
	return known
}

// IP-25, IP-26, IP-27, IP-28, IP-29, IP-38, IP-39: matchers of names.
func TestToolMatchers(t *testing.T) {
	tools := []string{"read", "read_file", "write_file", "readX", "list", "fs/read_file", "Read", "read_", "x_read_file", "a*b"}
	for _, tc := range []struct {
		matcher hooks.Matcher
		want    []string
	}{
		{hooks.ToolNamed("read"), []string{"read"}}, // IP-25
		{hooks.ToolNamed("read", "list"), []string{"read", "list"}},
		{hooks.ToolNamed("read*"), nil}, // a name is no pattern
		{hooks.ToolNamed("a*b"), []string{"a*b"}},
		{hooks.ToolMatching("read"), []string{"read"}},
		{hooks.ToolMatching("*"), tools}, // IP-26
		{hooks.Matcher{}, tools},
		{hooks.ToolMatching("read_*"), []string{"read_file", "read_"}},                                     // IP-27
		{hooks.ToolMatching("*_file"), []string{"read_file", "write_file", "fs/read_file", "x_read_file"}}, // IP-28
		{hooks.ToolMatching("read?"), []string{"readX", "read_"}},
		{hooks.ToolMatching("[rl]*d"), []string{"read"}},
		{hooks.ToolMatching("fs/*"), []string{"fs/read_file"}},
		{hooks.ToolMatching(`a\*b`), []string{"a*b"}},
		{hooks.ToolMatching("/^(read|write)_.+$/"), []string{"read_file", "write_file"}}, // IP-29
		{hooks.ToolMatching("/read_/"), []string{"read_file", "fs/read_file", "read_", "x_read_file"}},
		{hooks.ToolMatching("/(?i)^read$/"), []string{"read", "Read"}},
		{hooks.ToolMatching("/"), nil},
	} {
		t.Run(tc.matcher.String(), func(t *testing.T) {
			var got []string
			for _, tool := range tools {
				for range 3 { // a regular expression has no memory
					if matchesMoment(t, tc.matcher, tool, `{}`) && !slices.Contains(got, tool) {
						got = append(got, tool)
					}
				}
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// A call without a name is of no tool.
func TestToolMatchersOfNoTool(t *testing.T) {
	for _, m := range []hooks.Matcher{hooks.ToolMatching("*"), hooks.ToolMatching("/^$/"), hooks.ToolNamed("x")} {
		assert.False(t, matchesMoment(t, m, "", `{}`), m)
	}
}

// Values in the arguments.
func TestArgumentMatchers(t *testing.T) {
	const arguments = `{"path":"/etc/passwd","n":1.0,"big":9007199254740993,"deep":{"list":[{"to":"ann@x.org"},null]},` +
		`"off":false,"esc":"a\u002fb","obj":{"b":2,"a":[1,"x"]},"a.b":"dotted"}`
	for _, tc := range []struct {
		matcher hooks.Matcher
		want    bool
	}{
		{hooks.ArgumentMatching("path", "/etc/passwd"), true},
		{hooks.ArgumentMatching("path", "/etc/*"), true}, // * is any text, slashes too
		{hooks.ArgumentMatching("path", "*/passwd"), true},
		{hooks.ArgumentMatching("path", `/^\/etc\//`), true},
		{hooks.ArgumentMatching("path", "/srv/*"), false},
		{hooks.ArgumentMatching("path", "/etc/pass"), false},
		{hooks.ArgumentMatching("missing", "*"), false},
		{hooks.ArgumentMatching("n", "*"), false}, // no string
		{hooks.ArgumentMatching("deep.list.1", "*"), false},
		{hooks.ArgumentMatching("deep.list.0.to", "*@x.org"), true},
		{hooks.ArgumentMatching("/deep/list/0/to", "*@x.org"), true},
		{hooks.ArgumentMatching("/a.b", "dotted"), true},
		{hooks.ArgumentMatching("a.b", "dotted"), false},
		{hooks.ArgumentMatching(`a\.b`, "dotted"), true},
		{hooks.ArgumentMatching("deep.list.*.to", "ann@x.org"), true},
		{hooks.ArgumentMatching("/deep/list/*/to", "ann@x.org"), true},
		{hooks.ArgumentMatching("deep.*.*.to", "*@x.org"), true}, // members of an object, too
		{hooks.ArgumentMatching("*.*", "x"), false},
		{hooks.ArgumentEquals("deep.list.*", nil), true},
		{hooks.ArgumentEquals("obj.a.*", "x"), true},
		{hooks.ArgumentEquals("obj.a.*", "y"), false},
		{hooks.ArgumentEquals("path.*", "/"), false}, // a text has no elements
		{hooks.ArgumentEquals(`obj.\*`, 1), false},
		{hooks.ArgumentEquals(`*`, "dotted"), true},
		{hooks.ArgumentMatching("path", hooks.Exact("/etc/passwd")), true},
		{hooks.ArgumentMatching("esc", "a/b"), true}, // compared as it reads
		{hooks.ArgumentEquals("n", 1), true},
		{hooks.ArgumentEquals("n", 1.0), true},
		{hooks.ArgumentEquals("n", "1"), false},
		{hooks.ArgumentEquals("n", true), false},
		{hooks.ArgumentEquals("big", 9007199254740993), true},
		{hooks.ArgumentEquals("big", 9007199254740992), false}, // the same as a float64
		{hooks.ArgumentEquals("big", json.Number("9007199254740993.0")), true},
		{hooks.ArgumentEquals("off", false), true},
		{hooks.ArgumentEquals("deep.list.1", nil), true},
		{hooks.ArgumentEquals("missing", nil), false},
		{hooks.ArgumentEquals("obj", map[string]any{"a": []any{1, "x"}, "b": 2}), true},
		{hooks.ArgumentEquals("obj", map[string]any{"a": []any{1}, "b": 2}), false},
		{hooks.ArgumentEquals("obj", []any{}), false},
		{hooks.ArgumentEquals("obj.a", [2]any{1, "x"}), true},
		{hooks.Argument("off", func(raw string) bool { return raw == "false" }), true},
		{hooks.Argument("path", func(raw string) bool { return raw == `"/etc/passwd"` }), true},
		{hooks.Argument("missing", func(string) bool { return true }), false},
		{hooks.Argument("", func(raw string) bool { return raw == arguments }), true},
	} {
		t.Run(tc.matcher.String(), func(t *testing.T) {
			assert.Equal(t, tc.want, matchesMoment(t, tc.matcher, "tool", arguments))
			assert.Equal(t, !tc.want, matchesMoment(t, hooks.Not(tc.matcher), "tool", arguments))
		})
	}
	t.Run("no arguments at all", func(t *testing.T) {
		assert.False(t, matchesMoment(t, hooks.ArgumentMatching("path", "*"), "tool", ""))
	})
}

// IP-31, IP-32, IP-33, IP-34: And, Or, Not mean what they say, whatever is known about a call beforehand. An empty And
// matches everything.
func TestJoinedMatchers(t *testing.T) {
	bash, reads := hooks.ToolNamed("bash"), hooks.ToolMatching("read_*")
	short := hooks.Argument("n", func(raw string) bool { return len(raw) == 1 })
	for _, tc := range []struct {
		matcher   hooks.Matcher
		tool, n   string
		want      bool
		wantsText string
	}{
		{hooks.And(), "x", "1", true, "and()"},
		{hooks.And(bash, short), "bash", "1", true, "and(tool bash, argument n)"},
		{hooks.And(bash, short), "bash", "11", false, ""},
		{hooks.And(bash, short), "read_x", "1", false, ""},
		{hooks.Or(bash, reads), "read_x", "1", true, "or(tool bash, tool read_*)"},
		{hooks.Or(bash, reads), "write_x", "1", false, ""},
		{hooks.And(hooks.Or(bash, reads), short), "read_x", "1", true, ""}, // IP-34
		{hooks.And(hooks.Or(bash, reads), short), "read_x", "11", false, ""},
		{hooks.And(hooks.Or(bash, reads), short), "write_x", "1", false, ""},
		{hooks.Or(bash, hooks.And(reads, short)), "bash", "11", true, ""},
		{hooks.Not(bash), "bash", "1", false, "not(tool bash)"},
	} {
		t.Run(fmt.Sprint(tc.matcher, " ", tc.tool, " ", tc.n), func(t *testing.T) {
			assert.Equal(t, tc.want, matchesMoment(t, tc.matcher, tc.tool, `{"n":`+tc.n+`}`))
			if tc.wantsText != "" {
				assert.Equal(t, tc.wantsText, tc.matcher.String())
			}
		})
	}
}

// Any tree of And, Or and Not gives what its leaves give, put together as the words
// say: what is settled by name is never wrong.
func TestJoinedMatchersAreLogic(t *testing.T) {
	type tree struct {
		matcher hooks.Matcher
		holds   bool
	}
	tool, n := "bash", 7
	leaves := []tree{
		{hooks.ToolNamed("bash"), true}, {hooks.ToolNamed("read"), false}, {hooks.ToolMatching("b*"), true},
		{hooks.ArgumentEquals("n", n), true}, {hooks.ArgumentEquals("n", n+1), false},
		{hooks.Matcher{}, true}, {hooks.AtDepth(0, 0), true}, {hooks.AtDepth(1, -1), false},
		{hooks.When(func(c hooks.Context) bool { return c.Point() == hooks.PreToolUse }), true},
		{hooks.When(func(hooks.Context) bool { return false }), false},
	}
	var draw func(t *rapid.T, depth int) tree
	draw = func(t *rapid.T, depth int) tree {
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		if depth == 0 || kind == 0 {
			return rapid.SampledFrom(leaves).Draw(t, "leaf")
		}
		var parts []hooks.Matcher
		all, either := true, false
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			part := draw(t, depth-1)
			parts = append(parts, part.matcher)
			all, either = all && part.holds, either || part.holds
		}
		switch kind {
		case 1:
			return tree{hooks.And(parts...), all}
		case 2:
			return tree{hooks.Or(parts...), either}
		}
		return tree{hooks.Not(hooks.And(parts...)), !all}
	}
	rapid.Check(t, func(t *rapid.T) {
		drawn := draw(t, 3)
		if _, err := hooks.NewSet(before("h", allow, drawn.matcher)).Compile(); err != nil {
			require.ErrorContains(t, err, "can never match")
			require.False(t, drawn.holds && !strings.Contains(err.Error(), "or: "), "%s: %v", drawn.matcher, err)
			return
		}
		require.Equal(t, drawn.holds, matchesMoment(t, drawn.matcher, tool, fmt.Sprintf(`{"n":%d}`, n)), drawn.matcher)
	})
}

// IP-35: which run, which step, which state, which point; a func.
func TestRunMatchers(t *testing.T) {
	flag := agent.SessionKey[string]("flag")
	for _, tc := range []struct {
		matcher hooks.Matcher
		want    []string // the points of the steps at which it matches
	}{
		{hooks.AgentNamed("planner"), []string{"PreToolUse 0", "StepEnd 0", "PostInference 1", "StepEnd 1", "ExecutionEnd 2"}},
		{hooks.AgentNamed("plan*"), []string{"PreToolUse 0", "StepEnd 0", "PostInference 1", "StepEnd 1", "ExecutionEnd 2"}},
		{hooks.AgentNamed("other"), nil},
		{hooks.StageNamed("/^re/"), []string{"PreToolUse 0", "StepEnd 0", "PostInference 1", "StepEnd 1", "ExecutionEnd 2"}},
		{hooks.StageNamed("work"), nil},
		{hooks.AtDepth(3, 3), []string{"PreToolUse 0", "StepEnd 0", "PostInference 1", "StepEnd 1", "ExecutionEnd 2"}},
		{hooks.AtDepth(1, -1), []string{"PreToolUse 0", "StepEnd 0", "PostInference 1", "StepEnd 1", "ExecutionEnd 2"}},
		{hooks.AtDepth(0, 2), nil},
		{hooks.AtDepth(4, math.MaxInt), nil},
		{hooks.StepKindIs(agent.StepToolExecution), []string{"PreToolUse 0", "StepEnd 0"}},
		{hooks.StepKindIs(agent.StepFinalResponse), []string{"PostInference 1", "StepEnd 1"}},
		{hooks.MetadataPresent(flag), []string{"PreToolUse 0", "StepEnd 0", "PostInference 1", "StepEnd 1", "ExecutionEnd 2"}},
		{hooks.MetadataPresent(agent.SessionKey[int]("flag")), nil},
		{hooks.MetadataPresent(agent.RunKey[string]("flag")), nil},
		{hooks.MetadataEquals(flag, "red"), []string{"PreToolUse 0", "StepEnd 0", "PostInference 1", "StepEnd 1", "ExecutionEnd 2"}},
		{hooks.MetadataEquals(flag, "blue"), nil},
		{hooks.AtPoints(hooks.StepEnd, hooks.ExecutionEnd), []string{"StepEnd 0", "StepEnd 1", "ExecutionEnd 2"}},
		{hooks.When(func(c hooks.Context) bool { return c.StepIndex() == 1 }), []string{"PostInference 1", "StepEnd 1"}},
	} {
		t.Run(tc.matcher.String(), func(t *testing.T) {
			var got []string
			points := []hooks.PointName{hooks.PreToolUse, hooks.PostInference, hooks.StepEnd, hooks.ExecutionEnd}
			see := hooks.ObserveAll("see", func(_ context.Context, c hooks.Context) error {
				if c.Point() != hooks.PostInference || c.StepIndex() > 0 {
					got = append(got, fmt.Sprint(c.Point(), " ", c.StepIndex()))
				}
				return nil
			}, points...).Matching(tc.matcher)
			compiled, err := hooks.NewSet(see).Compile("echo")
			require.NoError(t, err)
			a, err := agent.New(agent.Config{
				Name: "planner", Driver: agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("hi")),
				Executor:  agenttest.Tools{"echo": func(context.Context, agent.ToolCall) (string, error) { return "", nil }}.Executor(),
				AroundRun: []agent.Processor{compiled.AroundRun()}, AroundStep: []agent.Processor{compiled.AroundStep()},
				WrapDriver:   []func(agent.Driver) agent.Driver{compiled.WrapDriver},
				WrapExecutor: []func(agent.Executor) agent.Executor{compiled.WrapExecutor},
			}).Get()
			require.NoError(t, err)
			settings := agent.RunSettings{Stage: "review", Iteration: 2, Parent: agent.Run{ID: "run_parent", Depth: 2}}
			_, err = a.RunWith(t.Context(), settings, flag.In(agent.NewState(), "red"), agent.UserText("go")).Get()
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

// IP-36: matchers of tools work after a call as before it, on the effective call.
func TestMatchersAfterACall(t *testing.T) {
	var seen []string
	see := func(name string, m hooks.Matcher) hooks.Hook {
		return after(name, func(c hooks.ToolResultContext) hooks.Result { seen = append(seen, name); return c.Pass() }, m)
	}
	workWith(t, []hooks.Hook{
		before("tidy", rewriteTo(map[string]any{"command": "pwd"}), hooks.ToolNamed("bash")),
		see("original", hooks.ArgumentMatching("command", "ls")),
		see("effective", hooks.ArgumentMatching("command", "pwd")),
		see("named", hooks.ToolNamed("bash")),
		see("other", hooks.ToolNamed("read_file")),
	}, wants("bash", ls))
	assert.Equal(t, []string{"named", "effective"}, seen)
}

// IP-30, X-04: a matcher that panics is a failure of its hook: a guard denies.
func TestPanickingMatcher(t *testing.T) {
	w := workWith(t, []hooks.Hook{before("guard", allow, hooks.When(func(hooks.Context) bool { panic("boom") }))}, wants("bash", ls))
	require.NoError(t, w.err)
	assert.Empty(t, w.ran)
	assert.Equal(t, agent.ReasonHookFailed, w.result(0).Reason)
	assert.Len(t, w.events(hooks.HookStart), 1)
	assert.Len(t, w.events(hooks.HookFailed), 1)
}

// A hook whose matchers say no is not heard of: no event, no goroutine for its time
// limit, no place among the detached ones.
func TestUnmatchedHooksLeaveNoTrace(t *testing.T) {
	never := hooks.ArgumentEquals("command", "rm")
	w := workWith(t, []hooks.Hook{
		before("guard", deny("no"), never).WithTimeout(1),
		hooks.Observe(hooks.AtPreToolUse, "watch", func(context.Context, hooks.ToolContext) error { return errPaper }, never),
		hooks.Observe(hooks.AtPreToolUse, "later", func(context.Context, hooks.ToolContext) error { return errPaper }, never).Detach(),
	}, wants("bash", ls))
	assert.Equal(t, []string{"bash " + ls}, w.ran)
	assert.Empty(t, agenttest.Of[hooks.Event](w.recorder))
}

// Whether a detached hook is started is settled before the run goes on.
func TestUnmatchedDetachedHooksAreNotStarted(t *testing.T) {
	asked := 0
	workWith(t, []hooks.Hook{
		hooks.Observe(hooks.AtPreToolUse, "later", func(context.Context, hooks.ToolContext) error { return errPaper },
			hooks.When(func(hooks.Context) bool { asked++; return false })).Detach(),
	}, wants("bash", ls))
	assert.Equal(t, 1, asked)
}

// A When matcher receives the whole context.
func TestWhenSeesTheContext(t *testing.T) {
	var seen []string
	workWith(t, []hooks.Hook{before("h", allow, hooks.When(func(c hooks.Context) bool {
		seen = append(seen, c.(hooks.ToolContext).Call().Arguments)
		return true
	}))}, wants("bash", ls))
	assert.Equal(t, []string{ls}, seen)
}

// FuzzToolPattern holds patterns against simple models: no pattern panics, and an
// exact name, a glob and a regular expression match what they say.
func FuzzToolPattern(f *testing.F) {
	for _, seed := range [][2]string{
		{"bash", "bash"}, {"read_*", "read_file"}, {"/^a.c$/", "abc"}, {"[a-c]?", "bx"}, {`a\*`, "a*"}, {"/", "/"}, {"//", ""},
		{"fs/*", "fs/x/y"}, {"*", "\xff"}, {"[", "x"}, {"[^a]", "/"}, {"/(?i)x/", "X"}, {"é?", "éa"}, {"\x00", "/"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, tool string) {
		m := hooks.ToolMatching(pattern)
		_, err := hooks.NewSet(before("h", allow, m)).Compile(tool)
		expression, isRegexp := strings.CutPrefix(pattern, "/")
		if isRegexp && len(pattern) > 1 && strings.HasSuffix(pattern, "/") {
			re, wrong := regexp.Compile(strings.TrimSuffix(expression, "/"))
			require.Equal(t, wrong != nil || pattern == "//", err != nil, "%v", err)
			if err == nil && tool != "" {
				require.Equal(t, re.MatchString(tool), matchesMoment(t, m, tool, `{}`))
			}
			return
		}
		if err != nil && strings.Contains(err.Error(), "is regular expression syntax") {
			require.True(t, strings.ContainsAny(pattern, `^$()|+{}\.`) || strings.Contains(pattern, "[:"), pattern)
			return
		}
		_, wrong := path.Match(pattern, "")
		require.Equal(t, wrong != nil || pattern == "", err != nil, "%v", err)
		if err != nil || tool == "" {
			return
		}
		got := matchesMoment(t, m, tool, `{}`)
		require.True(t, matchesMoment(t, hooks.ToolMatching(hooks.Exact(tool)), tool, `{}`), "a text matches itself")
		if !strings.ContainsAny(pattern, `*?[\`) {
			require.Equal(t, pattern == tool, got)
			return
		}
		if !strings.ContainsAny(pattern+tool, "/\x00") {
			want, _ := path.Match(pattern, tool)
			require.Equal(t, want, got)
		}
		if strings.Trim(pattern, "*") == "" {
			require.True(t, got, "* is everything")
		}
	})
}

// FuzzArgumentMatchers holds argument matchers against decoding the arguments: no
// path and no text panics, and what is found is what is there.
func FuzzArgumentMatchers(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":{"b":[1,"x"]}}`, "a.b.1"}, {`{"a/b":"x"}`, "/a~1b"}, {`{"a":"\u0078"}`, "a"}, {`{"a":"x","a":"y"}`, "a"},
		{`{"A":"x"}`, "a"}, {`[`, ""}, {`{"n":1e2}`, "n"}, {`{"":"x"}`, "/"}, {"{\"a\":\"x\"}\n", "a"}, {`{"a":9007199254740993}`, "a"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, arguments, at string) {
		if arguments == "" {
			return
		}
		if hooks.Argument(at, func(string) bool { return true }).Err() != nil {
			require.NotEqual(t, "/", at[:1], "a pointer leads somewhere")
			return
		}
		asked := func(m hooks.Matcher) bool { return matchesMoment(t, m, "tool", arguments) }
		if !asked(hooks.Matcher{}) { // arguments without one strict reading: no hook is asked
			require.False(t, asked(hooks.Argument(at, func(string) bool { return true })))
			return
		}
		raw, there := "", false
		require.Equal(t, asked(hooks.Argument(at, func(text string) bool { raw, there = text, true; return true })), there)
		if strings.Contains(at, "*") { // there may be several
			return
		}
		if !there {
			require.False(t, asked(hooks.ArgumentMatching(at, "*")))
			return
		}
		require.True(t, json.Valid([]byte(raw)), raw)
		require.True(t, asked(hooks.ArgumentEquals(at, json.RawMessage(raw))), "a value equals itself")
		require.False(t, asked(hooks.ArgumentEquals(at, map[string]any{"some": "thing else", "x": raw})))
		var text string
		isString := raw != "null" && json.Unmarshal([]byte(raw), &text) == nil
		require.Equal(t, isString, asked(hooks.ArgumentMatching(at, "*")))
		if isString && text != "" {
			require.True(t, asked(hooks.ArgumentMatching(at, hooks.Exact(text))))
		}
	})
}
