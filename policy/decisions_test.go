package policy_test

import (
	"errors"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

// Every decision, at each kind of point that has it.
func TestDecisions(t *testing.T) {
	call := hookstest.ToolCall("send", `{"to":"ann","size":12345678901234567890,"note":{"a":1,"b":2}}`)
	for name, tc := range map[string]struct {
		rule string
		at   hookstest.Moment
		want hooks.Decision
		also func(t *testing.T, f hookstest.Fired)
	}{
		"allow": {`PreToolUse: [{id: r, decision: allow}]`, call, hooks.Allow, nil},
		"deny": {`PreToolUse: [{id: r, decision: deny, reason: 'not to ${args.to}'}]`, call, hooks.Deny, func(t *testing.T, f hookstest.Fired) {
			t.Helper()
			assert.Equal(t, "not to ann", f.Reason)
			assert.Equal(t, "p/r", f.Hook)
			assert.False(t, f.Ran())
		}},
		"deny with odd names": {
			`PreToolUse: [{id: r, decision: deny, reason: '${args.content-type} ${args.list.1.in} ${args.list.7} ${args.none} ${call.index} ${args.nasty}'}]`,
			hookstest.ToolCall("send", `{"content-type":"text","list":[1,{"in":[2]}],"nasty":"${tool} \"$(x)\" && true\n"}`), hooks.Deny,
			func(t *testing.T, f hookstest.Fired) {
				t.Helper()
				assert.Equal(t, "text [2] ${args.list.7} ${args.none} 0 ${tool} \"$(x)\" && true\n", f.Reason)
			},
		},
		"stop": {`PreToolUse: [{id: r, decision: stop, reason: enough}]`, call, hooks.StopRun, func(t *testing.T, f hookstest.Fired) {
			t.Helper()
			assert.Equal(t, "enough", f.State.StopSignal().Message)
		}},
		"ask": {`PreToolUse: [{id: r, decision: ask, within: 1h, on_timeout: approve}]`, call, hooks.Ask, nil},
		"mock": {`PreToolUse: [{id: r, decision: mock, result: 'sent to ${args.to}'}]`, call, hooks.Mock, func(t *testing.T, f hookstest.Fired) {
			t.Helper()
			assert.Equal(t, "sent to ann", f.Text())
			assert.False(t, f.Result.IsError())
		}},
		"mock with a value": {`PreToolUse: [{id: r, decision: mock, result: {ok: true}, failure: true}]`, call, hooks.Mock, func(t *testing.T, f hookstest.Fired) {
			t.Helper()
			assert.JSONEq(t, `{"ok":true}`, f.Text())
			assert.True(t, f.Result.IsError())
		}},
		"rewrite": {
			`PreToolUse: [{id: r, decision: rewrite, set: {to: '"bob"', 'note.c': 'args.size', 'new.deep': '[1, 2u]'}, remove: [note.a, nothing]}]`,
			call, hooks.Rewrite, func(t *testing.T, f hookstest.Fired) {
				t.Helper()
				assert.JSONEq(t, `{"to":"bob","size":12345678901234567890,"note":{"b":2,"c":12345678901234567890},"new":{"deep":[1,2]}}`, f.Call.Arguments)
				assert.Contains(t, f.Call.Arguments, "12345678901234567890")
			},
		},
		"add context": {
			`PreToolUse: [{id: r, decision: add_context, context: 'you call ${tool}', metadata: {called: tool, n: '1 + 1'}}]`,
			call, hooks.Allow, func(t *testing.T, f hookstest.Fired) {
				t.Helper()
				assert.Equal(t, []string{"you call send"}, f.AddedTexts())
				called, _ := agent.SessionKey[string]("called").From(f.State)
				n, _ := agent.SessionKey[int64]("n").From(f.State)
				assert.Equal(t, "send", called)
				assert.Equal(t, int64(2), n)
			},
		},
		"deny an input":    {`InputSubmitted: [{id: r, decision: deny}]`, hookstest.Input("hi"), hooks.Deny, nil},
		"rewrite an input": {`InputSubmitted: [{id: r, decision: rewrite, set: {input: 'input + "!"'}}]`, hookstest.Input("hi"), hooks.Rewrite, leaves("hi!")},
		"redact an input": {
			`UserPromptSubmit: [{id: r, decision: redact, pii: [email]}]`, hookstest.Input("I am ann@example.com"),
			hooks.Rewrite, leaves("I am [EMAIL]"),
		},
		"redact nothing":   {`InputSubmitted: [{id: r, decision: redact, pii: true}]`, hookstest.Input("hi"), hooks.Pass, leaves("hi")},
		"stop a step":      {`StepStart: [{id: r, decision: stop}]`, hookstest.StepStart(), hooks.StopRun, nil},
		"stop after one":   {`StepEnd: [{id: r, decision: stop}]`, hookstest.StepEnd("done"), hooks.StopRun, nil},
		"withhold a reply": {`PostInference: [{id: r, decision: replace, result: no}]`, hookstest.Reply("yes"), hooks.Replace, leaves("no")},
		"redact a reply": {
			`PostInference: [{id: r, decision: redact, patterns: ['\d{3}-\d{3}'], with: '#'}]`, hookstest.Reply("call 123-456"),
			hooks.Replace, leaves("call #"),
		},
		"redact a split match": {
			`PostInference: [{id: r, decision: redact, patterns: ['\d{3}-\d{3}'], with: '#'}]`, hookstest.Reply("call 12\u00ad3-4\x1b[1m5\r\n6 now"),
			hooks.Replace, leaves("call # now"),
		},
		"redact a result": {
			`PostToolUse: [{id: r, decision: redact, secrets: true, patterns: ['item-\d+']}]`,
			hookstest.ToolResult("read", `{}`, `{"a":"item-\u0031 ghp_0123456789abcdefghijklmnopqrstuvwxyz"}`),
			hooks.Replace, func(t *testing.T, f hookstest.Fired) {
				t.Helper()
				assert.NotContains(t, f.Text(), "item-")
				assert.NotContains(t, f.Text(), "ghp_")
				assert.Contains(t, f.Text(), "[redacted: pattern]")
			},
		},
		"withhold a result": {`PostToolUse: [{id: r, decision: withhold, reason: secret}]`, hookstest.ToolResult("read", `{}`, "x"), hooks.Withhold, nil},
		"replace a failure": {`ToolFailed: [{id: r, decision: replace, result: 'it failed: ${error}'}]`, hookstest.ToolFailure("read", `{}`, errors.New("gone")), hooks.Replace, leaves("it failed: gone")},
		"go on":             {`Stop: [{id: r, decision: continue, reason: 'not yet'}]`, hookstest.Stop("done"), hooks.Continue, nil},
		"approve":           {`PermissionRequest: [{id: r, decision: approve, reason: fine}]`, hookstest.Intervention("send", `{}`), hooks.Approve, nil},
		"reject":            {`PermissionRequest: [{id: r, decision: reject}]`, hookstest.Intervention("send", `{}`), hooks.RejectAndEnd, nil},
		"deny a sub-agent":  {`PreSubagent: [{id: r, decision: deny}]`, hookstest.Subagent("helper", "help"), hooks.Deny, nil},
		"instruct a sub-agent": {
			`PreSubagent: [{id: r, decision: rewrite, set: {instruction: 'subagent.instruction + " quickly"'}}]`,
			hookstest.Subagent("helper", "help"), hooks.Rewrite, nil,
		},
		"deny a run": {`RunStart: [{id: r, decision: deny}]`, hookstest.Blueprint(hooks.RunStart, hooks.BlueprintRun{Parameters: []byte(`{}`)}), hooks.Deny, nil},
		"stop a pipeline": {`IterationStart: [{id: r, when: '${ITERATION} > 3', decision: stop}]`,
			hookstest.Pipeline(hooks.IterationStart, hooks.Pipeline{}).WithRun(agent.Run{Iteration: 4}), hooks.StopRun, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := fire(t, load(t, "policy: p\nhooks: {"+tc.rule+"}"), tc.at)
			assert.NoError(t, f.Err)
			assert.Equal(t, tc.want, f.Decision, "%s", f)
			if tc.also != nil {
				tc.also(t, f)
			}
		})
	}
}

