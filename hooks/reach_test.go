package hooks_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/hooks"
)

// quoted returns a text as JSON.
func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// takes is arguments that are the given names, each with its JSON type: of a member of an element, "to.*.email".
type takes map[string]string

func (a takes) Names() []string { return lo.Keys(a) }

func (a takes) MayHave(steps []string, _ []bool, kind string) bool {
	at := slices.Clone(steps)
	for i := range at {
		if _, found := a[strings.Join(append(slices.Clone(at[:i]), "*"), ".")]; !found && i > 0 && at[i] >= "0" && at[i] <= "9" {
			at[i] = "*"
		}
	}
	has, ok := a[strings.Join(at, ".")]
	return ok && (kind == "" || kind == has || kind == "integer" && has == "number")
}

// A part of a hook that nothing in reach matches is a gap; what is near is said.
func TestGaps(t *testing.T) {
	bash := hooks.Tool{Name: "bash", Arguments: takes{"command": "string", "timeout": "number", "lines": "integer"}}
	mail := hooks.Tool{Name: "send_mail", Arguments: takes{"to": "array", "to.*.email": "string", "body": "string"}}
	open := hooks.Tool{Name: "mcp__x.y"}
	reach := func(tools ...hooks.Tool) hooks.Reach {
		return hooks.Reach{Here: hooks.Scope{Agents: []string{"fixer"}, Tools: tools, Points: hooks.PointNames()}}
	}
	on := func(matching ...hooks.Matcher) hooks.Hook { return before("h", allow, matching...) }
	anything := func(string) bool { return true }
	for name, tc := range map[string]struct {
		reach hooks.Reach
		hook  hooks.Hook
		want  string // empty: no gap
		never bool
	}{
		"everything":           {reach(), on(), "", false},
		"there":                {reach(bash), on(hooks.ToolNamed("bash"), hooks.ArgumentMatching("command", "rm *")), "", false},
		"mistyped":             {reach(bash, mail), on(hooks.ToolNamed("bsah")), `"bsah" matches no tool: did you mean "bash"? Available: "bash", "send_mail"`, true},
		"other case":           {reach(bash), on(hooks.ToolMatching("Bash")), `did you mean "bash"?`, true},
		"no tools":             {reach(), on(hooks.ToolMatching("b*")), `"b*" matches no tool: the agent has no tools`, true},
		"every tool of none":   {reach(), on(hooks.ToolMatching("*")), "", false},
		"one of two":           {reach(bash), on(hooks.ToolNamed("bash", "sh")), `"sh" matches no tool`, false},
		"one way of two":       {reach(bash), on(hooks.Or(hooks.ToolNamed("bash"), hooks.ToolMatching("sh*"))), `"sh*" matches no tool`, false},
		"but this":             {reach(bash), on(hooks.Not(hooks.ToolNamed("bsah"))), "", false}, // it guards more, not less
		"but this, of none":    {reach(), on(hooks.Not(hooks.ToolNamed("bash"))), "", false},
		"two at once":          {reach(bash, mail), on(hooks.ToolNamed("bash"), hooks.ToolNamed("send_mail")), "no tool is matched by and(tool bash, tool send_mail)", true},
		"this and not this":    {reach(bash, mail), on(hooks.ToolMatching("b*"), hooks.Not(hooks.ToolNamed("bash"))), "no tool is matched by", true},
		"mistyped argument":    {reach(bash), on(hooks.ArgumentMatching("comand", "rm *")), `no call of "bash" has an argument at "comand": did you mean "command"?`, true},
		"of any tool":          {reach(bash, mail), on(hooks.ArgumentMatching("body", "*")), "", false},
		"of another tool":      {reach(bash, mail), on(hooks.ToolNamed("bash"), hooks.ArgumentMatching("body", "*")), `no call of "bash" has an argument at "body"`, true},
		"one argument of two":  {reach(bash), on(hooks.Or(hooks.ArgumentMatching("command", "rm *"), hooks.ArgumentMatching("cmd", "rm *"))), `no call of "bash" has an argument at "cmd"`, false},
		"arguments of two":     {reach(bash, mail), on(hooks.ArgumentMatching("body", "*"), hooks.ArgumentMatching("command", "*")), "no tool is matched by", true},
		"another type":         {reach(bash), on(hooks.ArgumentMatching("timeout", "30")), `no call of "bash" has an argument at "timeout" that is a string`, true},
		"value of its type":    {reach(bash), on(hooks.ArgumentEquals("timeout", 30)), "", false},
		"whole number":         {reach(bash), on(hooks.ArgumentEquals("lines", 3.0)), "", false},
		"number of another":    {reach(bash), on(hooks.ArgumentEquals("lines", 1.5)), `no call of "bash" has an argument at "lines" that is a number`, true},
		"fraction of a number": {reach(bash), on(hooks.ArgumentEquals("timeout", 1.5)), "", false},
		"any depth":            {reach(bash), on(hooks.AtDepth(0, -1), hooks.ToolNamed("bash")), "", false},
		"value of another":     {reach(bash), on(hooks.ArgumentEquals("timeout", "30")), "that is a string", true},
		"every element":        {reach(mail), on(hooks.ArgumentEquals("to.*.email", "eve")), "", false},
		"a place":              {reach(mail), on(hooks.ArgumentEquals("to.0.email", "eve")), "", false},
		"no such member":       {reach(mail), on(hooks.ArgumentEquals("to.*.e", "eve")), `no call of "send_mail" has an argument at "to.*.e"`, true},
		"not of a command":     {reach(bash), on(hooks.ArgumentEquals("to.*.e", "eve")), `no call of "bash" has an argument at "to.*.e"`, true},
		"any argument":         {reach(open), on(hooks.Argument("whatever", anything)), "", false},
		"any argument of some": {reach(open, bash), on(hooks.Argument("whatever", anything)), "", false},
		"no argument of this":  {reach(open, bash), on(hooks.ToolNamed("bash"), hooks.Argument("whatever", anything)), `no call of "bash"`, true},
		"whole arguments":      {reach(bash), on(hooks.Not(hooks.Argument("dry_run", anything))), "", false},
		"agent":                {reach(bash), on(hooks.AgentNamed("fix*")), "", false},
		"no such agent":        {reach(bash), on(hooks.AgentNamed("fxer")), `"fxer" matches no agent: available: "fixer"`, true},
		"one agent of two":     {reach(bash), on(hooks.Or(hooks.AgentNamed("fixer"), hooks.AgentNamed("reader"))), `"reader" matches no agent`, false},
		"a func":               {reach(bash), on(hooks.When(func(hooks.Context) bool { return false })), "", false},
		"observer":             {reach(bash), hooks.Observe(hooks.AtPreToolUse, "h", func(context.Context, hooks.ToolContext) error { return nil }, hooks.ToolNamed("sh")), `"sh" matches no tool`, true},
	} {
		t.Run(name, func(t *testing.T) {
			gaps := hooks.NewSet(tc.hook).Gaps(tc.reach)
			if tc.want == "" {
				assert.Empty(t, gaps)
				return
			}
			if assert.Len(t, gaps, 1) {
				assert.Contains(t, gaps[0].Text, tc.want)
				assert.Equal(t, tc.never, gaps[0].Never)
				assert.Equal(t, "h", gaps[0].Hook)
			}
		})
	}
}

