package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/grapnel-go/grapnel/hooks"
)

// baseDir denies files outside of the working folder.
var baseDir = hooks.On(hooks.AtPreToolUse, "base-dir", func(_ context.Context, c hooks.ToolContext) hooks.Result {
	var in struct {
		Path string `json:"path"`
	}
	if err := c.Call().Decode(&in); err != nil {
		return c.Fail(err) // the failure policy decides: a control that cannot tell says no
	}
	if !filepath.IsLocal(in.Path) {
		return c.Deny(in.Path + " is outside the working folder")
	}
	return c.Allow()
}, hooks.ToolMatching("*_file")).WithPriority(hooks.PriorityGuard)

// noWipe denies commands that delete a root. Real shell analysis is a policy of
// its own; this one shows the hook.
var noWipe = hooks.On(hooks.AtPreToolUse, "no-wipe", func(_ context.Context, c hooks.ToolContext) hooks.Result {
	command, _ := c.Call().Text("command")
	words := strings.Fields(command)
	for i, word := range words {
		if word == "rm" && strings.Contains(strings.Join(words[i:], " ")+" ", " / ") {
			return c.Deny("that would delete everything")
		}
	}
	return c.Allow()
}, hooks.ToolNamed("bash")).WithPriority(hooks.PriorityGuard)

// noForcePush rewrites a push such that it cannot overwrite what others pushed.
var noForcePush = hooks.On(hooks.AtPreToolUse, "no-force-push", func(_ context.Context, c hooks.ToolContext) hooks.Result {
	command, _ := c.Call().Text("command")
	safe := strings.ReplaceAll(command, "push --force ", "push --force-with-lease ")
	if safe == command {
		return c.Pass()
	}
	return c.Rewrite(map[string]string{"command": safe})
}, hooks.ToolNamed("bash"))

// testsFirst keeps the run from ending while no test has passed since the last
// file was written.
var testsFirst = hooks.On(hooks.AtStop, "tests-first", func(_ context.Context, c hooks.StopContext) hooks.Result {
	for _, step := range c.State().RunStepsBackward() {
		for _, r := range step.Results() {
			command := hooks.Call{ToolCall: r.Call()}
			text, _ := command.Text("command")
			switch {
			case r.Executed() && strings.HasPrefix(text, "go test") && strings.HasPrefix(r.Text(), "ok"):
				return c.Allow()
			case r.Executed() && r.Tool() == "write_file":
				return c.Continue("Run the tests: none has passed since you changed " + pathOf(command) + ".")
			}
		}
	}
	return c.Allow()
})

func pathOf(c hooks.Call) string {
	path, _ := c.Text("path")
	return path
}

// countCalls observes: it is told of every call and its answer, denied ones
// included, and changes nothing.
func countCalls(t *timeline) hooks.Hook {
	return hooks.Observe(hooks.AtPostToolUse, "count-calls", func(_ context.Context, c hooks.ToolResultContext) error {
		r := c.Result()
		t.count(&r)
		return nil
	})
}
