package hooks_test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

type target struct {
	Path string `json:"path"`
	Mode *int   `json:"mode,omitempty"`
	To   []struct {
		Name string `json:"name"`
	} `json:"to,omitempty"`
}

// onTarget runs one call of a tool that takes anything, with a hook in front of it, and returns the result.
func onTarget(t *testing.T, hook hooks.Hook, arguments string) *agent.ToolResult {
	t.Helper()
	write := toolexec.CallFunc(agent.ToolSpec{Name: "write", Parameters: `{"type":"object"}`},
		func(_ context.Context, c toolexec.Call, _ map[string]any) (string, error) { return c.Arguments, nil })
	a, err := builder.New().WithDriver(agenttest.Script(agenttest.Call("write", arguments), agenttest.Say("done"))).
		With(capability.UseTools(write), capability.UseHooks(hook)).Build().Get()
	require.NoError(t, err)
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	for _, step := range final.RunSteps() {
		for _, result := range step.Results() {
			return &result
		}
	}
	return nil
}

func TestOnCall(t *testing.T) {
	guard := hooks.OnCall("local", "write", func(_ context.Context, c hooks.ToolContext, in target) hooks.Result {
		if !filepath.IsLocal(in.Path) {
			return c.Deny("write below the working directory")
		}
		return c.Allow()
	}).WithFailure(hooks.Open)
	for arguments, want := range map[string]string{
		`{"path":"a","other":[1]}`:             "",
		`{"path":"a","mode":null}`:             "",
		`{"path":"a","to":[{"name":"b"}]}`:     "",
		`{"path":"/a"}`:                        "write below the working directory",
		`{}`:                                   `tool "write": argument "path" is missing: add it`,
		`{"Path":"a"}`:                         `tool "write": argument "path" is missing: add it`,
		`{"path":null}`:                        `tool "write": argument "path" is null: give it a value, or omit it`,
		`{"path":["a"]}`:                       "/path",
		`{"path":"a","mode":1.5}`:              "/mode",
		`{"path":"a","to":[{}]}`:               `tool "write": argument "to.0.name" is missing: add it`,
		`{"path":"a","to":[null]}`:             `tool "write": argument "to.0" is null`,
		`{"path":"a","to":null}`:               `tool "write": argument "to" is null`,
		`{"path":"a","to":{"name":"b"}}`:       "/to",
		`{"path":"a","to":[{"name":{"b":1}}]}`: "/to/0/name",
	} {
		t.Run(arguments, func(t *testing.T) {
			r := onTarget(t, guard, arguments)
			if want == "" {
				assert.Equal(t, agent.ToolExecuted, r.Status, r.Text())
				return
			}
			assert.Equal(t, agent.ReasonDenied, r.Reason, r.Text())
			assert.Contains(t, r.Text(), want)
		})
	}
}

// What the tool cannot be asked for is found when the agent is built.
func TestOnCallThatCannotMatch(t *testing.T) {
	allow := func(_ context.Context, c hooks.ToolContext, _ target) hooks.Result { return c.Allow() }
	read := toolexec.Func("read", "Reads.", func(context.Context, struct {
		File string `json:"file"`
	}) (string, error) {
		return "", nil
	})
	for want, hook := range map[string]hooks.Hook{
		`no call of "read" has an argument at "/path"`: hooks.OnCall("guard", "read", allow),
		`an argument at "/encoding"`: hooks.OnCall("guard", "read", func(_ context.Context, c hooks.ToolContext, _ struct {
			Encoding string `json:"encoding,omitempty"`
		}) hooks.Result {
			return c.Allow()
		}),
		`"raed"`: hooks.OnCall("guard", "raed", allow),
		`OnCall reads arguments into a struct, not into a string`: hooks.OnCall("guard", "read", func(_ context.Context, c hooks.ToolContext, _ string) hooks.Result { return c.Allow() }),
		`guard`: hooks.OnCall[target]("guard", "read", nil),
	} {
		_, err := builder.New().WithDriver(agenttest.Script()).With(capability.UseTools(read), capability.UseHooks(hook)).Build().Get()
		assert.ErrorContains(t, err, want)
	}
}

