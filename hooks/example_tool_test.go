package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/bash"
	"github.com/grapnel-go/grapnel/toolexec"
)

// do lets a model make some calls, given as tool and arguments, and prints what it
// is told.
func do(hook hooks.Hook, calls ...string) {
	shell := toolexec.Func("bash", "Runs a command.", func(_ context.Context, in struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout,omitempty"`
	},
	) (string, error) {
		if in.Command == "false" {
			return "", errors.New("exit status 1")
		}
		return fmt.Sprintf("ran %s (timeout %d)", in.Command, in.Timeout), nil
	})
	read := toolexec.Func("read_file", "Reads a file.", func(_ context.Context, in struct {
		Path string `json:"path"`
	},
	) (string, error) {
		return "PASSWORD=hunter2 in " + in.Path, nil
	})
	turn := agenttest.Say("")
	for call := range slices.Chunk(calls, 2) {
		turn = turn.Call(call[0], call[1])
	}
	a := builder.New().WithDriver(agenttest.Script(turn, agenttest.Say("done"))).
		With(capability.UseTools(shell, read), capability.UseHooks(hook)).Build().MustGet()
	final, err := a.Run(context.Background(), agent.NewState(), agent.UserText("go")).Get()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Printf("%s: %s\n", m.Status(), m.Text())
		}
	}
	if signal := final.StopSignal(); err == nil && final.Status() != agent.StatusDone {
		fmt.Printf("%s by %s: %s\n", final.Status(), signal.Source, signal.Message)
	}
}

// noPush keeps git from changing what others have. It names what git may do, and denies
// lines that it cannot read.
var noPush = hooks.On(hooks.AtPreToolUse, "no-push",
	hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
		line := bash.Analyse(command, bash.Options{})
		if !line.Clear() {
			return c.Deny("the line may run more than it shows: write plain commands")
		}
		for git := range line.CommandsNamed("git") {
			switch git.Sub {
			case "status", "diff", "log", "add", "commit":
			default:
				return c.Deny("nothing is pushed: git may status, diff, log, add and commit")
			}
		}
		return c.Allow()
	}), hooks.ToolNamed("bash"))

// A denial keeps one call from running; the other calls of the step continue, and the model is told why.
func ExampleToolContext_Deny() {
	do(noPush, "bash", `{"command":"git -C . push --force"}`, "bash", `{"command":"git status"}`)
	// Output:
	// not_executed: tool "bash": denied by no-push: nothing is pushed: git may status, diff, log, add and commit
	// executed: ran git status (timeout 0)
}

// The body is asked about calls that have the text. A call without it is denied.
func ExampleRequireText() {
	do(hooks.On(hooks.AtPreToolUse, "short", hooks.RequireText("command",
		func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
			if len(command) > 20 {
				return c.Deny("at most 20 letters")
			}
			return c.Allow()
		}), hooks.ToolNamed("bash")),
		"bash", `{"command":"ls"}`, "bash", `{"command":["rm","-rf","/"]}`, "bash", `{"cmd":"rm -rf /"}`)
	// Output:
	// executed: ran ls (timeout 0)
	// not_executed: tool "bash": denied by short: argument "command" is a list: it must be a text
	// not_executed: tool "bash": denied by short: argument "command" is missing: it must be a text
}

// fuse stops the run when a file outside of the folder is wanted. It goes by names; package
// hooks/basedir also follows links.
var fuse = hooks.On(hooks.AtPreToolUse, "fuse",
	hooks.RequireText("path", func(_ context.Context, c hooks.ToolContext, path string) hooks.Result {
		if !filepath.IsLocal(path) {
			return c.Stop("the agent leaves its folder")
		}
		return c.Allow()
	}), hooks.ToolNamed("read_file"))

// A stop ends the run: no call of the step runs, not even those before it.
func ExampleToolContext_Stop() {
	do(fuse, "bash", `{"command":"ls"}`, "read_file", `{"path":"/etc/passwd"}`)
	// Output:
	// not_executed: not executed: run stopped by fuse: the agent leaves its folder
	// not_executed: not executed: run stopped by fuse: the agent leaves its folder
	// stopped by fuse: the agent leaves its folder
}

// A rewrite replaces the arguments whole; it is checked against the tool's schema.
func ExampleToolContext_Rewrite() {
	do(hooks.On(hooks.AtPreToolUse, "patience", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		var arguments map[string]any
		if err := c.Call().Decode(&arguments); err != nil {
			return c.Fail(err)
		}
		arguments["timeout"] = 30
		return c.Rewrite(arguments)
	}, hooks.ToolNamed("bash")),
		"bash", `{"command":"make"}`)
	// Output:
	// executed: ran with changed arguments: {"command":"make","timeout":30}
	// ran make (timeout 30)
}

// A mock answers instead of the tool.
func ExampleToolContext_Mock() {
	do(hooks.On(hooks.AtPreToolUse, "fixture", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Mock("nothing to commit, working tree clean")
	}, hooks.ArgumentEquals("command", "git status")),
		"bash", `{"command":"git status"}`)
	// Output:
	// mocked: nothing to commit, working tree clean
}

// careful asks about lines that delete files, and about those that it cannot read.
var careful = hooks.On(hooks.AtPreToolUse, "careful",
	hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
		line := bash.Analyse(command, bash.Options{})
		if !line.Clear() {
			return c.Ask("the line may run more than it shows")
		}
		for _, file := range line.Files {
			if file.Access == bash.Deletes {
				return c.Ask("it deletes files")
			}
		}
		return c.Allow()
	}), hooks.ToolNamed("bash"))