// Controls are inherited, and may be for what only a sub-agent has; observers are not. A Stop hook is not inherited, either.
func TestGapsOfSubagents(t *testing.T) {
	reach := hooks.Reach{
		Here: hooks.Scope{Agents: []string{"lead"}, Tools: []hooks.Tool{{Name: "task"}}, Points: []hooks.PointName{hooks.PreToolUse, hooks.Stop}},
		Below: hooks.Scope{
			Agents: []string{"worker"}, Tools: []hooks.Tool{{Name: "bash", Arguments: takes{"command": "string"}}},
			Points: []hooks.PointName{hooks.PreToolUse, hooks.PreCompact, hooks.Stop},
		},
	}
	stop := func(matching ...hooks.Matcher) hooks.Hook {
		return hooks.On(hooks.AtStop, "h", func(_ context.Context, c hooks.StopContext) hooks.Result { return c.Pass() }, matching...)
	}
	for name, tc := range map[string]struct {
		hook hooks.Hook
		gaps int
	}{
		"control":            {before("h", allow, hooks.ToolNamed("bash"), hooks.ArgumentMatching("command", "rm *")), 0},
		"control of both":    {before("h", allow, hooks.ToolNamed("task", "bash")), 0},
		"control, misspelt":  {before("h", allow, hooks.ToolNamed("bash"), hooks.ArgumentMatching("comand", "rm *")), 1},
		"observer":           {hooks.Observe(hooks.AtPreToolUse, "h", func(context.Context, hooks.ToolContext) error { return nil }, hooks.ToolNamed("bash")), 1},
		"point":              {hooks.On(hooks.AtPreCompact, "h", func(_ context.Context, c hooks.PreCompactContext) hooks.Result { return c.Pass() }), 0},
		"no such point":      {hooks.On(hooks.AtRunStart, "h", func(_ context.Context, c hooks.RunStartContext) hooks.Result { return c.Pass() }), 1},
		"observed point":     {hooks.Observe(hooks.AtRunFinish, "h", func(context.Context, hooks.RunEndContext) error { return nil }), 0},
		"agent":              {before("h", allow, hooks.AgentNamed("worker")), 0},
		"agent of two":       {before("h", allow, hooks.Or(hooks.AgentNamed("worker"), hooks.AgentNamed("lead"))), 0},
		"two agents at once": {before("h", allow, hooks.AgentNamed("worker"), hooks.AgentNamed("lead")), 1},
		"agent at Stop":      {stop(hooks.AgentNamed("worker")), 1},
	} {
		t.Run(name, func(t *testing.T) { assert.Len(t, hooks.NewSet(tc.hook).Gaps(reach), tc.gaps) })
	}
}

// What comes later is no gap, and neither is what may be among it; what cannot be is one.
func TestGapsOfWhatComesLater(t *testing.T) {
	reach := hooks.Reach{Here: hooks.Scope{
		Points: hooks.PointNames(), LaterTools: []string{"mcp__files__*", "deploy"}, LaterAgents: []string{"judge"},
	}}
	for _, tc := range []struct {
		matcher hooks.Matcher
		ok      bool
	}{
		{hooks.ToolNamed("mcp__files__read"), true},
		{hooks.And(hooks.ToolNamed("mcp__files__read"), hooks.ArgumentMatching("path", "/etc/*")), true},
		{hooks.ToolNamed("mcp__fles__read"), false},
		{hooks.ToolNamed("deploy"), true},
		{hooks.ToolNamed("deplo"), false},
		{hooks.ToolMatching("dep*"), true},
		{hooks.ToolMatching("mcp__*"), true},
		{hooks.ToolMatching("mcp__files__w*"), true},
		{hooks.ToolMatching("mcp__web__*"), false},
		{hooks.ToolMatching("/write$/"), true},
		{hooks.ToolMatching("*_file"), true},
		{hooks.Not(hooks.ToolMatching("mcp__files__*")), true},
		{hooks.AgentNamed("judge"), true},
		{hooks.AgentNamed("jduge"), false},
	} {
		assert.Equal(t, tc.ok, len(hooks.NewSet(before("h", allow, tc.matcher)).Gaps(reach)) == 0, "%s", tc.matcher)
	}
}