func leaves(text string) func(t *testing.T, f hookstest.Fired) {
	return func(t *testing.T, f hookstest.Fired) {
		t.Helper()
		assert.Equal(t, text, f.Text())
	}
}

// A real agent with a policy: one call is denied, the others of the step run.
func TestAnAgentWithAPolicy(t *testing.T) {
	p := load(t, `
policy: workspace
version: "3"
variables: {workspace: /srv/app}
hooks:
  PreToolUse:
    - id: inside
      match: {tool: [write, read]}
      when: '!path.within(args.path, workspace)'
      decision: deny
      reason: '${args.path} is outside of ${vars.workspace}'
`)
	final, seen := run(t, p, []string{"write", "list"},
		agenttest.Call("write", `{"path":"/etc/passwd"}`).Call("write", `{"path":"/srv/app/a"}`).
			Call("write", `{}`).Call("list", `{}`),
		agenttest.Say("done"))
	assert.Equal(t, `user: go
assistant calls write {"path":"/etc/passwd"}
assistant calls write {"path":"/srv/app/a"}
assistant calls write {}
assistant calls list {}
tool write (not_executed): tool "write": denied by workspace/inside: /etc/passwd is outside of /srv/app
tool write (executed): ran {"path":"/srv/app/a"}
tool write (not_executed): tool "write": not executed: workspace/inside: the hook could not decide: when: `+
		`condition "!path.within(args.path, workspace)" at PreToolUse, column 18: args.path: no member "path": check with has(…) first
tool list (executed): ran {}
assistant: done
`, agenttest.Transcript(final))
	blocked := lo.Filter(agenttest.Of[hooks.Event](seen), func(e hooks.Event, _ int) bool { return e.Kind == hooks.HookBlocked })
	require.Len(t, blocked, 1)
	assert.Equal(t, &hooks.Origin{Policy: "workspace", Version: "3", Hash: p.Hash(), Rule: "inside", Layer: 4, File: "policy.yaml", Line: 7}, blocked[0].Origin)
	assert.Contains(t, blocked[0].Outcome.Facts(), hooks.Fact{Name: "args.path", Value: `"/etc/passwd"`})
}
