package timeline

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec"
)

var update = flag.Bool("update", false, "write the golden files again")

var bash = toolexec.Func("bash", "Runs a command.", func(_ context.Context, in struct {
	Command string `json:"command"`
}) (string, error) {
	time.Sleep(1500 * time.Millisecond) // of the bubble's clock
	switch {
	case strings.HasPrefix(in.Command, "go test"):
		return "", errors.New("--- FAIL: TestParse (0.00s)\n    parse_test.go:24: 失敗しました\nFAIL\nFAIL\texample.com/clock\t0.003s\nFAIL\nexit status 1")
	case strings.HasPrefix(in.Command, "printenv"):
		return "TOKEN=SECRET-1", nil
	case strings.HasPrefix(in.Command, "evil"):
		return "\x1b]0;owned\x07\x1b[2Jgone\r\nsecond line\u202e!", nil
	}
	return "ran " + in.Command, nil
})

func guards() []hooks.Hook {
	return []hooks.Hook{
		hooks.On(hooks.AtPreToolUse, "no-wipe", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			command, _ := c.Call().Text("command")
			switch {
			case strings.Contains(command, "rm -rf"):
				return c.Deny("that would delete everything, and the user did not ask for it: clean up what you made, file by file")
			case strings.Contains(command, "--force "):
				return c.Rewrite(map[string]string{"command": strings.ReplaceAll(command, "--force ", "--force-with-lease ")})
			case strings.Contains(command, "weather"):
				return c.Mock("sunny")
			case strings.Contains(command, "deploy"):
				return c.Ask("deploying is for grown-ups")
			case strings.Contains(command, "puzzle"):
				return c.Fail(errors.New("the rule book is missing"))
			}
			return c.Allow()
		}),
		hooks.On(hooks.AtPostToolUse, "redact", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
			if clean := strings.ReplaceAll(c.Text(), "SECRET-1", "[redacted]"); clean != c.Text() {
				return c.Replace(clean)
			}
			return c.Pass()
		}),
		hooks.On(hooks.AtStop, "tests-first", func(_ context.Context, c hooks.StopContext) hooks.Result {
			if c.Continuations() == 0 {
				return c.Continue("Run the tests: none has passed since you changed parse.go.")
			}
			return c.Allow()
		}),
	}
}

// script returns a model that gives a timeline everything to show.
func script() *agenttest.Driver {
	long := "これは長い説明です。端末の幅に合わせて折り返されるはずです。単語の間に空白がない文章でも、読みやすく表示されなければなりません。"
	return agenttest.Script(
		agenttest.Say("I'll run the tests and have a look at the environment, then clear the rest of the old build.").
			Call("bash", `{"command":"go test ./..."}`).
			Call("bash", `{"command":"printenv TOKEN"}`).
			Call("bash", `{"command":"rm -rf / tmp/build"}`).WithTokens(1234, 56).WithCost(0.0021),
		agenttest.Say(long).
			Call("bash", `{"command":"git commit --all --amend --no-edit --quiet && git push --force origin fix/days"}`).
			Call("bash", `{"command":"weather"}`).WithTokens(2345, 67).WithCost(0.0035),
		agenttest.Tries(
			agenttest.Fail(errors.New("the service is overloaded")),
			agenttest.Say("```go\nfunc f() {\n\treturn 1\n}\n```\n\x1b[31mred\x1b[0m").
				Call("bash", `{"command":"evil"}`).Call("nothing", `{"x":1,"y":"two"}`).Call("bash", `{"command":`).
				Call("bash", `{"command":"puzzle"}`).Call("bash", `{"command":"deploy"}`)),
		agenttest.Say("Done!").WithTokens(100, 2).WithCost(0.5),
		agenttest.Say("Really done.").WithTokens(100, 2).WithCost(0.5),
	)
}

func show(t *testing.T, width int, colour bool) string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		line := New(Config{Out: &out, Width: func() int { return width }, Colour: colour, Input: true})
		a := builder.New().WithName("mender").WithDriver(script()).With(
			capability.UseTools(bash), capability.UseHooks(guards()...), capability.UseStepProcessor("retry", processor.Retry{}),
		).WithObserver(line).Build().MustGet()
		var err error
		for progress, failed := range a.Stream(t.Context(), agent.NewState(), agent.UserText("Mend the build.\nDo it well.")) {
			if progress.Delta != nil {
				line.Delta(*progress.Delta)
			}
			err = failed
		}
		require.NoError(t, err)
	})
	return out.String()
}

func TestTimeline(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			got := show(t, width, false)
			golden := fmt.Sprintf("testdata/%d.txt", width)
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
			for line := range strings.Lines(got) {
				line = strings.TrimSuffix(line, "\n")
				assert.LessOrEqual(t, lipgloss.Width(line), width, "%q", line)
				assert.Equal(t, strings.TrimRight(line, " "), line, "nothing but spaces at the end")
			}
			assert.NotRegexp(t, `[\x00-\x09\x0b-\x1f\x7f]`, got, "no control character but the line end")
			assert.NotContains(t, got, "SECRET")
		})
	}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Colours change nothing but the colours, and they are the only sequences.
func TestColours(t *testing.T) {
	coloured := show(t, 80, true)
	assert.Contains(t, coloured, "\x1b[31m")
	assert.Equal(t, show(t, 80, false), sgr.ReplaceAllString(coloured, ""))
}

