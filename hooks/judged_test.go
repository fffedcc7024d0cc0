package hooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// commandOf returns the command that a call of bash would run.
func commandOf(c hooks.ToolContext) string {
	command, _ := c.Call().Text("command")
	return command
}

// denyCommand denies a command.
func denyCommand(command string) func(hooks.ToolContext) hooks.Result {
	return func(c hooks.ToolContext) hooks.Result {
		if commandOf(c) == command {
			return c.Deny("not " + command)
		}
		return c.Allow()
	}
}

// turnInto rewrites one command into another.
func turnInto(from, into string) func(hooks.ToolContext) hooks.Result {
	return func(c hooks.ToolContext) hooks.Result {
		if commandOf(c) == from {
			return c.Rewrite(map[string]any{"command": into})
		}
		return c.Pass()
	}
}

// The controls that were asked before a rewrite judge it, also the controls whose matchers the call did not match
// before.
func TestRewritesAreJudgedAgain(t *testing.T) {
	rewrite := before("rewrite", turnInto("ls", "rm")).WithPriority(-1)
	for name, guard := range map[string]hooks.Hook{
		"a func":            before("guard", denyCommand("rm")),
		"a matcher":         before("guard", deny("not rm"), hooks.ArgumentEquals("command", "rm")),
		"with a time limit": before("guard", denyCommand("rm")).WithTimeout(hooks.DefaultTimeout),
		"a stop": before("guard", func(c hooks.ToolContext) hooks.Result {
			if commandOf(c) == "rm" {
				return c.Stop("not rm")
			}
			return c.Pass()
		}),
		"an ask": before("guard", ask("rm?"), hooks.ArgumentEquals("command", "rm")),
		"a failure": before("guard", func(c hooks.ToolContext) hooks.Result {
			if commandOf(c) == "rm" {
				return c.Fail(errPaper)
			}
			return c.Pass()
		}),
	} {
		t.Run(name, func(t *testing.T) {
			w := workWith(t, []hooks.Hook{guard, rewrite}, wants("bash", ls))
			assert.Empty(t, w.ran)
			assert.JSONEq(t, `{"command":"rm"}`, w.result(0).Call().Arguments)
			assert.Equal(t, agent.ToolNotExecuted, w.result(0).Status)
		})
	}
}

// The answer about the call as it stands replaces the one before, with its effects,
// question and mock.
func TestANewAnswerReplacesTheOneBefore(t *testing.T) {
	about := func(f func(c hooks.ToolContext, effects ...agent.Effect) hooks.Result) func(hooks.ToolContext) hooks.Result {
		return func(c hooks.ToolContext) hooks.Result {
			if commandOf(c) == "ls" {
				return f(c, note.Set("about ls"))
			}
			_, there := note.From(c.State())
			assert.False(t, there, "it is asked without what it said before")
			return c.Pass()
		}
	}
	for name, first := range map[string]func(c hooks.ToolContext, effects ...agent.Effect) hooks.Result{
		"ask":   func(c hooks.ToolContext, effects ...agent.Effect) hooks.Result { return c.Ask("ls?", effects...) },
		"mock":  func(c hooks.ToolContext, effects ...agent.Effect) hooks.Result { return c.Mock("mocked", effects...) },
		"allow": func(c hooks.ToolContext, effects ...agent.Effect) hooks.Result { return c.Allow(effects...) },
	} {
		t.Run(name, func(t *testing.T) {
			w := workWith(t, []hooks.Hook{before("changes its mind", about(first)), before("rewrite", turnInto("ls", "pwd"))}, wants("bash", ls))
			require.NoError(t, w.err)
			assert.Equal(t, []string{`bash {"command":"pwd"}`}, w.ran)
			_, there := note.From(w.State)
			assert.False(t, there)
		})
	}
}

// Two controls that undo each other's rewrites deny the call, as a failure, whatever their
// failure policies say; observers are told once.
func TestRewritesThatNeverSettle(t *testing.T) {
	var asked, told []string
	turn := func(name, from, into string) hooks.Hook {
		return before(name, func(c hooks.ToolContext) hooks.Result {
			asked = append(asked, name+" "+commandOf(c))
			return turnInto(from, into)(c)
		}).WithFailure(hooks.Open)
	}
	w := workWith(t, []hooks.Hook{
		turn("there", "ls", "pwd"), turn("back", "pwd", "ls"),
		hooks.Observe(hooks.AtPreToolUse, "watch", func(_ context.Context, c hooks.ToolContext) error {
			told = append(told, fmt.Sprint(c.Frozen().Decision(), " ", c.Frozen().HookFailed()))
			return nil
		}),
	}, wants("bash", ls, "bash", `{"command":"echo"}`))
	require.NoError(t, w.err)
	assert.Equal(t, []string{`bash {"command":"echo"}`}, w.ran)
	assert.Equal(t, []string{
		"there ls", "back pwd", "there ls", "back pwd", "there ls", "back pwd", "there ls", "back pwd", "there echo", "back echo",
	}, asked)
	assert.Equal(t, []string{"deny true", "pass false"}, told)
	r := w.result(0)
	assert.Equal(t, agent.ReasonHookFailed, r.Reason)
	assert.True(t, r.Denied())
	assert.Contains(t, r.Text(), "there, back")
}

