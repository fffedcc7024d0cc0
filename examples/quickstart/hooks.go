package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/bash"
)

// baseDir denies files outside the working folder.
var baseDir = hooks.On(hooks.AtPreToolUse, "base-dir",
	hooks.RequireText("path", func(_ context.Context, c hooks.ToolContext, path string) hooks.Result {
		if !filepath.IsLocal(path) {
			return c.Deny(path + " is outside the working folder")
		}
		return c.Allow()
	}), hooks.ToolMatching("*_file")).WithPriority(hooks.PriorityGuard)

// noWipe denies commands that delete all files in the working folder or any outside it, and commands that it cannot
// analyse.
var noWipe = hooks.On(hooks.AtPreToolUse, "no-wipe",
	hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
		line := bash.Analyse(command, bash.Options{})
		if !line.Clear() {
			return c.Deny("the line may run more than it shows: write plain commands")
		}
		for _, file := range line.Files {
			if file.Access == bash.Deletes && !isInside(file) {
				return c.Deny("that would delete everything")
			}
		}
		return c.Allow()
	}), hooks.ToolNamed("bash")).WithPriority(hooks.PriorityGuard)

// isInside reports whether f is a single file in the working folder: not the folder itself, not a pattern, and not in a
// home directory.
func isInside(file bash.File) bool {
	return file.Known && file.Word.Kind == bash.Literal && file.Path != "." && !strings.HasPrefix(file.Path, "~") && filepath.IsLocal(file.Path)
}

// noForcePush rewrites push --force so that it cannot overwrite other people's commits, and denies pushes that still
// could.
var noForcePush = hooks.On(hooks.AtPreToolUse, "no-force-push",
	hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
		safe := strings.ReplaceAll(command, "push --force ", "push --force-with-lease ")
		line := bash.Analyse(safe, bash.Options{})
		if !line.Clear() {
			return c.Deny("the line may push more than it shows: write plain commands")
		}
		for git := range line.CommandsNamed("git") {
			if git.Sub == "send-pack" || git.Sub == "push" && (!git.Known() || overwritesServer(git)) {
				return c.Deny("that would overwrite what others pushed: write git push, or git push --force")
			}
		}
		if safe == command {
			return c.Pass()
		}
		var arguments map[string]any
		if err := c.Call().Decode(&arguments); err != nil {
			return c.Fail(err) // a hook that fails denies the call
		}
		arguments["command"] = safe
		return c.Rewrite(arguments)
	}), hooks.ToolNamed("bash"))

// overwritesServer reports whether a push replaces or deletes commits or branches on the server.
func overwritesServer(push bash.Command) bool {
	return push.Flag("f", "force") || push.Flag("d", "delete") || push.Flag("", "mirror") || push.Flag("", "prune") ||
		slices.ContainsFunc(push.Operands(), func(w bash.Word) bool { return strings.HasPrefix(w.Text, "+") || strings.HasPrefix(w.Text, ":") })
}

// testsFirst keeps the run from ending while no test has passed since the last file was written.
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

// countCalls observes. It counts each call and its answer, including denied calls, and changes nothing.
func countCalls(t *timeline) hooks.Hook {
	return hooks.Observe(hooks.AtPostToolUse, "count-calls", func(_ context.Context, c hooks.ToolResultContext) error {
		r := c.Result()
		t.count(&r)
		return nil
	})
}
