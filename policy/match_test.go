package policy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

// IP-25, IP-26, IP-27, IP-28, IP-29, IP-31, IP-32, IP-33, IP-34, IP-35, LH-55 in files.
func TestMatch(t *testing.T) {
	call := func(tool string) hookstest.Moment { return hookstest.ToolCall(tool, `{}`) }
	with := func(args string) hookstest.Moment { return hookstest.ToolCall("t", args) }
	key, ofRun := agent.SessionKey[string]("team"), agent.RunKey[int]("level")
	for _, tc := range []struct {
		match string
		yes   []hookstest.Moment
		no    []hookstest.Moment
	}{
		{`{tool: bash}`, []hookstest.Moment{call("bash")}, []hookstest.Moment{call("bash2"), call("Bash")}},
		{`{tool: "*"}`, []hookstest.Moment{call("bash"), call("a/b")}, nil},
		{`{tool: ""}`, []hookstest.Moment{call("bash")}, nil},
		{`{}`, []hookstest.Moment{call("bash")}, nil},
		{`{tool: "read_*"}`, []hookstest.Moment{call("read_file")}, []hookstest.Moment{call("read"), call("write_file")}},
		{`{tool: "*_file"}`, []hookstest.Moment{call("read_file")}, []hookstest.Moment{call("file")}},
		{`{tool: "/^(read|write)_.+$/"}`, []hookstest.Moment{call("read_a"), call("write_b")}, []hookstest.Moment{call("read_"), call("xread_a")}},
		{`{tool: "/^fs/read/"}`, []hookstest.Moment{call("fs/readFile"), call("fs/readFile"), call("fs/readFile")}, []hookstest.Moment{call("http/readFile")}},
		{`{tool: "/^undefined|null/"}`, nil, []hookstest.Moment{call("x")}},
		{`{tool: [bash, "mcp__*"]}`, []hookstest.Moment{call("bash"), call("mcp__a")}, []hookstest.Moment{call("b")}},
		{`{not: {tool: bash}}`, []hookstest.Moment{call("b")}, []hookstest.Moment{call("bash")}},
		{`{all: []}`, []hookstest.Moment{call("b")}, nil},
		{`{any: [{tool: bash}, {tool: "read_*"}], depth: {max: 1}}`, []hookstest.Moment{call("read_x")},
			[]hookstest.Moment{call("b"), call("bash").WithRun(agent.Run{Depth: 2})}},
		{`{depth: 1}`, []hookstest.Moment{call("b").WithRun(agent.Run{Depth: 1})}, []hookstest.Moment{call("b")}},
		{`{depth: {min: 1}}`, []hookstest.Moment{call("b").WithRun(agent.Run{Depth: 9})}, []hookstest.Moment{call("b")}},
		{`{args: {command: "*rm*"}}`, []hookstest.Moment{with(`{"command":"a rm\nb"}`)}, []hookstest.Moment{with(`{"command":"ls"}`), with(`{}`), with(`{"command":["rm"]}`)}},
		{`{args: {flags.force: true}}`, []hookstest.Moment{with(`{"flags":{"force":true}}`)}, []hookstest.Moment{with(`{"flags":{"force":"true"}}`), with(`{"flags.force":true}`)}},
		{`{args: {n: 1}}`, []hookstest.Moment{with(`{"n":1.0}`)}, []hookstest.Moment{with(`{"n":"1"}`), with(`{"n":12345678901234567891}`)}},
		{`{args: {to: [ann, "b*"]}}`, []hookstest.Moment{with(`{"to":"ann"}`), with(`{"to":"bob"}`)}, []hookstest.Moment{with(`{"to":"carl"}`)}},
		{`{args: {to: present}}`, []hookstest.Moment{with(`{"to":null}`)}, []hookstest.Moment{with(`{}`)}},
		{`{args: {to: {equals: [1, {a: b}]}}}`, []hookstest.Moment{with(`{"to":[1,{"a":"b"}]}`)}, []hookstest.Moment{with(`{"to":[1]}`)}},
		{`{agent: "build*"}`, []hookstest.Moment{call("b").WithRun(agent.Run{Agent: "builder"})}, []hookstest.Moment{call("b").WithRun(agent.Run{Agent: "x"})}},
		{`{stage: [plan, work]}`, []hookstest.Moment{call("b").WithRun(agent.Run{Stage: "work"})}, []hookstest.Moment{call("b")}},
		{`{metadata: {team: present}}`, []hookstest.Moment{call("b").WithEffects(key.Set("red"))}, []hookstest.Moment{call("b")}},
		{`{metadata: {team: red, level: 3}}`, []hookstest.Moment{call("b").WithEffects(key.Set("red"), ofRun.Set(3))},
			[]hookstest.Moment{call("b").WithEffects(key.Set("blue"), ofRun.Set(3)), call("b").WithEffects(key.Set("red"))}},
		{`{step_kind: tool_execution}`, []hookstest.Moment{call("b")}, nil},
		{`{args: {to.*.email: "eve@*"}}`, []hookstest.Moment{with(`{"to":[{"email":"ann@x.org"},{"email":"eve@x.org"}]}`)}, []hookstest.Moment{with(`{"to":["eve@x.org"]}`)}},
		{`{args: {'a\.b': x}}`, []hookstest.Moment{with(`{"a.b":"x"}`)}, []hookstest.Moment{with(`{"a":{"b":"x"}}`)}},
	} {
		t.Run(tc.match, func(t *testing.T) {
			p := load(t, "policy: p\nhooks: {PreToolUse: [{id: r, decision: deny, match: "+tc.match+"}]}")
			for i, m := range tc.yes {
				assert.Equal(t, hooks.Deny, fire(t, p, m).Decision, "yes %d", i)
			}
			for i, m := range tc.no {
				assert.Equal(t, hooks.Pass, fire(t, p, m).Decision, "no %d", i)
			}
		})
	}
}

// IP-30, IP-36: a tool is matched where there is one, by the name that the call has then.
func TestMatchToolsWhereThereAreSome(t *testing.T) {
	for _, point := range []string{"PostToolUse", "ToolFailed", "InterventionRequested"} {
		load(t, fmt.Sprintf("policy: p\nhooks: {%s: [{type: func, func: f, match: {tool: bash}}]}", point))
	}
	for _, point := range []string{"StepEnd", "Stop", "ExecutionStart", "IterationStart", "RunStart"} {
		assert.Contains(t, refused(t, fmt.Sprintf("policy: p\nhooks: {%s: [{type: func, func: f, match: {not: {tool: bash}}}]}", point)),
			"is not about a tool call")
	}
	p := load(t, "policy: p\nhooks: {PostToolUse: [{id: r, decision: withhold, match: {tool: bash}}]}")
	assert.Equal(t, hooks.Withhold, fire(t, p, hookstest.ToolResult("bash", `{}`, "x")).Decision)
	assert.Equal(t, hooks.Pass, fire(t, p, hookstest.ToolResult("other", `{}`, "x")).Decision)
}