// Controls that agree at the end of the fourth round are in time.
func TestTheFourthRoundIsTheLast(t *testing.T) {
	chain := func(rounds int) []hooks.Hook {
		var list []hooks.Hook
		for i := range rounds { // each is asked before the one whose rewrite it waits for
			list = append(list, before(fmt.Sprint("h", i), turnInto(fmt.Sprint("c", i), fmt.Sprint("c", i+1))))
		}
		slices.Reverse(list)
		return list
	}
	last := func(rounds int) work { return workWith(t, chain(rounds), wants("bash", `{"command":"c0"}`)) }
	assert.Equal(t, []string{`bash {"command":"c4"}`}, last(4).ran)
	assert.Equal(t, agent.ReasonHookFailed, last(5).result(0).Reason, "one has not judged the rewrite of the fourth round")
}

// Two hooks that only spell the arguments in different ways agree.
func TestSpellingIsNoDisagreement(t *testing.T) {
	spell := func(text string) func(hooks.ToolContext) hooks.Result {
		return func(c hooks.ToolContext) hooks.Result { return c.Rewrite(json.RawMessage(text)) }
	}
	one, other := `{"command": "ls", "timeout": 30}`, `{"timeout":30,"command":"ls"}`
	w := workWith(t, []hooks.Hook{before("one", spell(one)), before("other", spell(other))}, wants("bash", ls))
	require.NoError(t, w.err)
	assert.Equal(t, []string{"bash " + other}, w.ran)
}

// Hooks in shadow are asked about what runs, and what they would rewrite is not judged.
func TestShadowRewritesNothing(t *testing.T) {
	var seen []string
	w := workWith(t, []hooks.Hook{
		before("shadow", func(c hooks.ToolContext) hooks.Result {
			seen = append(seen, commandOf(c))
			return c.Rewrite(map[string]any{"command": "rm"})
		}).InShadow(),
		before("guard", denyCommand("rm")), before("rewrite", turnInto("ls", "pwd")),
	}, wants("bash", ls))
	require.NoError(t, w.err)
	assert.Equal(t, []string{`bash {"command":"pwd"}`}, w.ran)
	assert.Equal(t, "ls pwd", strings.Join(seen, " "))
}

// What one control makes of an input, the others judge as well.
func TestRewrittenInputsAreJudgedAgain(t *testing.T) {
	for name, list := range map[string][]hooks.Hook{
		"input submitted": {
			onInput("guard", func(c hooks.InputContext) hooks.Result {
				if strings.Contains(c.Text(), "bad") {
					return c.Deny("bad")
				}
				return c.Allow()
			}),
			onInput("rewrite", func(c hooks.InputContext) hooks.Result { return c.RewriteText("bad") }),
		},
		"execution start": {
			onStart("guard", func(c hooks.ExecutionContext) hooks.Result {
				if strings.Contains(c.Text(), "bad") {
					return c.Deny("bad")
				}
				return c.Allow()
			}),
			onStart("rewrite", func(c hooks.ExecutionContext) hooks.Result { return c.RewriteText("bad") }),
		},
		"no agreement": {
			onInput("one", func(c hooks.InputContext) hooks.Result { return c.RewriteText("one") }).WithFailure(hooks.Open),
			onInput("two", func(c hooks.InputContext) hooks.Result { return c.RewriteText("two") }).WithFailure(hooks.Open),
		},
	} {
		t.Run(name, func(t *testing.T) {
			end := play(t, agenttest.Script(), list)
			require.NoError(t, end.err)
			assert.Equal(t, agent.StatusDenied, end.Status())
			assert.Zero(t, end.MessageCount())
		})
	}
}

// The same applies to a sub-agent's instruction, and to the parameters of a coordinated run.
func TestRewrittenInstructionsAndParametersAreJudgedAgain(t *testing.T) {
	compiled, err := hooks.NewSet(
		hooks.On(hooks.AtPreSubagent, "guard", func(_ context.Context, c hooks.PreSubagentContext) hooks.Result {
			if c.Subagent().Instruction == "bad" {
				return c.Deny("bad")
			}
			return c.Allow()
		}),
		hooks.On(hooks.AtPreSubagent, "rewrite", func(_ context.Context, c hooks.PreSubagentContext) hooks.Result {
			return c.Rewrite(strings.TrimPrefix(c.Subagent().Instruction, "not "))
		}),
		hooks.On(hooks.AtRunStart, "start guard", func(_ context.Context, c hooks.RunStartContext) hooks.Result {
			if strings.Contains(string(c.BlueprintRun().Parameters), "bad") {
				return c.Deny("bad")
			}
			return c.Allow()
		}),
		hooks.On(hooks.AtRunStart, "start rewrite", func(_ context.Context, c hooks.RunStartContext) hooks.Result {
			return c.Rewrite(json.RawMessage(strings.ReplaceAll(string(c.BlueprintRun().Parameters), "not ", "")))
		}),
	).Compile()
	require.NoError(t, err)
	s := agent.NewState()
	for _, said := range []string{"bad", "not bad", "not good"} {
		instruction, denied, err := compiled.PreSubagent(t.Context(), s, hooks.Subagent{Agent: "a", Instruction: said})
		require.NoError(t, err)
		run, _, refused, err := compiled.OpenScope(t.Context(), hooks.ScopeOptions{}).Blueprint(t.Context(), s, hooks.Firing{Point: hooks.RunStart}, hooks.BlueprintRun{Parameters: json.RawMessage(`{"say":"` + said + `"}`)})
		require.NoError(t, err)
		if said != "not good" {
			require.Error(t, denied)
			require.Error(t, refused)
			continue
		}
		require.NoError(t, denied)
		require.NoError(t, refused)
		assert.Equal(t, "good", instruction)
		assert.JSONEq(t, `{"say":"good"}`, string(run.Parameters))
	}
}
