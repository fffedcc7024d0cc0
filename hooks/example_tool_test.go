package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// do lets a model make some calls, given as tool and arguments, and prints what it
// is told.
func do(hook hooks.Hook, calls ...string) {
	bash := toolexec.Func("bash", "Runs a command.", func(_ context.Context, in struct {
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
		With(capability.UseTools(bash, read), capability.UseHooks(hook)).Build().MustGet()
	final, err := a.Run(context.Background(), agent.NewState(), agent.UserText("go")).Get()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Printf("%s: %s\n", m.Status(), m.Text())
		}
	}
	if signal := final.StopSignal().OrEmpty(); err == nil && final.Status() != agent.StatusDone {
		fmt.Printf("%s by %s: %s\n", final.Status(), signal.Source, signal.Message)
	}
}

// A denial keeps one call from running; the others of the step go on, and the model
// is told why.
func ExampleToolContext_Deny() {
	do(hooks.On(hooks.AtPreToolUse, "no-force-push", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		command, _ := c.Call().Text("command")
		if strings.Contains(command, "push --force") {
			return c.Deny("force pushes are not allowed here")
		}
		return c.Allow()
	}, hooks.ToolNamed("bash")),
		"bash", `{"command":"git push --force"}`, "bash", `{"command":"git status"}`)
	// Output:
	// not_executed: tool "bash": denied by no-force-push: force pushes are not allowed here
	// executed: ran git status (timeout 0)
}

// A stop ends the run: no call of the step runs, not even those before it.
func ExampleToolContext_Stop() {
	do(hooks.On(hooks.AtPreToolUse, "fuse", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Stop("somebody wants the passwords")
	}, hooks.ArgumentMatching("path", "*/passwd")),
		"bash", `{"command":"ls"}`, "read_file", `{"path":"/etc/passwd"}`)
	// Output:
	// not_executed: not executed: run stopped by fuse: somebody wants the passwords
	// not_executed: not executed: run stopped by fuse: somebody wants the passwords
	// stopped by fuse: somebody wants the passwords
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
	// executed: ran make (timeout 30)
}

// A mock answers in the tool's place.
func ExampleToolContext_Mock() {
	do(hooks.On(hooks.AtPreToolUse, "fixture", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Mock("nothing to commit, working tree clean")
	}, hooks.ArgumentEquals("command", "git status")),
		"bash", `{"command":"git status"}`)
	// Output:
	// mocked: nothing to commit, working tree clean
}

// Ask wants a person's yes. With nobody to ask, that is a no.
func ExampleToolContext_Ask() {
	do(hooks.On(hooks.AtPreToolUse, "careful", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Ask("it deletes files")
	}, hooks.ArgumentMatching("command", "rm *")),
		"bash", `{"command":"rm -r build"}`)
	// Output:
	// not_executed: tool "bash": denied by careful: needs approval (it deletes files) and there is nobody to ask
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

// What is withheld is gone, with all that the tool wanted changed besides.
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

// A guard that cannot decide is no yes.
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

// Matchers are values. What the tool's name settles is settled when the agent is
// built.
func ExampleAnd() {
	writes := hooks.Or(hooks.ToolNamed("write_file"), hooks.ToolMatching("/^(create|delete)_/"))
	secrets := hooks.ArgumentMatching("path", "*/.env*")
	fmt.Println(hooks.And(writes, secrets, hooks.AtDepth(1, -1)))
	// Output:
	// and(or(tool write_file, tool /^(create|delete)_/), argument path ~ */.env*, depth 1 or more)
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
func ExampleCompiled_Unused() {
	guard := hooks.On(hooks.AtPreToolUse, "no-shell", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Deny("no shell")
	}, hooks.ToolNamed("bsah"))
	compiled, err := hooks.NewSet(guard).Compile("bash", "read_file").Get()
	fmt.Println(compiled.Unused(), err)
	// Output:
	// [no-shell] <nil>
}