// Ask requires a person's approval. Without an approver the call is denied.
func ExampleToolContext_Ask() {
	do(careful, "bash", `{"command":"rm -r build"}`)
	// Output:
	// not_executed: tool "bash": denied by careful: needs approval (it deletes files) and there is no person to ask
}

// Nothing before a hook at PostToolUse has stored or shown the result.
func ExampleToolResultContext_Replace() {
	do(hooks.On(hooks.AtPostToolUse, "redact", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		return c.Replace(strings.ReplaceAll(c.Text(), "hunter2", "***"))
	}),
		"read_file", `{"path":".env"}`)
	// Output:
	// executed: PASSWORD=*** in .env
}

// A withheld result is dropped, with all effects of the tool.
func ExampleToolResultContext_Withhold() {
	do(hooks.On(hooks.AtPostToolUse, "keeper", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		if strings.Contains(c.Text(), "PASSWORD") {
			return c.Withhold("it has a password in it")
		}
		return c.Allow()
	}),
		"read_file", `{"path":".env"}`)
	// Output:
	// executed: tool "read_file": result withheld by keeper: it has a password in it
}

// ToolFailed is for tools that gave no answer; not for calls that did not run.
func ExampleToolFailureContext() {
	do(hooks.On(hooks.AtToolFailed, "helper", func(_ context.Context, c hooks.ToolFailureContext) hooks.Result {
		return c.Replace(fmt.Sprintf("%s said %q: look at its log", c.Tool(), c.Err()))
	}),
		"bash", `{"command":"false"}`, "bash", `{"cmd":"ls"}`)
	// Output:
	// failed: bash said "exit status 1": look at its log
	// not_executed: tool "bash": not executed: checking arguments: 2 problems: /cmd: is not known; known: "command", "timeout"; /command: is missing; expected string
}

// A guard that cannot decide does not allow the call.
func ExampleRetry() {
	tries := 0
	do(hooks.On(hooks.AtPreToolUse, "policy-server", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		tries++
		return c.Fail(errors.New("connection refused"))
	}).WithFailure(hooks.Retry(2, time.Millisecond, hooks.Closed)),
		"bash", `{"command":"ls"}`)
	fmt.Println(tries, "tries")
	// Output:
	// not_executed: tool "bash": not executed: policy-server: the hook could not decide: connection refused
	// 3 tries
}

// Matchers are values. A matcher on the tool's name is evaluated when the agent is built.
func ExampleAnd() {
	writes := hooks.Or(hooks.ToolNamed("write_file"), hooks.ToolMatching("/^(create|delete)_/"))
	secrets := hooks.ArgumentMatching("path", "*.env*")
	fmt.Println(hooks.And(writes, secrets, hooks.AtDepth(1, -1)))
	// Output:
	// and(or(tool write_file, tool /^(create|delete)_/), argument path ~ *.env*, depth 1 or more)
}

// Order prints who is called when: guards first before a call, and last after it.
func ExampleSet_Order() {
	guard := func(name string) []hooks.Hook {
		return []hooks.Hook{
			hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Allow() }),
			hooks.On(hooks.AtPostToolUse, name+"-result", func(_ context.Context, c hooks.ToolResultContext) hooks.Result { return c.Allow() }),
		}
	}
	set := hooks.NewSet(guard("mine")...)
	for _, h := range guard("redact") {
		set = set.With(h.WithPriority(hooks.PriorityGuard))
	}
	set = set.With(hooks.ObserveAll("log", func(context.Context, hooks.Context) error { return nil }))
	fmt.Println(set.Order(hooks.PreToolUse))
	fmt.Println(set.Order(hooks.PostToolUse))
	// Output:
	// [redact mine log]
	// [mine-result redact-result log]
}

// Unused finds guards that guard nothing.
func ExampleCompiled_UnusedHooks() {
	guard := hooks.On(hooks.AtPreToolUse, "no-shell", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Deny("no shell")
	}, hooks.ToolNamed("bsah"))
	compiled, err := hooks.NewSet(guard).Compile("bash", "read_file")
	fmt.Println(compiled.UnusedHooks(), err)
	// Output:
	// [no-shell] <nil>
}

// A hook that counts calls uses a Scratch: calls of one step see it at once. They do not see each other's metadata.
func Example_countCalls() {
	type seen struct {
		sync.Mutex
		calls map[string]bool
	}
	commands := agent.NewScratch(func() *seen { return &seen{calls: map[string]bool{}} })
	do(hooks.On(hooks.AtPreToolUse, "two-commands", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		n := commands.Get(c.State())
		n.Lock()
		defer n.Unlock()
		n.calls[fmt.Sprint(c.StepIndex(), c.Original().ID)] = true // a hook can be asked several times about one call
		if len(n.calls) > 2 {
			return c.Deny("a run makes at most two commands")
		}
		return c.Pass()
	}, hooks.ToolNamed("bash")),
		"bash", `{"command":"ls"}`, "bash", `{"command":"pwd"}`, "bash", `{"command":"make"}`)
	// Output:
	// executed: ran ls (timeout 0)
	// executed: ran pwd (timeout 0)
	// not_executed: tool "bash": denied by two-commands: a run makes at most two commands
}