func TestPatch(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments string
		patch     any
		want      string
	}{
		"a member":    {`{"path":"a","big":123456789012345678901}`, map[string]any{"path": "b"}, `{"big":123456789012345678901,"path":"b"}`},
		"a new one":   {`{"path":"a"}`, map[string]any{"mode": 7}, `{"mode":7,"path":"a"}`},
		"one less":    {`{"path":"a","mode":1}`, map[string]any{"mode": nil}, `{"path":"a"}`},
		"inside":      {`{"to":{"a":1,"b":2}}`, map[string]any{"to": map[string]any{"a": nil, "c": 3}}, `{"to":{"b":2,"c":3}}`},
		"in no place": {`{"to":1}`, map[string]any{"to": map[string]any{"a": nil, "c": 3}}, `{"to":{"c":3}}`},
		"a struct":    {`{"path":"a","other":true}`, target{Path: "b"}, `{"other":true,"path":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			hook := hooks.On(hooks.AtPreToolUse, "patch", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Patch(tc.patch) })
			assert.Equal(t, tc.want, agent.ToolAnswer(onTarget(t, hook, tc.arguments)).ToolText())
		})
	}
	hook := hooks.On(hooks.AtPreToolUse, "patch", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Patch("text") })
	r := onTarget(t, hook, `{}`)
	assert.Equal(t, agent.ReasonHookFailed, r.Reason, "the original does not run either")
}

func TestHooksWithOneAnswer(t *testing.T) {
	assert.Contains(t, onTarget(t, hooks.AlwaysDeny("no", "not today"), `{}`).Text(), "denied by no: not today")
	assert.Contains(t, onTarget(t, hooks.AlwaysAsk("asks", "may it?"), `{}`).Text(), "needs approval (may it?)")
	assert.Equal(t, "done", onTarget(t, hooks.AlwaysMock("mock", "done", hooks.ToolNamed("write")), `{}`).Text())
	filtered := onTarget(t, hooks.AlwaysFilter("hides", func(text string) string { return strings.ReplaceAll(text, "secret", "…") }), `{"a":"secret"}`)
	assert.Equal(t, `{"a":"…"}`, filtered.Text())
	for _, hook := range []hooks.Hook{hooks.AlwaysFilter("nothing", nil), hooks.ContinueUntil("nothing", "go on", nil)} {
		_, err := builder.New().WithDriver(agenttest.Script()).With(capability.UseHooks(hook)).Build().Get()
		require.ErrorContains(t, err, "nothing")
	}
}

var password = regexp.MustCompile(`PASSWORD=\S+`)

// Five hooks: one denies by path, one asks for a command, one rewrites an argument, one redacts results, and one does
// not let the agent stop before it has looked.
func Example_five() {
	type file struct {
		Path string `json:"path"`
	}
	type command struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout,omitempty"`
	}
	five := capability.UseHooks(
		hooks.OnCall("notes-only", "read_file", func(_ context.Context, c hooks.ToolContext, in file) hooks.Result {
			if in.Path != "notes.txt" {
				return c.Deny("read nothing but notes.txt")
			}
			return c.Allow()
		}),
		hooks.AlwaysAsk("asks-first", "others see what it does", hooks.ToolNamed("deploy")),
		hooks.OnCall("in-time", "bash", func(_ context.Context, c hooks.ToolContext, in command) hooks.Result {
			in.Timeout = min(max(in.Timeout, 1), 60)
			return c.Patch(in)
		}),
		hooks.AlwaysFilter("passwords", func(text string) string { return password.ReplaceAllString(text, "PASSWORD=…") }),
		hooks.ContinueUntil("look-first", "Look at the file first.", func(s agent.State) bool { return s.RunStepCount() > 1 }),
	)
	bash := toolexec.Func("bash", "Runs a command.", func(_ context.Context, in command) (string, error) {
		return fmt.Sprintf("%s, %d s", in.Command, in.Timeout), nil
	})
	read := toolexec.Func("read_file", "Reads a file.", func(_ context.Context, in file) (string, error) { return "PASSWORD=hunter2", nil })
	model := agenttest.Script(agenttest.Say("Done."), agenttest.Call("read_file", `{"path":"/etc/passwd"}`).Call("read_file", `{"path":"notes.txt"}`).
		Call("deploy", `{}`).Call("bash", `{"command":"make","timeout":900}`), agenttest.Say("Done."))
	deploy := toolexec.Func("deploy", "Deploys.", func(context.Context, struct{}) (string, error) { return "deployed", nil })
	a := builder.New().WithDriver(model).With(capability.UseTools(bash, read, deploy), five).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("go")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() != agent.RoleAssistant {
			fmt.Println(m.Text())
		}
	}
	// Output:
	// go
	// Look at the file first.
	// tool "read_file": denied by notes-only: read nothing but notes.txt
	// PASSWORD=…
	// tool "deploy": denied by asks-first: needs approval (others see what it does) and there is no person to ask
	// ran with changed arguments: {"command":"make","timeout":60}
	// make, 60 s
}