// However a text is cut into pieces, the same is written.
func TestPiecesDoNotShow(t *testing.T) {
	text := "Eins zwei  drei 漢字かな混じり文 vier\n\n    code goes here\nand averyveryverylongwordthatdoesnotfitonalineofthirtycolumns end"
	write := func(pieces ...string) string {
		var out bytes.Buffer
		p := paper{out: &out, width: func() int { return 30 }}
		p.begin(bold, "step 1")
		for _, piece := range pieces {
			p.say(plain, piece)
		}
		p.end()
		return out.String()
	}
	whole := write(text)
	assert.Equal(t, whole, write(strings.Split(text, "")...))
	assert.Contains(t, whole, "\n            code goes here\n", "indents stay")
	for line := range strings.Lines(whole) {
		assert.LessOrEqual(t, lipgloss.Width(strings.TrimSuffix(line, "\n")), 30)
	}
}

func TestVerdicts(t *testing.T) {
	run := func(turn agenttest.Turn, with ...capability.Capability) string {
		var out bytes.Buffer
		a := builder.New().WithDriver(agenttest.Script(turn, turn, turn)).With(capability.UseTools(bash)).With(with...).
			WithObserver(New(Config{Out: &out})).Build().MustGet()
		_ = a.Run(t.Context(), agent.NewState(), agent.UserText("go"))
		return out.String()
	}
	denyInput := hooks.On(hooks.AtInputSubmitted, "no-input", func(_ context.Context, c hooks.InputContext) hooks.Result { return c.Deny("not today") })
	stopStep := hooks.On(hooks.AtStepStart, "brake", func(_ context.Context, c hooks.StepContext) hooks.Result { return c.Stop("enough") })
	assert.Contains(t, run(agenttest.Say("hi")), "done: the model gave its answer\n")
	assert.Contains(t, run(agenttest.Fail(errors.New("no model\x1b[0m"))), "failed: asking the model: no model␛[0m\n")
	assert.Contains(t, run(agenttest.Say("hi"), capability.UseHooks(denyInput)), "denied: the input was not accepted, by no-input: not today\n")
	assert.Contains(t, run(agenttest.Say("hi"), capability.UseHooks(denyInput)), "✗ no-input denies the input: not today\n")
	assert.Contains(t, run(agenttest.Say("hi"), capability.UseHooks(stopStep)), "stopped: enough, by brake (hook)\n")
	assert.Contains(t, run(agenttest.Call("nothing", "{}"), capability.UseGuards{Steps: 1}), "stopped: 1 of at most 1 steps taken (steps_limit)\n")
}

// A stored run says why a call did not run, or what happened to its result.
func TestReplaySaysWhy(t *testing.T) {
	vault := hooks.On(hooks.AtPostToolUse, "vault", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		if command, _ := c.Call().Text("command"); strings.Contains(command, "names") {
			return c.Withhold("it has a name")
		}
		return c.Allow()
	})
	call := func(command string) agenttest.Turn { return agenttest.Call("bash", `{"command": "`+command+`"}`) }
	var s agent.State
	synctest.Test(t, func(t *testing.T) {
		a := builder.New().WithDriver(agenttest.Script(call("rm -rf /"), call("puzzle"), call("cat names"), call("rm -rf names"), agenttest.Say("So be it."), agenttest.Say("So be it."))).
			With(capability.UseTools(bash), capability.UseHooks(append(guards(), vault)...)).Build().MustGet()
		s = a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
	})
	var out bytes.Buffer
	New(Config{Out: &out, Width: func() int { return 200 }}).Replay(s)
	assert.Contains(t, out.String(), "✗ denied by no-wipe: that would delete everything")
	assert.Contains(t, out.String(), "✗ not run: no-wipe could not decide: the rule book is missing\n")
	assert.Contains(t, out.String(), "✂ not run, result withheld\n")
	assert.Contains(t, out.String(), "✂ result withheld · 1.5s\n      tool \"bash\": result withheld by vault: it has a name\n")
}

func TestWords(t *testing.T) {
	assert.Equal(t, "1,234,567", groupDigits(1234567))
	assert.Equal(t, "123", groupDigits(123))
	assert.Equal(t, "$0.0021", formatDollars(0.0021))
	assert.Equal(t, "$1.50", formatDollars(1.5))
	assert.Equal(t, "2m3s", FormatDuration(123*time.Second))
	assert.Equal(t, "…", shortenText("日本", 1))
	assert.Equal(t, "日…", shortenText("日本", 3))
	assert.Equal(t, `go test timeout=60`, describeArguments(agent.ToolCall{Arguments: `{"timeout":60,"command":"go test"}`}))
	assert.Equal(t, `{"broken`, describeArguments(agent.ToolCall{Arguments: "{\"broken"}))
}

// A note in the middle of a reply does not lose the margin of what follows.
func TestNoteWhileTextFlows(t *testing.T) {
	var out bytes.Buffer
	line := New(Config{Out: &out})
	line.paper.begin(bold, "step 1")
	line.Delta(agent.Delta{Text: "some text "})
	line.Note("Interrupted.")
	line.Delta(agent.Delta{Text: "and more"})
	line.paper.end()
	assert.Equal(t, "step 1  some text\nInterrupted.\n        and more\n", out.String())
}
